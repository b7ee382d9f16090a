"""The check of generated files, on a copy of the source with one change."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.codegen.generate import TARGETS

ROOT = Path(__file__).parents[2]
TYPESCRIPT = "clients/typescript/src/protocol/types.ts"
METHODS = "clients/typescript/src/protocol/methods.ts"
ERRORS = "clients/typescript/src/protocol/errors.ts"
PINS = '    Method("session/pins", "session", "Lists the pins.", errors=_STORED),\n'
PROMPT = "    prompt: str | None = None\n"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the source and the generated files."""
    shutil.copytree(
        ROOT / "sidecar",
        tmp_path / "sidecar",
        ignore=shutil.ignore_patterns("__pycache__", "engines", "store"),
    )
    for target in TARGETS:
        made = tmp_path / target.path
        made.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / target.path, made)
    return tmp_path


def check(copy: Path) -> tuple[int, str]:
    """Exit status and output of the check in a copy."""
    done = subprocess.run(
        [sys.executable, "-m", "sidecar.cli.main", "schema", "--check", "--out", "."],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


def edit(copy: Path, name: str, old: str, new: str) -> None:
    """Replace a piece of the source that is there once or more; the first one."""
    path = copy / "sidecar/protocol" / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_an_unchanged_copy_passes(copy: Path) -> None:
    assert check(copy) == (0, "")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (PROMPT, PROMPT.replace("prompt", "question")),
        (PROMPT, PROMPT.replace("str", "int")),
        (PROMPT, PROMPT.replace("str | None = None", "str")),
    ],
    ids=["renamed", "of another type", "required now"],
)
def test_a_field_that_changes_makes_the_typescript_types_stale(copy: Path, old: str, new: str) -> None:
    edit(copy, "assemble.py", old, new)
    status, said = check(copy)
    assert status == 1
    assert f"{TYPESCRIPT}: differs; run `context-sidecar schema`" in said


def test_a_method_that_is_gone_makes_the_method_table_stale(copy: Path) -> None:
    edit(
        copy, "methods.py", '    Method("session/pins", "session", "Lists the pins.", errors=_STORED),\n', ""
    )
    status, said = check(copy)
    assert status == 1
    assert METHODS in said


def test_an_error_with_another_number_makes_the_error_table_stale(copy: Path) -> None:
    edit(copy, "errors.py", "1007", "1017")
    status, said = check(copy)
    assert status == 1
    assert ERRORS in said


def test_a_client_that_is_edited_by_hand_fails_the_check(copy: Path) -> None:
    types = copy / TYPESCRIPT
    types.write_text(types.read_text(encoding="utf-8").replace("estimatedTokens", "tokens"), encoding="utf-8")
    status, said = check(copy)
    assert status == 1
    assert TYPESCRIPT in said
