"""The model asks how much room is left, and makes some: what it says must stay does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.corpus import conversation
from tests.e2e.inner_host import InnerHost

ENGINES = ["default", "full", "lossless", "recall", "sliding-window", "terse"]
MESSAGES = [json.loads(message) for turn in conversation(60) for message in turn]
BUDGET = 8_000
KEEP = "Task: move the ledger to Osaka. Left to do: ticket OPS-9000, then src/ledger/module_3.py."


@pytest.fixture(params=ENGINES)
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[InnerHost]:
    host = InnerHost(tmp_path, engine=request.param)
    host.call("context/ingestBatch", sessionId="s", messages=MESSAGES)
    yield host
    host.close()


def tool(host: InnerHost, name: str, **arguments: object) -> Any:
    return host.call("tools/call", sessionId="s", name=name, arguments=arguments)


def text(answer: Any) -> str:
    return answer["content"][0]["text"]


def answered(host: InnerHost) -> Any:
    return host.call("context/assemble", sessionId="s", tokenBudget=BUDGET)


def test_the_status_says_how_much_is_left_and_what_was_done(host: InnerHost) -> None:
    before = tool(host, "context_status")["structuredContent"]
    assert before == {**before, "messageCount": 240, "tokens": None, "compacted": None, "pins": []}
    takes = answered(host)["estimatedTokens"]
    assert f"{takes} of {BUDGET} tokens. {BUDGET - takes} tokens are left" in text(
        tool(host, "context_status")
    )
    host.call("session/pin", sessionId="s", text="Never deploy on Fridays.", note="a rule")
    done = host.call("context/compact", sessionId="s", tokenBudget=BUDGET, force=True)["result"]
    shown = tool(host, "context_status")
    compacted = shown["structuredContent"]["compacted"]
    assert [compacted[name] for name in ("tokensBefore", "tokensAfter", "messageCount")] == [
        done["tokensBefore"],
        done["tokensAfter"],
        240,
    ]
    assert "- Never deploy on Fridays. (a rule)" in text(shown)


def test_what_the_model_keeps_is_in_view_and_the_rest_smaller(host: InnerHost) -> None:
    before = answered(host)
    done = tool(host, "context_compact", keep=KEEP)
    after = answered(host)
    assert done["structuredContent"]["compacted"], text(done)
    assert KEEP in str(after["messages"]) and KEEP not in str(before["messages"])
    assert after["estimatedTokens"] < before["estimatedTokens"]
    assert after["contextEpoch"] > before["contextEpoch"]


def test_what_it_keeps_later_takes_the_place_of_that(host: InnerHost) -> None:
    answered(host)
    tool(host, "context_compact", keep=KEEP)
    tool(host, "context_compact")
    assert KEEP in str(answered(host)["messages"])
    tool(host, "context_compact", keep="Only the harbour matters now.")
    shown = str(answered(host)["messages"])
    assert "Only the harbour matters now." in shown and KEEP not in shown
    host.restart()
    assert len(tool(host, "context_status")["structuredContent"]["pins"]) == 1


def test_where_there_is_no_room_to_make_it_says_so(host: InnerHost) -> None:
    host.call("context/ingest", sessionId="other", message={"role": "user", "content": "Hello"})
    shown = host.call("tools/call", sessionId="other", name="context_compact", arguments={"keep": "A name"})
    assert not shown.get("isError") and shown["structuredContent"] == {"compacted": False}
    assert "no room to make" in text(shown)
    assert "A name" in str(host.call("context/assemble", sessionId="other")["messages"])


def test_nothing_of_the_history_changes(host: InnerHost) -> None:
    answered(host)
    tool(host, "context_compact", keep=KEEP)
    assert host.call("session/get", sessionId="s")["messageCount"] == len(MESSAGES)


def test_a_text_that_is_too_long_to_keep_is_refused_by_name(tmp_path: Path) -> None:
    host = InnerHost(tmp_path)
    host.call("context/ingestBatch", sessionId="s", messages=MESSAGES[:4])
    with pytest.raises(Exception, match=r"arguments\.keep"):
        tool(host, "context_compact", keep="x" * 4001)
    host.close()
