"""Where this package comes from: every hint that says how to install it takes that from here."""

ORIGIN = "./context-sidecar"
"""What installers are given: a folder, a file or a Git URL.

It stands for a checkout as long as the names on the registries are not ours. `make schema` takes a change
over into the documents and the clients.
"""


def requirement(*extras: str) -> str:
    """The package with extras, as pip, pipx and uv understand it."""
    wanted = f"[{','.join(extras)}]" if extras else ""
    return f"context-sidecar{wanted} @ {ORIGIN}" if "://" in ORIGIN else f"{ORIGIN}{wanted}"


def install_command(*extras: str, installer: str = "pip") -> str:
    """The command that installs the package with extras."""
    return f'{installer} install "{requirement(*extras)}"'
