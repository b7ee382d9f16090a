"""Packages of npm that tests use, installed once, outside of the tree."""

import os
import subprocess
from hashlib import blake2b
from pathlib import Path


def installed(locked: Path) -> Path:
    """The `node_modules` that a folder's package.json and package-lock.json name."""
    lock = (locked / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "context-sidecar-tests" / f"{locked.name}-{blake2b(lock, digest_size=6).hexdigest()}"
    done = folder / "installed"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            (folder / name).write_bytes((locked / name).read_bytes())
        # `npm ci` refuses the lock file where optional packages for other systems are not published.
        install = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(install, cwd=folder, check=True, timeout=600)
        done.touch()
    return folder / "node_modules"
