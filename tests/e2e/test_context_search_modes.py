"""`context_search`: what each mode shows of a stored session."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.sidecar_host import Host
from tests.e2e.talk import Talk
from tests.e2e.terse_sessions import search, tell_turns, use_terse

FOLDER = Path(__file__).parents[2] / "spec" / "vectors" / "context-search"
SESSION = json.loads((FOLDER / "session.json").read_text(encoding="utf-8"))
VECTORS = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.json"))}
del VECTORS["session"]
STORING = ("full", "terse", "default")


@pytest.fixture
def told(host: Host, session: str) -> Host:
    """A session of 12 turns with 4 messages each."""
    tell_turns(host, session, 1, 12, summary=None, words=0)
    return host


def call(host: Host, session: str, **arguments: Any) -> dict[str, Any]:
    return host.call("tools/call", sessionId=session, name="context_search", arguments=arguments)


@pytest.fixture(scope="module")
def told_vectors(serving_hosts: Callable[[str], Host]) -> Host:
    """The session of the vectors, under that name."""
    host = serving_hosts("openai")
    for message in SESSION:
        host.call("context/ingest", sessionId="context-search-vectors", message=message)
    return host


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_holds(told_vectors: Host, name: str) -> None:
    case = VECTORS[name]
    result = call(told_vectors, "context-search-vectors", **case["arguments"])
    assert result["content"][0]["text"].split("\n") == case["text"]
    assert result.get("isError", False) is case.get("isError", False)
    hits = result.get("structuredContent", {}).get("hits")
    assert hits == case.get("hits") or [(h["turnId"], h["text"]) for h in hits] == [
        (hit["turnId"], hit["text"]) for hit in case["hits"]
    ]


def test_every_mode_has_a_vector() -> None:
    modes = {case["arguments"]["mode"] for case in VECTORS.values()}
    assert modes == {"search", "relevant", "turn", "tail", "head"}


def test_search_shows_two_messages_around_a_match(told: Host, session: str) -> None:
    text = search(told, session, mode="search", query="ANSWER 5")
    assert text.splitlines() == [
        "--- messages 18-22 of 48 ---",
        "[assistant t5] [tool: read({})]",
        "[tool t5] read: result 5",
        "[assistant t5] answer 5",
        "[user t6] question 6",
        "[assistant t6] [tool: read({})]",
    ]


@pytest.mark.parametrize(
    ("before", "after", "headings"),
    [
        (0, 0, ["1-1", "37-37", "41-41", "45-45"]),
        (1, 2, ["1-3", "36-39", "40-43", "44-47"]),
        (2, 1, ["1-2", "35-38", "39-42", "43-46"]),
        (1, 1, ["1-2", "36-38", "40-42", "44-46"]),
    ],
)
def test_ranges_that_touch_are_merged(
    told: Host, session: str, before: int, after: int, headings: list[str]
) -> None:
    text = search(told, session, mode="search", query="question 1", before=before, after=after)
    found = re.findall(r"--- messages (\d+)-(\d+) of 48 ---", text)
    merged: list[list[int]] = []
    for first, last in ([int(n) for n in h.split("-")] for h in headings):
        if merged and first <= merged[-1][1] + 1:
            merged[-1][1] = last
        else:
            merged.append([first, last])
    assert [[int(a), int(b)] for a, b in found] == merged


@pytest.mark.parametrize("query", ["数据库连接", "データベース", "STRASSE", "ﬁle", "path/to/secret.txt"])
def test_any_script_and_any_place_is_found(host: Host, session: str, query: str) -> None:
    arguments = json.dumps({"path": "path/to/secret.txt", "q": "数据库连接超时"})
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": arguments}}
    messages = [
        {"role": "user", "content": "請檢查 データベース の straße"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "one file"},
    ]
    for message in messages:
        host.call("context/ingest", sessionId=session, message=message)
    assert search(host, session, mode="search", query=query).startswith("--- messages 1-3 of 3 ---\n")


def test_what_was_just_acknowledged_is_found(host: Host, session: str) -> None:
    for number in range(20):
        said = f"secret-{number} is told"
        host.call("context/ingest", sessionId=session, message={"role": "user", "content": said})
        assert said in search(host, session, mode="search", query=f"SECRET-{number} IS")


def test_tail_and_head_show_ten_messages_unless_asked(told: Host, session: str) -> None:
    assert search(told, session, mode="tail").startswith("--- messages 39-48 of 48 ---\n")
    assert search(told, session, mode="head").startswith("--- messages 1-10 of 48 ---\n")
    assert (
        search(told, session, mode="tail", last=1)
        == "--- messages 48-48 of 48 ---\n[assistant t12] answer 12"
    )
    assert search(told, session, mode="head", first=1) == "--- messages 1-1 of 48 ---\n[user t1] question 1"


def test_turn_shows_a_whole_turn_and_turns_around_it(told: Host, session: str) -> None:
    assert search(told, session, mode="turn", turnId="t3").startswith("--- messages 9-12 of 48 ---\n")
    text = search(told, session, mode="turn", turnId="t3", before=1, after=20)
    assert text.startswith("--- messages 5-48 of 48 ---\n")


def test_a_turn_that_the_host_named_is_found(host: Host, session: str) -> None:
    for name in ("monday", "t9"):
        host.call(
            "context/ingest",
            sessionId=session,
            message={"role": "user", "content": f"on {name}"},
            turnId=name,
        )
    assert search(host, session, mode="turn", turnId="monday").endswith("[user monday] on monday")
    assert search(host, session, mode="turn", turnId="t9").endswith("[user t9] on t9")


def test_relevant_ranks_and_tells_programs_the_same(told: Host, session: str) -> None:
    result = call(told, session, mode="relevant", query="what was the answer to question 7?", limit=3)
    hits = result["structuredContent"]["hits"]
    assert len(hits) == 3
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    assert {hits[0]["text"], hits[1]["text"]} == {"question 7", "answer 7"}
    lines = result["content"][0]["text"].splitlines()
    assert [line[:3] for line in lines] == ["1. ", "2. ", "3. "]
    assert all(hit["text"] in line for hit, line in zip(hits, lines, strict=True))


def test_relevant_shows_the_passage_that_matters(host: Host, session: str) -> None:
    long = "hay " * 5000 + "the wombat eats at noon. " + "straw " * 5000
    host.call("context/ingest", sessionId=session, message={"role": "user", "content": long})
    result = call(host, session, mode="relevant", query="When does the wombat eat?")
    assert "wombat eats at noon" in result["content"][0]["text"]
    text = result["structuredContent"]["hits"][0]["text"]
    assert "wombat eats at noon" in text and len(text) <= 2000


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": "search", "query": "word"},
        {"mode": "relevant", "query": "word", "limit": 100},
        {"mode": "turn", "turnId": "t1", "after": 100},
        {"mode": "tail", "last": 1000},
        {"mode": "head", "first": 1000},
    ],
)
def test_output_is_bounded_and_says_what_is_missing(
    host: Host, session: str, arguments: dict[str, Any]
) -> None:
    tell_turns(host, session, 1, 40, summary=None, words=400)
    text = search(host, session, **arguments)
    assert 8_000 < len(text) <= 16_000
    assert re.fullmatch(r"--- .*(left out|shortened).* ---", text.splitlines()[-1])


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"mode": "search", "query": "no such thing"}, "relevant"),
        ({"mode": "relevant", "query": "zebra quagga"}, "search"),
    ],
)
def test_where_nothing_is_found_the_text_says_what_to_do(
    told: Host, session: str, arguments: dict[str, Any], advice: str
) -> None:
    result = call(told, session, **arguments)
    assert "isError" not in result
    assert f'mode "{advice}"' in result["content"][0]["text"]


def test_a_turn_that_is_not_there_is_a_failure_with_advice(told: Host, session: str) -> None:
    result = call(told, session, mode="turn", turnId="t99")
    assert result["isError"] is True
    assert "the last one is t12" in result["content"][0]["text"]


@pytest.mark.parametrize("engine", STORING)
def test_every_storing_engine_has_the_tool(host: Host, session: str, engine: str) -> None:
    host.call("session/configure", sessionId=session, engine=engine)
    tell_turns(host, session, 1, 2)
    assert host.call("tools/list", sessionId=session)["tools"][0]["name"] == "context_search"
    assert search(host, session, mode="head", first=1).endswith("[user t1] question 1")


def test_each_dialect_is_shown_alike(speaker: Host, talk: Talk, session: str) -> None:
    use_terse(speaker, session)
    for message in talk.turn(1):
        speaker.call("context/ingest", sessionId=session, message=message)
    lines = search(speaker, session, mode="turn", turnId="t1").splitlines()
    assert lines[0] == "--- messages 1-4 of 4 ---"
    assert lines[1] == "[user t1] question 1: how much is 1 and 1?"
    assert re.fullmatch(r'\[assistant t1\] \[tool: add\(\{"a": ?1, ?"b": ?1\}\)\]', lines[2])
    assert lines[3:] == ["[tool t1] add: sum 1 is 2", "[assistant t1] answer 1: it is 2."]
