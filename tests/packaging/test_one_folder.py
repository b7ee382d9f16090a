"""The one-folder build does everything without a Python."""

import subprocess
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.e2e.engine_shell import scratch_environment, wheel_of
from tests.e2e.sidecar_host import COMMAND, Host, Refused
from tests.packaging.conftest import ROOT, Bare

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(400)]


def test_the_demo_runs_without_a_python(program: Path, bare: Bare) -> None:
    assert "context-sidecar doctor" in bare.run(program, "demo")


def test_the_doctor_finds_nothing_wrong_and_counts_exactly(program: Path, bare: Bare) -> None:
    said = bare.run(program, "doctor")
    assert "default answered a turn" in said and "WRONG" not in said
    assert "counted exactly" in said
    assert "PATH has no python3" in said, "the doctor says that engines from outside need a Python"


def test_the_suite_for_servers_passes(program: Path) -> None:
    command = [COMMAND[0], "conformance", "server", "--quiet", "--", str(program), "serve"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=380, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_programs_that_it_starts_do_not_load_its_libraries(program: Path, bare: Bare) -> None:
    code = "import os, subprocess; subprocess.run(['/usr/bin/env'])"
    assert "LD_LIBRARY_PATH" not in bare.run(program, "-c", code)
    assert "LD_LIBRARY_PATH=/mine" in bare.run(program, "-c", code, LD_LIBRARY_PATH="/mine")


def test_what_it_lacks_is_said_with_a_way_to_it(program: Path, bare: Bare) -> None:
    config = bare.folder / "c.toml"
    config.write_text("[store]\nkind = 'postgres'\nurl = 'postgresql://localhost/x'\n", encoding="utf-8")
    said = bare.run(program, "doctor", "--config", config, code=1)
    assert 'uv tool install "./context-sidecar[postgres]"' in said


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """A Python of the user's, with this package and an engine."""
    python = Path(scratch_environment(tmp_path).python)
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    with ZipFile(wheel_of(tmp_path)) as wheel:
        wheel.extractall(packages)
    return python


def selected(bare: Bare, python: Path | None = None) -> Path:
    """A configuration that selects the engine, and names a Python."""
    config = bare.folder / "config.toml"
    named = f"[engines]\npython = '{python}'\n" if python else ""
    config.write_text(f"{named}[plugins.slots]\ncontextEngine = 'wheeled'\n", encoding="utf-8")
    return config


def test_an_engine_from_outside_is_refused_without_a_python_and_told_how(program: Path, bare: Bare) -> None:
    said = bare.run(program, "doctor", "--config", selected(bare), code=1)
    assert "there is no engine 'wheeled'" in said and "PATH has no python3" in said
    assert "engines.python" in said


def test_an_engine_from_outside_runs_in_the_named_python(program: Path, bare: Bare, engine: Path) -> None:
    said = bare.run(program, "doctor", "--config", selected(bare, engine))
    assert "wheeled answered a turn" in said
    assert f"engines from outside run in {engine}, set by engines.python" in said


def test_an_engine_from_outside_runs_in_the_active_environment(
    program: Path, bare: Bare, engine: Path
) -> None:
    said = bare.run(program, "doctor", "--config", selected(bare), PATH=str(engine.parent))
    assert "wheeled answered a turn" in said and "found on PATH" in said


def test_a_built_in_engine_can_have_a_process_of_its_own(program: Path, bare: Bare) -> None:
    config = bare.folder / "config.toml"
    config.write_text("[plugins.entries.default]\nisolation = 'process'\n", encoding="utf-8")
    assert "default answered a turn" in bare.run(program, "doctor", "--config", config)


def message(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def texts(host: Host) -> list[str]:
    answer = host.call("context/assemble", sessionId="s", tokenBudget=4000)
    return [one["content"] for one in answer["messages"]]


def test_python_package_and_build_take_turns_on_a_store_in_use(program: Path, tmp_path: Path) -> None:
    """An upgrade and the way back, while a process of the other installation still runs."""
    state, build = tmp_path / "state", (str(program), "serve")
    with Host(state) as old:
        old.call("context/ingest", sessionId="s", message=message("by the package"))
        with Host(state, command=build) as new:
            assert texts(new) == ["by the package"]
            new.call("context/ingest", sessionId="s", message=message("by the build"))
        assert texts(old) == ["by the package", "by the build"]
        old.call("context/ingest", sessionId="s", message=message("back again"))
    with Host(state, command=build) as new:
        assert texts(new) == ["by the package", "by the build", "back again"]
    with Host(state) as old:
        assert texts(old) == ["by the package", "by the build", "back again"]


def test_a_newer_store_is_refused_clearly_and_left_as_it_is(program: Path, tmp_path: Path) -> None:
    import apsw

    state, build = tmp_path / "state", (str(program), "serve")
    with Host(state) as host:
        host.call("context/ingest", sessionId="s", message=message("kept"))
    store = state / "context.db"
    with apsw.Connection(str(store)) as connection:
        version = connection.pragma("user_version")
        connection.pragma("user_version", version + 1)
    connection.close()
    with Host(state, command=build, initialized=False) as host:
        with pytest.raises(Refused, match="schema version") as refusal:
            host.initialize()
        assert "Update context-sidecar" in refusal.value.data["hint"]
    with apsw.Connection(str(store)) as connection:
        assert connection.pragma("user_version") == version + 1
        connection.pragma("user_version", version)
    connection.close()
    with Host(state, command=build) as host:
        assert texts(host) == ["kept"]


def test_the_version_is_the_packages(program: Path, bare: Bare) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version in bare.run(program, "--version")
