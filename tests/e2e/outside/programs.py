"""Runs programs that are not ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.missing_programs import program

HERE = Path(__file__).parent
SERVER = str(Path(sys.executable).with_name("context-sidecar"))
LIMIT_S = 100


def run(command: list[str], home: Path, **variables: str) -> Any:
    """What the program prints, as JSON; it finds an empty home instead of the user's settings."""
    folders = {f"XDG_{kind}_HOME": str(home) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
    surroundings = {
        "PATH": os.environ["PATH"],
        "LC_ALL": "C.UTF-8",
        "HOME": str(home),
        **folders,
        "CONTEXT_SIDECAR_STATE_DIR": str(home / "sidecar"),
        **variables,
    }
    ran = subprocess.run(
        command, capture_output=True, cwd=home, env=surroundings, timeout=LIMIT_S, check=False
    )
    log = ran.stderr.decode(errors="replace")
    assert ran.returncode == 0, f"{Path(command[0]).name} ended with {ran.returncode}: {log}"
    return json.loads(ran.stdout)


def neovim(script: str, home: Path, **variables: str) -> Any:
    """What a script for Neovim prints."""
    command = [
        os.environ.get("NVIM") or program("nvim", "neovim"),
        "--headless",
        "-u",
        "NONE",
        "-i",
        "NONE",
        "-n",
        "-S",
        str(HERE / script),
    ]
    return run(command, home, **{"SERVER": SERVER, **variables})


def emacs(script: str, home: Path, **variables: str) -> Any:
    """What a script for Emacs prints."""
    return run(
        [program("emacs"), "-Q", "--batch", "-l", str(HERE / script)], home, SERVER=SERVER, **variables
    )


def node(script: str, home: Path, *arguments: str) -> Any:
    """What a script for Node prints."""
    install_node_packages()
    return run([program("node"), str(HERE / "node" / script), *arguments], home)


def install_node_packages() -> None:
    """Install what the lock file names, once."""
    folder = HERE / "node"
    lock, marker = folder / "package-lock.json", folder / "node_modules" / ".package-lock.json"
    if marker.exists() and marker.stat().st_mtime >= lock.stat().st_mtime:
        return
    command = [program("npm", "node"), "ci", "--no-audit", "--no-fund"]
    ran = subprocess.run(command, capture_output=True, cwd=folder, timeout=LIMIT_S, check=False)
    log = ran.stderr.decode(errors="replace")
    assert ran.returncode == 0, f"npm ci failed in {folder.name}: {log}"
