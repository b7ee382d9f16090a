"""Hints and clients name the package's origin, never a registry name that anybody could claim."""

import re
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path
from zipfile import ZipFile

import pytest

from sidecar import origin
from sidecar.codegen.generate import corrected, files

ROOT = Path(__file__).parents[2]
BARE = re.compile(
    r"(?:\b(?:install|uvx|npx|add|inject|run|exec|with)\s+[\"'`]?|(?<![./\w-]))(?<!/)context-sidecar\[|"
    r"\b(?:pip|pip3|pipx|tool|pipx run|uvx|npx|npm) (?:install |add |i )?[\"'`]*context-sidecar(?:-client)?\b"
)
FETCHING = re.compile(r"\b(?:uvx|npx)\b|\bpipx[\"', ]+run\b|\buv tool run\b")


def shown() -> list[Path]:
    """All texts with installation advice: the program, the clients, the documents."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [ROOT / line for line in listed.stdout.splitlines() if not line.startswith("tests/")]
    kinds = {".py", ".ts", ".lua", ".md", ".txt", ".json", ".mjs", ".toml"}
    return [path for path in paths if path.suffix in kinds and not path.name.endswith("lock.json")]


def test_no_hint_names_the_package_as_a_registry_would_find_it() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in shown()
        if path.name != "CHANGELOG.md"
        for match in BARE.finditer(path.read_text(encoding="utf-8"))
        if "@" not in path.read_text(encoding="utf-8")[match.end() : match.end() + 20]
    ]
    assert found == []


@pytest.mark.parametrize(
    "hint",
    [
        'pip install "context-sidecar[lsp]"',
        "Install context-sidecar[tokens], or choose",
        "pip install 'context-sidecar[http]'",
        "uv tool install context-sidecar",
        "npm install context-sidecar-client",
        "uvx context-sidecar serve",
    ],
)
def test_a_hint_that_names_a_registry_package_would_be_found(hint: str) -> None:
    assert BARE.search(hint)


def test_no_client_has_a_program_fetched() -> None:
    sources = [path for path in shown() if "src" in path.parts or "lua" in path.parts]
    assert [str(path) for path in sources if FETCHING.search(path.read_text(encoding="utf-8"))] == []


def test_every_command_of_documents_and_clients_names_the_origin() -> None:
    texts = [path.read_text(encoding="utf-8") for path in files(ROOT)]
    assert [text for text in texts if corrected(text) != text] == []
    assert sum(text.count(f'install "{origin.ORIGIN}') for text in texts) > 5


@pytest.mark.parametrize(
    ("source", "command", "npm"),
    [
        (
            "./context-sidecar",
            'uv tool install "./context-sidecar[lsp]"',
            "npm install --global ./context-sidecar/dist/*.tgz",
        ),
        (
            "dist/context-sidecar.whl",
            'uv tool install "dist/context-sidecar.whl[lsp]"',
            "npm install --global ./dist/*.tgz",
        ),
        (
            "git+https://example.org/context-sidecar",
            'uv tool install "context-sidecar[lsp] @ git+https://example.org/context-sidecar"',
            "npm install --global ./dist/*.tgz",
        ),
        (
            "context-sidecar",
            'uv tool install "context-sidecar[lsp]"',
            "npm install --global context-sidecar",
        ),
    ],
)
def test_the_constant_switches_commands_there_and_back(
    source: str, command: str, npm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (
        'Run `uv tool install "./context-sidecar[lsp]"`, '
        '`npm install --global ./context-sidecar/dist/*.tgz`, or see "elsewhere".'
    )
    monkeypatch.setattr(origin, "ORIGIN", source)
    switched = corrected(before)
    assert switched == f'Run `{command}`, `{npm}`, or see "elsewhere".'
    monkeypatch.undo()
    assert corrected(switched) == before


def test_every_extra_that_a_hint_names_exists() -> None:
    extras = set(metadata("context-sidecar").get_all("Provides-Extra") or ())
    call = re.compile(r"install_command\(['\"](\w+)")
    named = {name for path in shown() for name in call.findall(path.read_text(encoding="utf-8"))}
    assert named and named <= extras


def test_the_wheel_says_that_it_is_typed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=100)
    (wheel,) = tmp_path.glob("*.whl")
    assert "sidecar/py.typed" in ZipFile(wheel).namelist()
