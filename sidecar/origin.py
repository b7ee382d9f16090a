"""Where this package comes from: every hint that says how to install it takes that from here."""

import sys

ORIGIN = "./context-sidecar"
"""What installers are given: a folder, a file or a Git URL; `context-sidecar` once that name is ours.

It stands for a checkout until then. `make schema` takes a change over into the documents and the clients.
"""
ONE_FOLDER = bool(getattr(sys, "frozen", False))
"""True in a one-folder build, into which nothing can be installed."""


def requirement(*extras: str) -> str:
    """The package with extras, as pip, pipx and uv understand it."""
    wanted = f"[{','.join(extras)}]" if extras else ""
    return f"context-sidecar{wanted} @ {ORIGIN}" if "://" in ORIGIN else f"{ORIGIN}{wanted}"


def install_command(*extras: str, installer: str = "pip", python: str | None = None) -> str:
    """The command that installs the package with extras, into the environment of a Python if one is named.

    Where this is a one-folder build, the Python package is installed in addition.
    """
    if python is not None:
        installer = f"{python} -m pip"
    elif ONE_FOLDER and installer == "pip":
        installer = "uv tool"
    return f'{installer} install "{requirement(*extras)}"'


def npm_command() -> str:
    """The command that installs the build for Node, which needs no Python."""
    if "/" not in ORIGIN:
        return f"npm install --global {ORIGIN}"
    folder = "." if "://" in ORIGIN or ORIGIN.endswith(".whl") else ORIGIN
    return f"npm install --global {folder}/dist/*.tgz"
