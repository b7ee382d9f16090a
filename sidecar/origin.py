"""The package's origin, used by every hint on how to install it."""

import sys

ORIGIN = "./context-sidecar"
"""The argument for installers: a folder, a file or a Git URL; `context-sidecar` once that name is ours.

Until then it denotes a checkout. `make schema` copies changes into the documents and the clients.
"""
ONE_FOLDER = bool(getattr(sys, "frozen", False))
"""True in a one-folder build, where nothing can be installed."""


def requirement(*extras: str) -> str:
    """The package with extras, as a requirement for pip, pipx and uv."""
    wanted = f"[{','.join(extras)}]" if extras else ""
    return f"context-sidecar{wanted} @ {ORIGIN}" if "://" in ORIGIN else f"{ORIGIN}{wanted}"


def install_command(*extras: str, installer: str = "pip", python: str | None = None) -> str:
    """The command to install the package with extras, in the environment of `python` if given.

    In a one-folder build, it installs the Python package in addition to the build.
    """
    if python is not None:
        installer = f"{python} -m pip"
    elif ONE_FOLDER and installer == "pip":
        installer = "uv tool"
    return f'{installer} install "{requirement(*extras)}"'


def npm_command() -> str:
    """The command to install the build for Node, which needs no Python."""
    if "/" not in ORIGIN:
        return f"npm install --global {ORIGIN}"
    folder = "." if "://" in ORIGIN or ORIGIN.endswith(".whl") else ORIGIN
    return f"npm install --global {folder}/dist/*.tgz"
