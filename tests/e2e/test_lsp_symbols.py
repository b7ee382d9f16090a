"""Editors get the outline of transcripts in every format that is imported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.editor import TREES, Editor, Json, piece
from tests.e2e.transcript_files import ANSWER, ASK, FILES, THANKS, openai

NAMESPACE, FUNCTION = 3, 12


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    with Editor() as editor:
        yield editor


@pytest.mark.parametrize("name", FILES)
def test_turns_hold_messages_and_messages_hold_calls(editor: Editor, name: str) -> None:
    first, second = editor.symbols(editor.open(FILES[name]))
    assert (first["name"], first["detail"], first["kind"]) == (f"t1: {ASK}", "4 messages", NAMESPACE)
    assert (second["name"], second["detail"]) == (f"t2: {THANKS}", "1 message")
    asked, called, output, answered = first["children"]
    assert [asked["name"], asked["detail"]] == [ASK, "user"]
    assert [output["name"], output["detail"]] == ["bash: a.txt b.txt", "tool result"]
    assert [answered["name"], answered["detail"]] == [ANSWER, "assistant"]
    (call,) = called["children"]
    assert (call["name"], call["kind"]) == ("bash", FUNCTION)
    assert json.loads(call["detail"]) == {"command": "ls"}
    assert not any(message.get("children") for message in (asked, output, answered))


@pytest.mark.parametrize("name", FILES)
def test_the_range_of_a_message_is_its_line_or_object(editor: Editor, name: str) -> None:
    text = FILES[name]
    turns = editor.symbols(editor.open(text))
    messages = [message for turn in turns for message in turn["children"]]
    for message, said in zip(messages, (ASK, "ls", "a.txt", ANSWER, THANKS), strict=True):
        source = piece(text, message["range"])
        assert isinstance(json.loads(source), dict)
        assert said in source
    starts = [piece(text, turn["range"]).splitlines()[0] for turn in turns]
    assert starts == [piece(text, turn["selectionRange"]) for turn in turns]


@pytest.mark.parametrize("name", FILES)
def test_children_stand_inside_their_parents(editor: Editor, name: str) -> None:
    def check(symbol: Json) -> None:
        outer = symbol["range"]
        inner = [symbol["selectionRange"], *(child["range"] for child in symbol.get("children", ()))]
        for place in inner:
            assert position(outer["start"]) <= position(place["start"])
            assert position(place["end"]) <= position(outer["end"])
        for child in symbol.get("children", ()):
            check(child)

    for turn in editor.symbols(editor.open(FILES[name])):
        check(turn)


def test_the_system_prompt_is_in_the_first_turn_which_the_user_names(editor: Editor) -> None:
    text = json.dumps([{"role": "system", "content": "Be brief."}, *openai()])
    first = editor.symbols(editor.open(text))[0]
    assert first["name"] == f"t1: {ASK}"
    assert [first["children"][0][member] for member in ("name", "detail")] == ["Be brief.", "system"]


def test_a_name_is_one_short_line(editor: Editor) -> None:
    text = json.dumps([{"role": "user", "content": "\n\n  many\n words " + "x" * 1000}])
    (turn,) = editor.symbols(editor.open(text))
    name = turn["children"][0]["name"]
    assert name.startswith("many words xxx") and name.endswith("...") and len(name) == 80


def test_a_message_that_says_nothing_still_has_a_name(editor: Editor) -> None:
    (turn,) = editor.symbols(editor.open(json.dumps([{"role": "assistant", "content": ""}])))
    assert turn["children"][0]["name"] == "assistant"


@pytest.mark.parametrize("text", ["", "\n", "# notes", '{"name": "a", "files": []}', "[1, 2]", '{"role":'])
def test_what_is_no_transcript_has_no_symbols(editor: Editor, text: str) -> None:
    assert editor.symbols(editor.open(text)) == []


def test_a_document_that_is_not_open_is_read_from_disk(editor: Editor, tmp_path: Path) -> None:
    file = tmp_path / "会话 1.jsonl"
    file.write_text(FILES["pi"], encoding="utf-8")
    assert [turn["name"] for turn in editor.symbols(file.as_uri())] == [f"t1: {ASK}", f"t2: {THANKS}"]


def test_a_document_that_is_nowhere_is_an_error_that_names_no_path(editor: Editor, tmp_path: Path) -> None:
    uri = (tmp_path / "none.jsonl").as_uri()
    error = editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})["error"]
    assert error["code"] == -32602 and error["data"]["path"] == "/textDocument/uri"
    assert str(tmp_path) not in json.dumps(error)


def test_wrong_params_are_named_as_on_the_wire(editor: Editor) -> None:
    error = editor.ask("textDocument/documentSymbol", {"textDocument": {}})["error"]
    assert error["code"] == -32602
    assert error["data"]["path"] == "/textDocument/uri"


def test_a_client_without_trees_gets_a_list() -> None:
    with Editor({"textDocument": {}}) as editor:
        symbols = editor.symbols(editor.open(FILES["openai-chat"]))
        assert [(symbol["name"], symbol.get("containerName")) for symbol in symbols[:3]] == [
            (f"t1: {ASK}", None),
            (ASK, f"t1: {ASK}"),
            (symbols[2]["name"], f"t1: {ASK}"),
        ]
        assert symbols[3]["name"] == "bash" and symbols[3]["containerName"] == symbols[2]["name"]
        assert {symbol["location"]["uri"] for symbol in symbols} == {"file:///session.jsonl"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_characters_count_in_the_units_that_the_client_prefers(encoding: str) -> None:
    line = json.dumps(openai()[0], ensure_ascii=False)
    with Editor({**TREES, "general": {"positionEncodings": [encoding]}}) as editor:
        assert editor.capabilities["positionEncoding"] == encoding
        (turn,) = editor.symbols(editor.open(line))
    width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    assert turn["range"]["end"]["character"] == len(line.encode(encoding + "-le" * (width > 1))) // width


def test_capabilities_of_no_known_form_are_passed_over() -> None:
    """Clients are ahead of servers: an unknown kind of symbol must not fail the handshake."""
    odd = {"workspace": {"symbol": {"symbolKind": {"valueSet": [99]}}}, "general": 5}
    with Editor({**TREES, **odd}) as editor:
        assert editor.capabilities["documentSymbolProvider"] is True
        assert len(editor.symbols(editor.open(FILES["pi"]))) == 2


def test_what_editors_get_stands_beside_the_context_engine(editor: Editor) -> None:
    assert editor.capabilities["textDocumentSync"] == {"openClose": True, "change": 2, "save": False}
    assert editor.capabilities["experimental"]["contextEngine"]["protocolVersion"] == "1.0"
    answer = editor.ask("context/ingest", {"sessionId": "s", "message": {"role": "user", "content": "hi"}})
    assert answer["result"]["ingested"] is True


def position(place: Json) -> tuple[int, int]:
    return place["line"], place["character"]
