"""Memory for a message as a message of its own, for hosts that cannot put it into the user's."""

import json
from pathlib import Path

import pytest

from sidecar.messages.dialects import dialect as dialect_of
from sidecar.messages.fence import claimed_mark
from tests.e2e.agent_host import Assembled
from tests.e2e.memory_host import MemoryHost, appended
from tests.e2e.talk import DIALECTS

IN_LIST = {"memory": {"placement": "message"}}


def bare_turn(host: MemoryHost, n: int) -> Assembled:
    """A turn of a host that keeps nothing of what is injected."""
    host.fragments["facts"] = [{"id": f"f{n}", "content": f"Fact {n}."}]
    answer = host.ask(f"turn {n}")
    assert appended(answer) == ""
    host.turn += 1
    new = [host.talk.user(f"turn {n}"), host.talk.assistant(f"reply {n}")]
    host.transcript += new
    host.call("context/commitTurn", **host.about(), advancementKey=f"k{host.turn}", messages=new)
    return answer


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_message_with_memory_keeps_its_place(tmp_path: Path, dialect: str) -> None:
    with MemoryHost(tmp_path, dialect=dialect, config=IN_LIST) as host:
        host.offer("facts")
        earlier: list[bytes] = []
        for n in range(5):
            answer = bare_turn(host, n)
            assert answer.raw[: len(earlier)] == earlier
            assert answer.epoch == 1
            assert answer.result["stablePrefix"]["messageCount"] == len(answer.raw)
            assert f"Fact {n}." in answer.raw[-1].decode()
            earlier = answer.raw
        read = dialect_of(dialect)
        assert read.check([read.read(raw) for raw in earlier]) == []
        marks = [mark for raw in earlier if (mark := claimed_mark(read.read(raw).text))]
        assert [mark.kind for mark in marks] == ["memory"] * 5


def test_a_message_with_memory_is_not_stored_when_it_comes_back(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config=IN_LIST) as host:
        host.offer("facts")
        bare_turn(host, 0)
        answer = bare_turn(host, 1)
        host.fragments["facts"] = []
        handed_back = [*answer.messages, *host.transcript[-2:]]
        request = host.send("context/assemble", **host.about(), messages=handed_back, prompt="turn 2")
        again = Assembled(host.result(request))
        assert again.raw[: len(answer.raw)] == answer.raw
        host.call("context/ingestBatch", **host.about(), messages=answer.messages[:1])
        stored = host.call("session/export", **host.about())["messages"]
        assert "Fact" not in json.dumps(stored)
        assert len(stored) == 4


def test_messages_with_memory_survive_a_restart_and_go_with_a_compaction(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config=IN_LIST) as host:
        host.offer("facts")
        for n in range(4):
            bare_turn(host, n)
        host.restart()
        host.offer("facts")
        host.fragments["facts"] = []
        answer = host.ask("turn 4")
        assert answer.epoch == 1
        assert sum("Fact" in raw.decode() for raw in answer.raw) == 4
        assert host.call("context/compact", **host.about(), tokenBudget=100, force=True)["compacted"]
        host.fragments["facts"] = [{"id": "f0", "content": "Fact 0."}]
        after = host.ask("turn 5")
        assert sum("Fact" in raw.decode() for raw in after.raw) == 1
        assert "Fact 0." in after.raw[-1].decode()


def test_memory_leaves_the_list_with_its_turn(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, engine="full", config=IN_LIST) as host:
        host.offer("facts")
        bare_turn(host, 0)
        for n in range(1, 9):
            host.talk.user("x")
            new = [host.talk.user(f"long {n} " + "word " * 100), host.talk.assistant("yes")]
            host.transcript += new
            host.call("context/commitTurn", **host.about(), advancementKey=f"l{n}", messages=new)
        host.fragments["facts"] = []
        answer = host.ask("now", tokenBudget=700)
        assert answer.tokens <= 700
        assert not any(b"Fact" in raw for raw in answer.raw)
        host.fragments["facts"] = [{"id": "f0", "content": "Fact 0."}]
        assert b"Fact 0." in host.ask("then", tokenBudget=700).raw[-1]
