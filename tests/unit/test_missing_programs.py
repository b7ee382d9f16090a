"""A machine that lacks a program runs everything else, and reports what it did not run."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.missing_programs import LEFT_OUT, leave_out, table

ROOT = Path(__file__).parents[2]
TOOLS = ["awk", "bash", "cat", "dirname", "env", "grep", "head", "id", "ln", "mkdir", "rm", "sed", "sort"]
TOOLS += ["tee", "touch", "tr"]
PROGRAMS = ["node", "gcc", "strace", "emacs"]


class Machine:
    """A checkout on a machine without a package manager, which has the programs that are put onto it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        shutil.copytree(ROOT / ".ci", folder / "checkout/.ci")
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name) or name)

    def put(self, name: str) -> None:
        """Install a program that reports a given version."""
        (self.bin / name).write_text("#!/bin/sh\necho 99.0\n")
        (self.bin / name).chmod(0o755)

    def set_up(self, *arguments: str) -> int:
        """The exit status of the set-up."""
        surroundings = {"PATH": str(self.bin), "HOME": str(self.folder)}
        command = [".ci/setup", *arguments]
        checkout = self.folder / "checkout"
        return subprocess.run(
            command, cwd=checkout, env=surroundings, capture_output=True, check=False
        ).returncode

    @property
    def missing(self) -> list[str]:
        """What the set-up noted."""
        return (self.folder / "checkout/.tools/missing").read_text().splitlines()


@pytest.mark.parametrize("lacking", PROGRAMS)
def test_the_setup_notes_the_one_program_that_cannot_be_had(lacking: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    for name in {*PROGRAMS, "npm"} - {lacking}:
        machine.put(name)
    why = "its wheel could not be installed" if lacking == "node" else "there is no apt-get"
    assert machine.set_up(*PROGRAMS) == 0
    assert machine.missing == [f"{lacking}\t{why}"]
    assert machine.set_up("--all", *PROGRAMS) == 1


def test_a_program_that_came_later_is_no_longer_noted(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.set_up("strace", "emacs")
    machine.put("strace")
    machine.set_up("strace", "emacs")
    assert [line.partition("\t")[0] for line in machine.missing] == ["emacs"]


def test_the_table_has_a_row_for_each_group_with_its_reason() -> None:
    reasons = [f"Skipped: {LEFT_OUT}emacs: no sudo"] * 2 + [
        f"Skipped: {LEFT_OUT}node: offline",
        "Skipped: other",
    ]
    assert table(reasons) == [
        "group  tests  why it did not run",
        "emacs      2  no sudo",
        "node       1  offline",
    ]


def test_nothing_is_shown_where_everything_ran() -> None:
    assert table([]) == []


def test_where_every_group_is_asked_for_a_missing_program_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(os.environ, "EVERY_GROUP", "1")
    with pytest.raises(pytest.fail.Exception, match="left out without emacs"):
        leave_out("emacs")
