"""Symbols follow a transcript while it is edited, also where it is broken for the moment."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e.editor import Editor, Json, edit
from tests.e2e.transcript_files import ASK, FILES, THANKS, claude_code, document, lines, openai, pi
from tests.wire.harness import request


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    with Editor() as editor:
        yield editor


def names(turns: list[Json]) -> list[str]:
    return [message["name"] for turn in turns for message in turn["children"]]


def two_users(first: str, second: str, ending: str = "\n") -> str:
    rows = [{"role": "user", "content": text} for text in (first, second)]
    return "".join(json.dumps(row, ensure_ascii=False) + ending for row in rows)


def column(text: str, line: int, words: str) -> int:
    """Where the words begin in a line, in UTF-16."""
    front = text.split("\n")[line].partition(words)[0]
    return len(front.encode("utf-16-le")) // 2


def test_an_edit_changes_what_it_covers(editor: Editor) -> None:
    text = two_users("一😀 two", "three")
    uri = editor.open(text)
    start = column(text, 0, "two")
    editor.change(uri, edit(0, start, start + 3, "zwei"))
    assert names(editor.symbols(uri)) == ["一😀 zwei", "three"]


@pytest.mark.parametrize("odd", ["\u2028", "\u0085", "\u2029", "\x7f"])
def test_only_line_breaks_divide_lines(editor: Editor, odd: str) -> None:
    """Python's splitlines divides at more characters; an edit behind one would go astray."""
    text = two_users(f"a{odd}b", "three")
    uri = editor.open(text)
    start = column(text, 1, "three")
    editor.change(uri, edit(1, start, start + 5, "drei"))
    assert names(editor.symbols(uri))[1] == "drei"


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_break_counts(editor: Editor, ending: str) -> None:
    text = json.dumps([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}], indent=1)
    text = text.replace("\n", ending)
    uri = editor.open(text)
    editor.change(uri, edit(7, 14, 17, "zwei"))
    turns = editor.symbols(uri)
    assert names(turns) == ["one", "zwei"]
    assert [turn["range"]["start"]["line"] for turn in turns] == [1, 5]


def test_several_changes_apply_one_after_the_other(editor: Editor) -> None:
    uri = editor.open(two_users("one", "two"))
    line = json.dumps({"role": "user", "content": "zero"}) + "\n"
    editor.change(
        uri, edit(0, 0, 0, line), edit(1, 0, 0, "", end_line=2), {"text": two_users("x", "y") + line}
    )
    assert names(editor.symbols(uri)) == ["x", "y", "zero"]


def test_positions_behind_the_end_mean_the_end(editor: Editor) -> None:
    uri = editor.open(two_users("one", "two"))
    editor.change(uri, edit(0, 0, 999, "", end_line=999))
    assert editor.symbols(uri) == []
    editor.change(uri, edit(99, 9, 9, two_users("three", "four")), version=3)
    assert names(editor.symbols(uri)) == ["three", "four"]


def test_appended_rows_appear(editor: Editor) -> None:
    rows = pi().splitlines(keepends=True)
    uri = editor.open("".join(rows[:2]))
    assert names(editor.symbols(uri)) == [ASK]
    for number, row in enumerate(rows[2:], 2):
        editor.change(uri, edit(number, 0, 0, row), version=number)
    assert [turn["name"] for turn in editor.symbols(uri)] == [f"t1: {ASK}", f"t2: {THANKS}"]


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name].count("\n{") > 2])
def test_stray_lines_do_not_hide_the_others(editor: Editor, name: str) -> None:
    rows = FILES[name].splitlines(keepends=True)
    whole = names(editor.symbols(editor.open(FILES[name])))
    broken = "".join(row + "{half a row\n\n" for row in rows) + '{"role": "user", "content": "to'
    assert names(editor.symbols(editor.open(broken))) == whole


@pytest.mark.parametrize("name", ["openai-chat", "anthropic-messages", "swe-agent"])
def test_whole_messages_of_a_torn_document_stay(editor: Editor, name: str) -> None:
    text = FILES[name]
    whole = names(editor.symbols(editor.open(text)))
    torn = text[: text.index(THANKS) + 3]
    # Entries of a torn trajectory are read as plain messages, whose results name their calls otherwise.
    found = names(editor.symbols(editor.open(torn)))
    assert [name.removeprefix("bash: ") for name in found] == [
        name.removeprefix("bash: ") for name in whole[:4]
    ]


def test_a_torn_document_is_not_taken_for_lines_of_messages(editor: Editor) -> None:
    """Its last row is a message as it stands; the others end in a comma."""
    rows = ",\n".join(json.dumps(message, ensure_ascii=False) for message in openai())
    assert len(names(editor.symbols(editor.open(f'{{"messages": [\n{rows}\n')))) == 5


def test_a_message_that_is_being_typed_does_not_hide_its_neighbours(editor: Editor) -> None:
    text = document(openai())
    uri = editor.open(text)
    line = next(number for number, row in enumerate(text.split("\n")) if "Two files." in row)
    end = len(text.split("\n")[line])
    editor.change(uri, edit(line, end - 1, end, ""))
    turns = editor.symbols(uri)
    assert [turn["name"] for turn in turns] == [f"t1: {ASK}", f"t2: {THANKS}"]
    assert [len(turn["children"]) for turn in turns] == [3, 1]
    editor.change(uri, edit(line, end - 1, end - 1, '"'), version=3)
    assert [len(turn["children"]) for turn in editor.symbols(uri)] == [4, 1]


def test_every_beginning_of_a_file_has_an_outline(editor: Editor) -> None:
    """As an editor sees it while the file is written; nothing that was whole ever goes."""
    text = claude_code()
    uri = editor.open("")
    seen = 0
    for end in range(0, len(text), 97):
        editor.change(uri, {"text": text[:end]})
        found = len(names(editor.symbols(uri)))
        assert found >= seen
        seen = found
    assert seen >= 4


def test_a_change_of_a_document_that_is_not_open_is_ignored(editor: Editor) -> None:
    editor.change("file:///never-opened.jsonl", {"text": "x"})
    editor.server.say(request("bad", "textDocument/documentSymbol", {}))
    assert editor.server.answer("bad")["error"]["code"] == -32602
    assert names(editor.symbols(editor.open(two_users("one", "two")))) == ["one", "two"]


def test_after_didclose_the_text_is_that_of_the_disk(editor: Editor, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text(two_users("on disk", "b"), encoding="utf-8")
    uri = editor.open(two_users("in the editor", "b"), file.as_uri())
    assert names(editor.symbols(uri)) == ["in the editor", "b"]
    editor.close(uri)
    assert names(editor.symbols(uri)) == ["on disk", "b"]


def test_an_editor_leaves_with_exit_code_0() -> None:
    with Editor() as editor:
        editor.symbols(editor.open(FILES["codex"]))
        assert editor.leave() == 0
        assert editor.server.rest() == []


def test_five_megabytes_can_be_edited(editor: Editor) -> None:
    rows: list[Json] = []
    for number in range(1000):
        rows += openai()
        rows[-2] = {"role": "assistant", "content": f"answer {number} " + "word 字 " * 600}
    text = lines(*rows)
    size = len(text.encode()) / 1e6
    assert size > 5
    clock = [time.perf_counter()]
    uri = editor.open(text)
    assert len(editor.symbols(uri)) == 2000
    clock.append(time.perf_counter())
    assert len(editor.symbols(uri)) == 2000
    clock.append(time.perf_counter())
    for number in range(20):
        editor.change(uri, edit(4, 29, 29, "x"), version=number + 2)
    assert editor.symbols(uri)[1]["name"] == f"t2: {'x' * 20}{THANKS}"
    clock.append(time.perf_counter())
    opened, again, changed = (1000 * (after - before) for before, after in pairwise(clock))
    print(
        f"\n{size:.1f} MB on {os.cpu_count()} cores: opened and outlined {opened:.0f} ms, asked again "
        f"{again:.0f} ms, 20 edits and the outline {changed:.0f} ms"
    )
