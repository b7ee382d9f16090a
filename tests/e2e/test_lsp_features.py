"""What editors show around a transcript, in every format that is imported."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.editor import TREES, Editor, Json, piece
from tests.e2e.transcript_files import ANSWER, ASK, FILES, OUTPUT, THANKS, lines, openai

CAPABILITIES = {"textDocument": {**TREES["textDocument"], "publishDiagnostics": {}}}
WHOLE = {"start": {"line": 0, "character": 0}, "end": {"line": 10_000, "character": 0}}
BUDGET = 128_000


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    with Editor(CAPABILITIES) as editor:
        yield editor


@pytest.fixture(params=FILES)
def opened(request: pytest.FixtureRequest, editor: Editor) -> tuple[str, str]:
    """A transcript that is open: its text and its name."""
    text = FILES[request.param]
    return text, editor.open(text, f"file:///{request.node.nodeid}.jsonl")


def asked(editor: Editor, method: str, uri: str, **params: object) -> Json:
    answer = editor.ask(f"textDocument/{method}", {"textDocument": {"uri": uri}, **params})
    assert "result" in answer, answer
    return answer["result"]


def place_of(text: str, words: str) -> Json:
    """Where the words stand; JSON escapes are not looked into."""
    for number, line in enumerate(text.split("\n")):
        if words in line:
            front = line.partition(words)[0]
            return {"line": number, "character": len(front.encode("utf-16-le")) // 2}
    raise AssertionError(f"not in the text: {words}")


def result_in(text: str) -> Json:
    return place_of(text, "a.txt")


def published(editor: Editor, text: str, name: str) -> list[Json]:
    """The diagnostics of a document that is opened."""
    uri = editor.open(text, f"file:///{name}.jsonl")
    while True:
        message = editor.server.read()
        if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri:
            return message["params"]["diagnostics"]


def test_a_turn_folds_and_so_does_a_message_of_several_lines(editor: Editor, opened: tuple[str, str]) -> None:
    _, uri = opened
    folds = {(fold["startLine"], fold["endLine"]) for fold in asked(editor, "foldingRange", uri)}
    symbols = editor.symbols(uri)
    spans = [turn["range"] for turn in symbols] + [m["range"] for turn in symbols for m in turn["children"]]
    expected = {(span["start"]["line"], span["end"]["line"]) for span in spans}
    assert folds == {(start, end) for start, end in expected if start < end}
    assert folds


def test_hover_over_a_result_shows_the_call_it_answers(editor: Editor, opened: tuple[str, str]) -> None:
    text, uri = opened
    hover = asked(editor, "hover", uri, position=result_in(text))
    shown = hover["contents"]["value"]
    assert "t1" in shown and "message 3 of 5" in shown and "tokens" in shown
    assert OUTPUT in shown and "`bash`" in shown and '"ls"' in shown
    assert "a.txt" in piece(text, hover["range"])


def test_hover_over_a_call_shows_its_result(editor: Editor, opened: tuple[str, str]) -> None:
    _, uri = opened
    call = editor.symbols(uri)[0]["children"][1]["range"]["start"]
    shown = asked(editor, "hover", uri, position=call)["contents"]["value"]
    assert "message 2 of 5" in shown and "Calls `bash`" in shown and OUTPUT in shown


def test_every_message_has_a_hint_with_its_tokens(editor: Editor, opened: tuple[str, str]) -> None:
    _, uri = opened
    hints = asked(editor, "inlayHint", uri, range=WHOLE)
    messages = [message for turn in editor.symbols(uri) for message in turn["children"]]
    assert [hint["position"] for hint in hints] == [m["selectionRange"]["end"] for m in messages]
    assert all(int(hint["label"].removeprefix("~").split()[0]) > 4 for hint in hints)


def test_hints_are_those_of_the_lines_that_are_shown(editor: Editor) -> None:
    uri = editor.open(lines(*openai()), "file:///shown.jsonl")
    shown = {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 5}}
    hints = asked(editor, "inlayHint", uri, range=shown)
    assert [hint["position"]["line"] for hint in hints] == [1, 2]


def test_a_lens_above_each_turn_adds_the_tokens_up(editor: Editor, opened: tuple[str, str]) -> None:
    _, uri = opened
    hints = asked(editor, "inlayHint", uri, range=WHOLE)
    tokens = [int(hint["label"].removeprefix("~").split()[0]) for hint in hints]
    first, second = [lens["command"]["title"] for lens in asked(editor, "codeLens", uri)]
    assert first.startswith("t1: 4 messages") and f"{sum(tokens[:4])} tokens" in first
    assert second.startswith("t2: 1 message,") and f"{sum(tokens)} so far" in second
    assert f"% of {BUDGET:,}" in second


def test_the_definition_of_a_result_is_its_call_and_the_way_back_is_a_reference(
    editor: Editor, opened: tuple[str, str]
) -> None:
    text, uri = opened
    _, call, result, _ = editor.symbols(uri)[0]["children"]
    (found,) = asked(editor, "definition", uri, position=result_in(text))
    assert (found["uri"], found["range"]) == (uri, call["selectionRange"])
    context = {"includeDeclaration": False}
    (back,) = asked(editor, "references", uri, position=call["range"]["start"], context=context)
    assert back["range"] == result["selectionRange"]


def test_where_nothing_is_called_there_is_no_definition(editor: Editor, opened: tuple[str, str]) -> None:
    text, uri = opened
    for words in (ANSWER, THANKS):
        assert asked(editor, "definition", uri, position=place_of(text, words)) == []


def test_roles_are_coloured_where_they_are_named(editor: Editor, opened: tuple[str, str]) -> None:
    text, uri = opened
    provider = editor.capabilities["semanticTokensProvider"]
    kinds = provider["legend"]["tokenTypes"]
    data = asked(editor, "semanticTokens/full", uri)["data"]
    shown: list[tuple[str, str]] = []
    line = character = 0
    for at in range(0, len(data), 5):
        character = data[at + 1] + (character if data[at] == 0 else 0)
        line += data[at]
        end = {"line": line, "character": character + data[at + 2]}
        word = piece(text, {"start": {"line": line, "character": character}, "end": end})
        shown.append((json.loads(word), kinds[data[at + 3]]))
    assert len(shown) == 5
    assert [kind for _, kind in shown] == ["keyword", "string", "function", "string", "keyword"]
    assert shown[0][0] == "user"


def test_a_sound_transcript_has_no_diagnostics(editor: Editor) -> None:
    for name, text in FILES.items():
        assert published(editor, text, f"sound {name}") == []


def test_a_result_without_its_call_is_told_and_goes_when_it_is_mended(editor: Editor) -> None:
    asking, call, result, *rest = openai()
    (found,) = published(editor, lines(asking, result, *rest), "orphan")
    assert (found["code"], found["severity"], found["range"]["start"]["line"]) == (
        "result-without-call",
        2,
        1,
    )
    editor.change("file:///orphan.jsonl", {"text": lines(asking, call, result, *rest)})
    while (message := editor.server.read()).get("method") != "textDocument/publishDiagnostics":
        pass
    assert message["params"]["diagnostics"] == []


def test_an_interrupted_call_is_told_and_one_that_is_open_at_the_end_is_not(editor: Editor) -> None:
    asking, call, _, answer, _ = openai()
    assert published(editor, lines(asking, call), "open") == []
    (found,) = published(editor, lines(asking, call, answer), "interrupted")
    assert (found["code"], found["range"]["start"]["line"]) == ("call-without-result", 1)


def test_a_huge_result_and_the_end_of_the_window_are_told(editor: Editor) -> None:
    asking, call, result, *rest = openai()
    huge = {**result, "content": "one two three four " * 40_000}
    found = {d["code"]: d for d in published(editor, lines(asking, call, huge, *rest), "huge")}
    assert {code: d["range"]["start"]["line"] for code, d in found.items()} == {
        "over-budget": 2,
        "huge-result": 2,
    }


def test_workspace_symbols_are_stored_sessions_and_messages_in_them(editor: Editor) -> None:
    for session_id, words in (("stones/1", "granite and basalt"), ("trees", "birch and oak")):
        message = {"role": "user", "content": words}
        editor.ask("context/ingest", {"sessionId": session_id, "message": message})
    named = editor.ask("workspace/symbol", {"query": "tree"})["result"]
    assert [symbol["name"] for symbol in named] == ["trees"]
    found = editor.ask("workspace/symbol", {"query": "basalt"})["result"]
    assert [symbol["name"] for symbol in found] == ["user: granite and basalt"]
    assert found[0]["location"]["uri"] == "context-sidecar://session/stones%2F1#1"
    assert (named[0]["containerName"], found[0]["containerName"]) == ("1 message", "stones/1 t1")
    everything = editor.ask("workspace/symbol", {"query": ""})["result"]
    assert [symbol["name"] for symbol in everything][:2] == ["trees", "stones/1"]


def test_a_message_that_was_found_is_shown_where_it_matches(editor: Editor) -> None:
    around = "gravel and sand\n" * 400
    for text in (f"{around}the feldspar lies here\n{around}", "feldspar at the beginning " + around):
        message = {"role": "user", "content": text}
        editor.ask("context/ingest", {"sessionId": "quarry", "message": message})
    found = editor.ask("workspace/symbol", {"query": "feldspar"})["result"]
    names = sorted(symbol["name"] for symbol in found)
    assert [name.startswith("user: feldspar at the beginning") for name in names] == [True, False]
    assert "the feldspar lies here" in names[1] and names[1].startswith("user: …") and names[1].endswith("…")
    assert all(len(name) < 100 and "\n" not in name for name in names)


def test_hover_in_a_stored_session_tells_what_became_of_the_message(editor: Editor) -> None:
    messages = [
        {"role": role, "content": f"{role} {number}: " + "granite " * 200}
        for number in range(20)
        for role in ("user", "assistant")
    ]
    editor.ask("context/ingestBatch", {"sessionId": "cut", "messages": messages})
    uri = editor.open(lines(*messages), "context-sidecar://session/cut")
    oldest, newest = {"line": 0, "character": 5}, {"line": 39, "character": 5}
    before = asked(editor, "hover", uri, position=oldest)["contents"]["value"]
    assert "What the model sees" not in before
    answer = editor.ask("context/assemble", {"sessionId": "cut", "tokenBudget": 3_000})
    assert "result" in answer
    assert ": sent (" in asked(editor, "hover", uri, position=newest)["contents"]["value"]
    fate = asked(editor, "hover", uri, position=oldest)["contents"]["value"]
    assert ": dropped (" in fate or ": summarised (" in fate


def test_a_text_that_is_no_transcript_gets_nothing(editor: Editor) -> None:
    uri = editor.open("# notes\n", "file:///notes.md")
    position = {"line": 0, "character": 3}
    assert asked(editor, "hover", uri, position=position) is None
    assert asked(editor, "definition", uri, position=position) == []
    for method in ("foldingRange", "codeLens"):
        assert asked(editor, method, uri) == []
    assert asked(editor, "semanticTokens/full", uri)["data"] == []


def test_a_long_transcript_is_read_while_the_connection_goes_on(editor: Editor) -> None:
    """Its symbols are asked for first, and what came after is answered before them or after, but answered."""
    rows: list[Json] = []
    for number in range(300):
        rows += openai()
        rows[-2] = {"role": "assistant", "content": f"answer {number} " + "word " * 1_000}
    uri = editor.open(lines(*rows), "file:///long.jsonl")
    turns = editor.symbols(uri)
    assert len(turns) == 600
    assert len(asked(editor, "foldingRange", uri)) == 300
    assert ASK in turns[0]["name"]
