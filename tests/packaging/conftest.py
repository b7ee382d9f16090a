"""What `make dist` has built, and environments that have nothing in addition."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
LIMIT_S = 120


def built(pattern: str) -> Path:
    """The one file in dist/ of that name."""
    found = sorted(DIST.glob(pattern))
    assert len(found) == 1, f"dist/{pattern} is {found}: run `make dist`, which `make host-packaging` does"
    return found[0]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the one-folder build, unpacked from its archive."""
    folder = tmp_path_factory.mktemp("one-folder")
    with tarfile.open(built("context-sidecar-*-linux-x64.tar.gz")) as archive:
        archive.extractall(folder, filter="data")
    return folder / "context-sidecar" / "context-sidecar"


class Bare:
    """A home without anything, and a PATH with what was put there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.environment = {"HOME": str(folder), "PATH": str(self.bin), "LANG": "C.UTF-8"}

    def offer(self, *programs: str) -> None:
        """Put programs of this machine into PATH."""
        for name in programs:
            found = shutil.which(name)
            assert found is not None, f"{name} is missing here"
            (self.bin / name).symlink_to(os.path.realpath(found))

    def run(self, *command: str | Path, code: int = 0, **environment: str) -> str:
        """What a command printed, both streams together."""
        done = subprocess.run(
            [*map(str, command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            cwd=self.folder,
            env=self.environment | environment,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout


@pytest.fixture
def bare(tmp_path: Path) -> Bare:
    """A home without anything, and an empty PATH."""
    folder = tmp_path / "home"
    folder.mkdir()
    return Bare(folder)
