"""The way of an engine's author: scaffold, link, select, try out, check; then install a package."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.engine_shell import LIMIT_S, Shell, scratch_environment, wheel_of


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
    assert "my-engine answered a turn" in shell.run("doctor")
    assert "0 failed" in shell.run("engines", "check", "my-engine")
    assert "my-engine" in shell.run("engines", "list")
    assert "legacy is now" in shell.run("engines", "unlink", "my-engine")
    assert "legacy answered a turn" in shell.run("doctor")


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
    shell = scratch_environment(tmp_path)
    wheel = wheel_of(tmp_path)
    said = shell.run("engines", "install", str(wheel), "--no-index", "--no-deps")
    assert "installed wheeled (wheeled-engine 1.0)" in said
    shell.run("engines", "use", "wheeled")
    assert "wheeled answered a turn" in shell.run("doctor")
    gone = shell.run("engines", "uninstall", "wheeled")
    assert "removed wheeled-engine with wheeled" in gone and "legacy is now" in gone
    assert "legacy answered a turn" in shell.run("doctor")
