"""Engines from outside run in the Python that `engines.python` names."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from sidecar.server.configuration.resolve import resolve
from tests.e2e.engine_shell import Shell, scratch_environment, wheel_of


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Commands of this environment, which has no engine from outside."""
    (tmp_path / "config.toml").write_text("", encoding="utf-8")
    return Shell(tmp_path)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A Python of another environment, in which an engine is installed."""
    folder = tmp_path / "other"
    folder.mkdir()
    python = Path(scratch_environment(folder).python)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    with ZipFile(wheel_of(folder)) as wheel:
        wheel.extractall(packages)
    return python


def name(shell: Shell, python: Path) -> None:
    """Name that Python in the configuration file."""
    text = f"[engines]\npython = '{python}'\n[plugins.slots]\ncontextEngine = 'wheeled'\n"
    shell.config.write_text(text, encoding="utf-8")


def test_an_engine_of_another_environment_serves_where_its_python_is_named(shell: Shell, other: Path) -> None:
    assert "wheeled" not in shell.run("engines", "list")
    name(shell, other)
    said = shell.run("doctor")
    assert "wheeled answered a turn" in said
    assert f"engines from outside run in {other}, set by engines.python" in said
    assert "package wheeled-engine 1.0" in shell.run("engines", "show", "wheeled")


def test_the_process_of_the_engine_is_the_named_python(shell: Shell, other: Path) -> None:
    name(shell, other)
    with shell.client() as host:
        host.call("context/ingest", sessionId="s", message={"role": "user", "content": "Hello"})
        host.call("context/assemble", sessionId="s", tokenBudget=1000)
        children = Path(f"/proc/{host.process.pid}/task/{host.process.pid}/children").read_text().split()
        programs = [Path(f"/proc/{child}/cmdline").read_text().split("\0")[0] for child in children]
    assert programs == [str(other)]


def test_a_python_without_this_package_is_refused_with_what_to_do(shell: Shell, tmp_path: Path) -> None:
    venv = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=60)
    python = venv / "bin" / "python"
    name(shell, python)
    said = shell.run("doctor", code=1)
    assert "there is no engine 'wheeled'" in said
    assert "No module named 'sidecar'" in said and 'python -m pip install "./context-sidecar"' in said
    shell.config.write_text(f"[engines]\npython = '{python}'\n", encoding="utf-8")
    said = shell.run("doctor", code=1)
    assert "those built in can" in said and f"{python} cannot run engines" in said


def test_a_python_of_another_version_of_this_package_is_refused(
    shell: Shell, other: Path, tmp_path: Path
) -> None:
    package = next((other.parents[1] / "lib").glob("python*/site-packages")) / "sidecar"
    package.mkdir()
    (package / "__init__.py").write_text(
        "__version__ = '9.9'\n__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"
    )
    name(shell, other)
    assert "has context-sidecar 9.9, but this is" in shell.run("doctor", code=1)


def test_a_name_that_is_no_program_is_told(shell: Shell) -> None:
    name(shell, Path("no-such-python"))
    assert "engines.python names no-such-python, which is not a program" in shell.run("doctor", code=1)


def test_an_engine_for_another_python_does_not_run_inside_this_one(shell: Shell, other: Path) -> None:
    name(shell, other)
    with shell.config.open("a", encoding="utf-8") as file:
        file.write("[plugins.entries.wheeled]\nisolation = 'inline'\n")
    assert "its isolation cannot be `inline`" in shell.run("doctor", code=1)


def test_a_host_cannot_name_a_python(shell: Shell, other: Path) -> None:
    settings = resolve(file=shell.config, overrides={"engines": {"python": str(other)}}, environ={})
    assert settings.engines_python is None
    assert any("engines" in warning for warning in settings.warnings)
