"""No command runs modules that lie in the folder in which it is typed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client_kit import PROGRAM, conversation, write_lines
from tests.engine_gallery import GALLERY

NAMES = ("msgspec", "apsw", "click", "rich", "pydantic", "pip", "tomllib", "asyncio", "sidecar")
LIMIT_S = 110
COMMANDS = (
    ("doctor",),
    ("demo",),
    ("replay", "talk.jsonl"),
    ("eval", "asked.jsonl", "--budgets", "8k"),
    ("sessions", "list"),
    ("sessions", "import", "talk.jsonl"),
    ("engines", "list"),
    ("engines", "check", "gallery", "--only", "names_itself"),
    ("engines", "uninstall", "no-such-package"),
    ("memory", "show", "talk"),
    ("db", "check"),
    ("config", "show"),
    ("conformance", "engine", "sidecar.engines.full:FullEngine", "--only", "names_itself"),
    ("conformance", "server", "--only", "lifecycle/exit_alone", "--", PROGRAM, "serve"),
)


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder full of modules that leave a trace where they are run, with files for the commands."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in NAMES:
        trace = f"open({str(tmp_path / 'ran')!r}, 'a').write({name + chr(10)!r})\nraise SystemExit(9)\n"
        (folder / f"{name}.py").write_text(trace, encoding="utf-8")
    write_lines(folder / "talk.jsonl", conversation(turns=2, words=10))
    question = {"id": "q", "type": "fact", "prompt": "What?", "evidence": [[0]]}
    said = [{"id": 0, "role": "user", "content": "a word"}]
    write_lines(folder / "asked.jsonl", [{"session_id": "s", "messages": said, "questions": [question]}])
    (tmp_path / "config.toml").write_text(f'[plugins.load]\npaths = ["{GALLERY}"]\n', encoding="utf-8")
    return folder


def typed(folder: Path, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    root = folder.parent if folder.name == "hostile" else folder
    state, config = root / "state", root / "config.toml"
    environment = {
        **os.environ,
        "CONTEXT_SIDECAR_STATE_DIR": str(state),
        "CONTEXT_SIDECAR_CONFIG": str(config),
    }
    environment.pop("PYTHONPATH", None)
    if path is not None:
        environment["PYTHONPATH"] = path
    return subprocess.run(
        [PROGRAM, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        check=False,
    )


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_runs_nothing_that_lies_where_it_is_typed(
    arguments: tuple[str, ...], planted: Path
) -> None:
    done = typed(planted, *arguments)
    assert not (planted.parent / "ran").exists(), (planted.parent / "ran").read_text()
    assert "Traceback" not in done.stderr


def test_an_engine_in_a_process_of_its_own_does_not_either(planted: Path) -> None:
    done = typed(planted, "doctor", "--engine", "gallery", "--json")
    turn = next(check for check in json.loads(done.stdout)["checks"] if check["name"] == "turn")
    assert turn["ok"], turn
    assert not (planted.parent / "ran").exists()


@pytest.mark.parametrize("entry", ["", "."])
def test_an_entry_of_the_import_path_for_the_working_directory_is_warned_about(
    entry: str, planted: Path
) -> None:
    harmless = planted.parent
    path = os.pathsep.join((str(harmless), entry))
    done = typed(harmless, "doctor", "--json", path=path)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert "PYTHONPATH has an empty or relative entry" in done.stderr
    assert done.stderr.count("PYTHONPATH") == 1
    # The sidecar that the command starts is spared it.
    assert checks["settings"]["ok"]


def test_a_server_with_such_an_entry_says_so(tmp_path: Path) -> None:
    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sidecar.cli.main", "serve"],
        input=hello,
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep, "CONTEXT_SIDECAR_STATE_DIR": str(tmp_path)},
        timeout=LIMIT_S,
        check=False,
    )
    assert b"PYTHONPATH has an empty or relative entry" in done.stderr
