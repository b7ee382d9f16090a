"""A command line with a configuration, a state and an environment of its own, and packages to put into it."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

from tests.e2e.sidecar_host import Host

LIMIT_S = 180
"""Installing and checking take their time on a busy machine."""

ENGINE = """
from pydantic import BaseModel
from sidecar.engine import Assembly, CompactOutcome, EngineInfo, Kept, StoringEngine

class Greeting(BaseModel):
    greeting: str = ""

class Wheeled(StoringEngine):
    settings_model = Greeting
    info = EngineInfo(id="wheeled", name="Wheeled", version="1")

    async def assemble(self, session, request):
        newest = await session.timeline.tail(request.budget)
        greeting = self.host.settings(Greeting).greeting
        return Assembly(items=[Kept(e) for e in newest.entries], system_prompt_addition=greeting or None)

    async def compact(self, session, request):
        return CompactOutcome(compacted=False, reason="never")
"""


class Shell:
    """Runs commands with a configuration and a state of their own."""

    def __init__(self, folder: Path, python: Path | str = sys.executable) -> None:
        self.folder = folder
        self.python = str(python)
        self.config = folder / "config.toml"
        self.environment = {
            **os.environ,
            "CONTEXT_SIDECAR_CONFIG": str(self.config),
            "CONTEXT_SIDECAR_STATE_DIR": str(folder / "state"),
        }

    def run(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """What a command printed, both streams together."""
        done = subprocess.run(
            [self.python, "-m", "sidecar.cli.main", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            cwd=self.folder,
            env=self.environment | environment,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    def client(self) -> Host:
        """A host of a sidecar in this environment."""
        command = (self.python, "-m", "sidecar.cli.main", "serve")
        return Host(self.folder / "state", command=command, environment=self.environment)


def scratch_environment(folder: Path) -> Shell:
    """An environment that finds our own packages and installs into itself."""
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], timeout=LIMIT_S, check=True)
    python = venv / "bin" / "python"
    packages = next((venv / "lib").glob("python*/site-packages"))
    ours = [str(Path(__file__).parents[2]), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    (packages / "ours.pth").write_text("\n".join(ours) + "\n", encoding="utf-8")
    (folder / "config.toml").write_text("", encoding="utf-8")
    return Shell(folder, python)


def wheel_of(folder: Path) -> Path:
    """A package with one engine, as a build tool would write it."""
    file = folder / "wheeled_engine-1.0-py3-none-any.whl"
    info = "wheeled_engine-1.0.dist-info"
    files = {
        "wheeled.py": ENGINE,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: wheeled-engine\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[context_sidecar.engines]\nwheeled = wheeled:Wheeled\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    return file
