"""With Python alone, the commands of README's Install bring the sidecar in an empty home."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.roots.conftest import ROOT
from tests.roots.debian import Root, debian

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(600)]

SUITES = {"trixie": "3.13", "forky": "3.14"}
PROGRAM = "/root/.local/bin/context-sidecar"
EXTRAS = "http,inspect,lsp,mcp,otel,postgres,regex,semantic,tokens"


def with_python(suite: str, folder: Path) -> Root:
    """A Debian with its own Python, pipx, uv, and a checkout in the home folder."""
    root = Root(debian(suite, "python3-venv"), folder)
    assert f"Python {SUITES[suite]}." in root.run("python3", "--version")
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, timeout=60)
    for name in files.stdout.decode().split("\0")[:-1]:
        if not name.startswith(("clients/", "tests/")) and (ROOT / name).is_file():
            target = root.inside(f"/root/context-sidecar/{name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    root.run("python3", "-m", "venv", "/opt/tools")
    root.run("/opt/tools/bin/pip", "install", "--quiet", "uv", "pipx")
    for name in ("uv", "uvx", "pipx"):
        root.inside(f"/usr/local/bin/{name}").parent.mkdir(parents=True, exist_ok=True)
        root.inside(f"/usr/local/bin/{name}").symlink_to(f"/opt/tools/bin/{name}")
    return root


@pytest.fixture(params=SUITES)
def python(request: pytest.FixtureRequest, tmp_path: Path) -> Root:
    """See `with_python`."""
    return with_python(request.param, tmp_path)


def in_home(root: Root, command: str) -> str:
    """What a command line prints that is typed in the home folder."""
    return root.run("sh", "-c", f"cd && {command}", UV_PYTHON_DOWNLOADS="never")


def test_pip_pipx_and_uv_install_from_a_checkout_in_an_empty_home(python: Root) -> None:
    in_home(python, 'python3 -m venv own && own/bin/pip install -q "./context-sidecar"')
    assert "default answered a turn" in in_home(python, "own/bin/context-sidecar doctor")
    for runs_it in (
        'uvx --from "./context-sidecar" context-sidecar',
        'pipx run --spec "./context-sidecar" context-sidecar',
    ):
        assert "What to type next" in in_home(python, f"{runs_it} demo"), runs_it
    in_home(python, 'pipx install "./context-sidecar"')
    assert "default answered a turn" in python.run(PROGRAM, "doctor")
    in_home(python, "pipx uninstall context-sidecar")
    in_home(python, f'uv tool install "./context-sidecar[{EXTRAS}]"')
    said = python.run(PROGRAM, "doctor")
    assert "default answered a turn" in said and "counted exactly" in said
