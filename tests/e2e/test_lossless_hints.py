"""What `lossless` points to behind its summaries: passages that match what is asked."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.bench.corpus import conversation
from tests.e2e.agent_host import AgentHost, Assembled

BUDGET = 8_000
FACT = "The spare key of the boathouse hangs behind the barometer, its number is KX-4471."
ASKED = "Where does the spare key of the boathouse hang?"
AT = 9
"""Position of the message that says it."""
_HINT = re.compile(r"\[ctx:recall:")
_PLACE = re.compile(r"^\((?P<node>\w+), message (?P<position>\d+), [\d-]+\) (?P<said>.*)", re.MULTILINE)


def said(role: str, text: str) -> bytes:
    return json.dumps({"role": role, "content": text}).encode()


def history() -> list[bytes]:
    messages = [message for turn in islice(conversation(60), 60) for message in turn]
    return [*messages[: AT - 1], said("user", FACT), *messages[AT - 1 :]]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[AgentHost]:
    config = {"plugins": {"entries": {"lossless": {"config": {"hintTokens": 300}}}}}
    with AgentHost(tmp_path, engine="lossless", config=config) as host:
        host.ingest("s", *history())
        yield host


def asks(host: AgentHost, prompt: str, budget: int = BUDGET) -> Assembled:
    return host.assemble("s", tokenBudget=budget, prompt=prompt)


def hints(answer: Assembled) -> list[str]:
    contents = [message["content"] for message in answer.messages]
    return [text for text in contents if isinstance(text, str) and _HINT.match(text)]


def tool(host: AgentHost, name: str, **arguments: Any) -> str:
    answer = host.call("tools/call", sessionId="s", name=name, arguments=arguments)
    return str(answer["content"][0]["text"])


def test_a_hint_names_message_and_summary_which_the_tools_open(host: AgentHost) -> None:
    (hint,) = hints(asks(host, ASKED))
    places = {int(found["position"]): found for found in _PLACE.finditer(hint)}
    assert FACT in places[AT]["said"]
    node = places[AT]["node"]
    covered = re.search(rf"\[summary {node} of messages (\d+)-(\d+)\]", str(asks(host, ASKED).messages))
    assert covered is not None, "the summary stands in the answer"
    assert int(covered[1]) <= AT <= int(covered[2])
    assert node in tool(host, "context_describe", node=node)
    assert FACT in tool(host, "context_expand", first=AT, last=AT)


def test_a_hint_stands_behind_everything_and_stays_there(host: AgentHost) -> None:
    before = asks(host, ASKED)
    assert _HINT.match(before.messages[-1]["content"])
    host.ingest("s", said("user", ASKED), said("assistant", "Behind the barometer."))
    after = asks(host, "Which ticket was about the ledger in Bergen?")
    assert after.raw[: len(before.raw)] == before.raw
    assert after.epoch == before.epoch


def test_hints_outlive_the_process(host: AgentHost) -> None:
    before = asks(host, ASKED)
    host.restart()
    again = asks(host, ASKED)
    assert again.raw == before.raw
    assert again.epoch == before.epoch


def test_a_hint_for_what_was_never_sent_goes(host: AgentHost) -> None:
    asks(host, ASKED)
    assert FACT not in "".join(hints(asks(host, "Which ticket was about the ledger in Bergen?")))


@pytest.mark.parametrize("prompt", ["Yes, go on.", "Thanks, perfect!"])
def test_nothing_is_pointed_to_where_nothing_is_asked(prompt: str, host: AgentHost) -> None:
    assert hints(asks(host, prompt)) == []


def test_what_is_sent_in_full_is_not_pointed_to(host: AgentHost) -> None:
    host.ingest("s", said("user", "The password of the canoe shed is WILLOW-88."))
    assert "WILLOW-88" not in "".join(hints(asks(host, "What is the password of the canoe shed?")))


def test_many_hints_keep_to_their_share_of_the_budget(host: AgentHost) -> None:
    for number in range(12):
        prompt = f"Which ticket was about module_{number * 4}.py?"
        answer = asks(host, prompt)
        assert answer.tokens <= BUDGET
        parts = {part["kind"]: part["tokens"] for part in answer.result["composition"]}
        assert parts.get("recall", 0) <= BUDGET * 0.2
        host.ingest("s", said("user", prompt), said("assistant", f"Ticket OPS-{number * 4}."))


def test_without_the_setting_nothing_is_pointed_to(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless") as host:
        host.ingest("s", *history())
        assert hints(asks(host, ASKED)) == []
