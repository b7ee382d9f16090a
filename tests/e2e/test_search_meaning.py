"""What was said is found by its meaning: over the real process, with the real model."""

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from sidecar.semantic.index import NAME
from tests.e2e.agent_host import AgentHost

Json = dict[str, Any]
MADE_S = 90.0
"""Longest wait for vectors: whoever makes them lets everybody else go first."""
ON: Json = {"search": {"meaning": "on"}}

TOLD = {
    "My doctor told me to stay away from peanuts, they could kill me.": "Which food allergy do I have?",
    "We sold the car last month and bought two bicycles.": "How do we get around town these days?",
    "Grandmother turns ninety on the third of May.": "When is the birthday of the oldest in our family?",
    "I quit my job at the bank and teach maths at a school now.": "What is my profession?",
    "The kettle trips the fuse whenever the oven is on.": "Why does the electricity go out in the kitchen?",
    "Nina broke her arm while climbing and cannot write for six weeks.": "Who got injured doing sports?",
    "Our landlord wants two hundred more each month from autumn on.": "How much will the rent rise?",
    "I cannot sleep when the neighbours' dog barks all night.": "What keeps me awake?",
}
"""What was said, and how it is asked for later without its words."""
CHATTER = [
    f"The {thing} on shelf {number} was {deed} by the caretaker."
    for number, (thing, deed) in enumerate(
        (thing, deed)
        for thing in ("lamp", "vase", "globe", "radio", "clock")
        for deed in ("dusted", "moved", "mended", "painted", "counted")
    )
]


def message(text: str, role: str = "user") -> bytes:
    return json.dumps({"role": role, "content": text}, ensure_ascii=False).encode()


def found(host: AgentHost, question: str, session: str = "s", limit: int = 3) -> list[str]:
    arguments = {"mode": "relevant", "query": question, "limit": limit}
    answer = host.call("tools/call", sessionId=session, name="context_search", arguments=arguments)
    return [hit["text"] for hit in answer["structuredContent"]["hits"]]


def search_check(host: AgentHost) -> Json:
    return next(check for check in host.call("engine/doctor")["checks"] if check["name"] == "search")


def wait_for_vectors(host: AgentHost, probe: str = next(iter(TOLD.values()))) -> None:
    """Until every message has been looked at, and the model answers questions."""
    deadline = time.monotonic() + MADE_S
    while "by words and meaning, 0 messages without a vector" not in search_check(host)["message"]:
        assert time.monotonic() < deadline, search_check(host)["message"]
    while not found(host, probe):
        assert time.monotonic() < deadline, "the model does not answer"


def tell_all(host: AgentHost) -> None:
    told = list(TOLD)
    host.ingest("s", *(message(text) for text in told[:4] + CHATTER + told[4:]))


def kept(state: Path) -> int:
    """Values with vectors in the file."""
    connection = apsw.Connection(str(state / "context.db"))
    try:
        return connection.execute("SELECT count(*) FROM state WHERE name LIKE ?", (NAME + "%",)).get
    finally:
        connection.close()


def test_paraphrases_are_found_that_words_do_not_find(tmp_path: Path) -> None:
    with AgentHost(tmp_path) as host:
        tell_all(host)
        by_words = sum(fact in found(host, asked) for fact, asked in TOLD.items())
        host.restart(config=ON)
        found(host, "Has a session been searched that was there before?")
        wait_for_vectors(host)
        by_meaning = sum(fact in found(host, asked) for fact, asked in TOLD.items())
    assert by_words <= 3
    assert by_meaning >= 6


def test_what_was_said_is_recalled_by_its_meaning(tmp_path: Path) -> None:
    fact, asked = next(iter(TOLD.items()))
    with AgentHost(tmp_path, engine="recall", config=ON) as host:
        host.ingest("s", message(fact), *(message(text) for text in CHATTER * 3))
        wait_for_vectors(host)
        answer = host.assemble("s", tokenBudget=1000, prompt=asked)
    texts = [each["content"] for each in answer.messages]
    assert fact not in texts
    assert any("peanuts" in text for text in texts)


def test_vectors_survive_a_kill(tmp_path: Path) -> None:
    fact, asked = next(iter(TOLD.items()))
    with AgentHost(tmp_path, config=ON) as host:
        tell_all(host)
        wait_for_vectors(host)
        host.kill()
        host.restart(signal.SIGKILL)
        assert "0 messages without a vector" in search_check(host)["message"]
        deadline = time.monotonic() + MADE_S
        while fact not in found(host, asked):
            assert time.monotonic() < deadline


def test_a_kill_while_vectors_are_made_loses_none_of_them_for_good(tmp_path: Path) -> None:
    fact, asked = next(iter(TOLD.items()))
    with AgentHost(tmp_path, config=ON) as host:
        for _ in range(3):
            tell_all(host)
            host.kill()
            host.restart(signal.SIGKILL)
        found(host, asked)
        wait_for_vectors(host)
        assert fact in found(host, asked)


def test_a_deleted_session_leaves_no_vectors(tmp_path: Path) -> None:
    with AgentHost(tmp_path, config=ON) as host:
        tell_all(host)
        wait_for_vectors(host)
        assert kept(tmp_path) == 1
        tell_all(host)
        host.call("session/delete", sessionId="s")
        assert "0 messages without a vector" in search_check(host)["message"]
        host.ingest("s", message("The bus to the harbour leaves at nine."))
        wait_for_vectors(host, "What time do we go to the sea by public transport?")
        assert kept(tmp_path) == 1
        assert found(host, next(iter(TOLD.values()))) == []


def test_switched_off_it_is_by_words_again(tmp_path: Path) -> None:
    fact, asked = next(iter(TOLD.items()))
    with AgentHost(tmp_path, config=ON) as host:
        tell_all(host)
        wait_for_vectors(host)
        assert fact in found(host, asked)
        host.restart(config={})
        assert search_check(host)["message"] == "by words"
        assert fact not in found(host, asked)


def test_chinese_is_found_as_well_as_without(tmp_path: Path) -> None:
    said = ["我把备用钥匙放在厨房的蓝色茶壶里。", "公交车每天九点出发。", "奶奶五月三日过九十岁生日。"]
    asked = ["备用钥匙放在哪里？", "公交车几点出发？", "奶奶什么时候过生日？"]
    with AgentHost(tmp_path) as host:
        tell_all(host)
        host.ingest("s", *map(message, said))
        without = [found(host, question) for question in asked]
        host.restart(config=ON)
        found(host, "Has a session been searched that was there before?")
        wait_for_vectors(host)
        assert [found(host, question) for question in asked] == without
    assert [hits[0] for hits in without] == said


@pytest.mark.parametrize(("setting", "said"), [("off", "by words$"), ("auto", "by words and meaning, ")])
def test_the_doctor_says_how_is_searched(tmp_path: Path, setting: str, said: str) -> None:
    with AgentHost(tmp_path, config={"search": {"meaning": setting}}) as host:
        check = search_check(host)
    assert check["ok"]
    assert re.match(said, check["message"])
