"""What editors show of a stored session: what the model sees of it, and what its summaries were made of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.editor import TREES, Editor
from tests.e2e.sidecar_host import Host
from tests.e2e.transcript_files import lines

SHOW = "contextSidecar.showContext"
CAPABILITIES = {**TREES, "experimental": {"commands": {"commands": [SHOW]}}}
TALK = [
    {"role": role, "content": f"{role} {number}: " + "granite and basalt " * 60}
    for number in range(40)
    for role in ("user", "assistant")
]
LOSSLESS = {"contextEngine": {"namespace": "shared", "engine": "lossless"}}


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state directory of an agent that has compacted its session."""
    folder = tmp_path_factory.mktemp("agent")
    with Host(folder, namespace="shared", engine="lossless") as agent:
        agent.call("context/ingestBatch", sessionId="stones", messages=TALK)
        assert agent.call("context/compact", sessionId="stones", tokenBudget=6_000, force=True)["compacted"]
    return folder


@pytest.fixture(scope="module")
def editor(compacted: Path) -> Iterator[Editor]:
    """An editor on the store of the agent."""
    environment = {"CONTEXT_SIDECAR_STATE_DIR": str(compacted)}
    with Editor(CAPABILITIES, {"initializationOptions": LOSSLESS}, env=environment) as editor:
        yield editor


@pytest.fixture(scope="module")
def session(editor: Editor) -> str:
    return editor.open(lines(*TALK), "context-sidecar://session/stones")


def asked(editor: Editor, method: str, uri: str, **params: object) -> Any:
    answer = editor.ask(f"textDocument/{method}", {"textDocument": {"uri": uri}, **params})
    assert "result" in answer, answer
    return answer["result"]


def hover(editor: Editor, uri: str, line: int) -> str:
    position = {"line": line, "character": 3}
    return asked(editor, "hover", uri, position=position)["contents"]["value"]


def test_before_an_answer_hover_tells_which_summary_covers_a_message(editor: Editor, session: str) -> None:
    nodes = editor.ask("session/summaries", {"sessionId": "stones"})["result"]["summaries"]
    shown = hover(editor, session, 0)
    assert "What the model sees of it: summarised (summary " in shown
    assert any(node["nodeId"] in shown for node in nodes)
    assert "What the model sees" not in hover(editor, session, len(TALK) - 1)


def test_an_answer_tells_the_fate_of_each_message_and_turn(editor: Editor, session: str) -> None:
    params = {"sessionId": "stones", "tokenBudget": 6_000}
    answer = editor.ask("context/assemble", params)["result"]
    explained = editor.ask("context/explain", {"sessionId": "stones", "resultId": answer["resultId"]})[
        "result"
    ]["decisions"]
    fates = [decided["decision"] for decided in explained]
    assert len(fates) == len(TALK) and {"sent", "summarised"} <= set(fates)
    for line in (0, len(TALK) - 1):
        assert f"What the model sees of it: {fates[line]} (" in hover(editor, session, line)
    lenses = asked(editor, "codeLens", session)
    for number, lens in enumerate(lenses):
        pair = fates[2 * number : 2 * number + 2]
        seen = f"2 {pair[0]}" if pair[0] == pair[1] else f"1 {pair[0]}, 1 {pair[1]}"
        assert lens["command"]["title"].endswith(f"; the model sees {seen}")


def test_a_lens_names_its_turn_to_a_client_that_can_show_contexts(editor: Editor, session: str) -> None:
    lens = asked(editor, "codeLens", session)[2]
    assert lens["command"]["command"] == SHOW
    place = {"uri": session, "line": 4, "turnId": "t3", "sessionId": "stones"}
    assert lens["command"]["arguments"] == [place]


def test_the_definition_of_a_summary_is_what_it_was_made_of(editor: Editor) -> None:
    params = {"sessionId": "stones", "tokenBudget": 6_000}
    messages = editor.ask("context/assemble", params)["result"]["messages"]
    summaries = editor.ask("session/summaries", {"sessionId": "stones"})["result"]["summaries"]
    stored = editor.ask("session/export", {"sessionId": "stones"})["result"]["messages"]
    places = {each["messageId"]: line for line, each in enumerate(stored)}
    text = "".join(json.dumps(message) + "\n" for message in messages)
    for uri in ("context-sidecar://context/stones", "file:///kept.jsonl"):
        editor.open(text, uri)
        found = asked(editor, "definition", uri, position={"line": 0, "character": 3})
        assert {place["uri"] for place in found} == {"context-sidecar://session/stones"}
        node = next(node for node in summaries if node["nodeId"] in str(messages[0]))
        by_id = {each["nodeId"]: each for each in summaries}
        made_of = [by_id[source] for source in node["sources"]] or [node]
        assert [(place["range"]["start"]["line"], place["range"]["end"]["line"]) for place in found] == [
            (places[each["firstMessageId"]], places[each["lastMessageId"]] + 1) for each in made_of
        ]
        last = {"line": len(messages) - 1, "character": 3}
        assert asked(editor, "definition", uri, position=last) == []
