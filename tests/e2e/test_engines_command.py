"""The way of an engine's author: scaffold, link, select, try out, check; then install a package."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

LIMIT_S = 180
"""Installing and checking take their time on a busy machine."""

ENGINE = """
from sidecar.engine import Assembly, CompactOutcome, EngineInfo, Kept, StoringEngine

class Wheeled(StoringEngine):
    info = EngineInfo(id="wheeled", name="Wheeled", version="1")

    async def assemble(self, session, request):
        newest = await session.timeline.tail(request.budget)
        return Assembly(items=[Kept(entry) for entry in newest.entries])

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


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Commands in an empty folder, with an empty configuration."""
    (tmp_path / "config.toml").write_text("", encoding="utf-8")
    return Shell(tmp_path)


@pytest.mark.timeout(400)
def test_a_newcomers_way_from_nothing_to_a_checked_engine(shell: Shell) -> None:
    shell.run("engines", "new", "my_engine")
    assert "linked my-engine" in shell.run("engines", "link", "my_engine")
    assert "my-engine is selected" in shell.run("engines", "use", "my-engine")
    assert "a turn came out of my-engine" in shell.run("doctor")
    assert "0 failed" in shell.run("engines", "check", "my-engine")
    assert "my-engine" in shell.run("engines", "list")
    assert "legacy is now" in shell.run("engines", "unlink", "my-engine")
    assert "a turn came out of legacy" in shell.run("doctor")


def test_the_environment_restricts_which_engines_are_found(shell: Shell) -> None:
    shell.run("engines", "new", "my_engine")
    shell.run("engines", "link", "my_engine")
    assert "my-engine" in shell.run("engines", "list", SIDECAR_LOAD_ENGINES="other, my-engine")
    assert "my-engine" not in shell.run("engines", "list", SIDECAR_LOAD_ENGINES="other")
    nothing = shell.run("engines", "list", SIDECAR_LOAD_ENGINES="")
    assert "my-engine" not in nothing and "lossless" in nothing


def test_the_environment_traces_the_loading_of_engines(shell: Shell) -> None:
    shell.run("engines", "new", "my_engine")
    inline = '[plugins.entries.my-engine]\nisolation = "inline"\n'
    shell.config.write_text(inline, encoding="utf-8")
    shell.run("engines", "link", "my_engine")
    talk = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"initializationOptions":'
        '{"contextEngine":{"engine":"my-engine"}}}}\n'
    )

    def loading(traced: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "sidecar.cli.main", "serve"],
            input=talk,
            capture_output=True,
            encoding="utf-8",
            env=shell.environment | {"SIDECAR_TRACE_ENGINES": traced},
            timeout=LIMIT_S,
            check=False,
        ).stderr

    assert "loading my_engine:MyEngine" in loading("1") and "loaded in" in loading("yes")
    assert "loading my_engine" not in loading("0")


@pytest.mark.timeout(400)
def test_a_package_is_installed_and_removed_and_the_slot_does_not_dangle(tmp_path: Path) -> None:
    shell = _scratch_environment(tmp_path)
    wheel = _wheel(tmp_path)
    said = shell.run("engines", "install", str(wheel), "--no-index", "--no-deps")
    assert "installed wheeled (wheeled-engine 1.0)" in said
    shell.run("engines", "use", "wheeled")
    assert "a turn came out of wheeled" in shell.run("doctor")
    gone = shell.run("engines", "uninstall", "wheeled")
    assert "removed wheeled-engine with wheeled" in gone and "legacy is now" in gone
    assert "a turn came out of legacy" in shell.run("doctor")


def _scratch_environment(folder: Path) -> Shell:
    """An environment that finds our own packages and installs into itself."""
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], timeout=LIMIT_S, check=True)
    python = venv / "bin" / "python"
    packages = next((venv / "lib").glob("python*/site-packages"))
    ours = [str(Path(__file__).parents[2]), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    (packages / "ours.pth").write_text("\n".join(ours) + "\n", encoding="utf-8")
    (folder / "config.toml").write_text("", encoding="utf-8")
    return Shell(folder, python)


def _wheel(folder: Path) -> Path:
    """A package with one engine, as a build tool would write it."""
    wheel = folder / "wheeled_engine-1.0-py3-none-any.whl"
    info = "wheeled_engine-1.0.dist-info"
    files = {
        "wheeled.py": ENGINE,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: wheeled-engine\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[context_sidecar.engines]\nwheeled = wheeled:Wheeled\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    return wheel
