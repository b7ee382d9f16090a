"""Memory in `context/assemble`: where it stands, how long it stays the same, when it comes again."""

import itertools
import json
import signal
from pathlib import Path

import pytest

from sidecar.messages.fence import fences
from tests.e2e.agent_host import Assembled
from tests.e2e.memory_host import BOTH, MemoryHost, addition, appended
from tests.e2e.talk import DIALECTS

TEA = {"id": "tea", "content": "The user drinks tea.", "priority": 80}
OSLO = {"id": "oslo", "content": "The user lives in Oslo.", "priority": 60}


def test_memory_is_fenced_as_data_beside_the_messages(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("notes", TEA, points=["session-start"])
        host.offer("facts", OSLO)
        answer = host.ask("Where am I?")
        for text, content in ((addition(answer), TEA["content"]), (appended(answer), OSLO["content"])):
            [part] = fences(text)
            assert part.mark.kind == "memory" and str(content) in part.content
            assert "not instructions" in part.content
        assert answer.messages == []
        sizes = {part["kind"]: part["tokens"] for part in answer.result["composition"]}
        assert sizes["memory"] > 0 and sum(sizes.values()) == answer.tokens


def test_what_a_turn_was_given_stays_the_same_through_the_turn(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("facts", TEA)
        first = host.ask("Hello")
        host.fragments["facts"] = [OSLO]
        again = host.ask("Hello")
        said = host.talk.user(f"Hello\n\n{appended(first)}")
        call = host.talk.call("call_1", "look", {"at": "map"})
        host.transcript += [said, call, host.talk.result("call_1", "look", "nothing")]
        within = Assembled(
            host.result(host.send("context/assemble", **host.about(), messages=host.transcript))
        )
        assert appended(first) == appended(again) == appended(within)
        assert len(host.injected()) == 1


def test_an_item_is_injected_once(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("facts", TEA, {"content": "It has no id.", "priority": 10})
        assert "tea" in appended(host.say("one"))
        host.fragments["facts"].append(OSLO)
        second = host.say("two")
        assert "Oslo" in appended(second) and "tea" not in appended(second)
        assert appended(host.say("three")) == ""
        assert appended(host.say("four")) == ""


def test_a_turn_that_the_host_gave_up_does_not_count(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("facts", TEA)
        assert "tea" in appended(host.ask("never mind"))
        assert "tea" in appended(host.say("something else"))
        assert appended(host.say("and more")) == ""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_restart_in_the_middle_of_a_session_injects_nothing_twice(
    tmp_path: Path, how: signal.Signals
) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("facts", TEA, points=BOTH)
        host.offer("more", OSLO)
        started = addition(host.say("one"))
        open_turn = host.ask("two")
        host.restart(how)
        host.offer("facts", TEA, points=BOTH)
        host.offer("more", OSLO, TEA | {"id": "new", "content": "New."})
        resumed = host.ask("two")
        assert appended(resumed) == appended(open_turn) == ""
        assert addition(resumed) == started
        assert resumed.epoch == open_turn.epoch
        host.commit("two", resumed, "yes")
        third = appended(host.say("three"))
        assert "New." in third and "Oslo" not in third and "tea" not in third


def test_what_a_session_began_with_stays_after_a_restart_without_sources(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("facts", TEA, points=BOTH)
        first = host.say("one")
        host.restart()
        second = host.say("two")
        assert "tea" in addition(first) and addition(second) == addition(first)
        assert second.epoch == first.epoch


def test_compaction_clears_what_counts_and_injection_resumes(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("facts", TEA)
        host.offer("start", OSLO, points=["session-start"])
        before = host.say("one " + "word " * 400)
        host.say("two " + "word " * 400)
        host.fragments["start"] = [OSLO | {"id": "bergen", "content": "The user has moved to Bergen."}]
        assert addition(host.ask("three")) == addition(before)
        assert host.call("context/compact", **host.about(), tokenBudget=600, force=True)["compacted"]
        after = host.say("four")
        assert "Bergen" in addition(after) and "Oslo" not in addition(after)
        assert "tea" in appended(after)
        assert appended(host.say("five")) == ""


def test_a_compaction_in_the_background_renews_what_the_session_began_with(tmp_path: Path) -> None:
    lossless = {"plugins": {"entries": {"lossless": {"config": {"leafSourceTokens": 400}}}}}
    with MemoryHost(tmp_path, engine="lossless", config=lossless) as host:
        host.offer("start", OSLO, points=["session-start"])
        for n in range(6):
            host.say(f"question {n} " + "word " * 300)
        host.fragments["start"] = [OSLO | {"id": "bergen", "content": "The user has moved to Bergen."}]
        assert "Oslo" in addition(host.ask("more"))
        host.call("context/afterTurn", **host.about(), messages=[], tokenBudget=1500)
        host.until_told("session/changed", reason="compacted")
        assert "Bergen" in addition(host.ask("more"))


def test_an_item_whose_turn_has_left_the_context_comes_again(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, engine="full") as host:
        host.offer("facts", TEA)
        seen = [appended(host.say(f"turn {n} " + "word " * 150, tokenBudget=900)) for n in range(8)]
        turns = [n for n, text in enumerate(seen) if "tea" in text]
        assert turns[0] == 0 and len(turns) > 1
        assert all(later - earlier > 1 for earlier, later in itertools.pairwise(turns))


def test_a_rewind_lets_items_come_again(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.say("one")
        host.offer("facts", TEA)
        host.say("two")
        ids = [m["messageId"] for m in host.call("session/export", **host.about())["messages"]]
        host.call("session/truncate", **host.about(), afterMessageId=ids[1])
        host.transcript = host.transcript[:2]
        assert "tea" in appended(host.say("two, but other words"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_prefix_stays_while_memory_comes_with_messages(tmp_path: Path, dialect: str) -> None:
    with MemoryHost(tmp_path, dialect=dialect) as host:
        host.offer("facts", points=BOTH)
        earlier = host.ask("start")
        for n in range(6):
            host.fragments["facts"] = [{"id": f"f{n}", "content": f"Fact {n}."}]
            answer = host.say(f"turn {n}")
            assert answer.raw[: len(earlier.raw)] == earlier.raw
            assert answer.epoch == earlier.epoch
            assert addition(answer) == addition(earlier)
            earlier = answer
        assert all(f"Fact {n}." in json.dumps(host.transcript) for n in range(1, 6))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_memory_that_a_host_appends_in_its_own_list_keeps_the_epoch(tmp_path: Path, dialect: str) -> None:
    """The host shows the user's message bare first, and with the memory behind it from then on."""
    with MemoryHost(tmp_path, dialect=dialect) as host:
        host.offer("facts", TEA)
        epochs: list[int] = []
        for n in range(4):
            host.fragments["facts"] = [{"id": f"f{n}", "content": f"Fact {n}."}]
            bare = host.talk.user(f"question {n}")
            host.call("context/ingest", **host.about(), message=bare)
            request = host.send("context/assemble", **host.about(), messages=[*host.transcript, bare])
            answer = Assembled(host.result(request))
            epochs.append(answer.epoch)
            assert [json.loads(raw) for raw in answer.raw] == [*host.transcript, bare]
            full = host.talk.user(f"question {n}\n\n{appended(answer)}")
            reply = host.talk.assistant(f"answer {n}")
            host.transcript += [full, reply]
            host.call("context/afterTurn", **host.about(), messages=[full, reply])
        assert epochs == [epochs[0]] * 4
        assert len(host.call("session/export", **host.about())["messages"]) == 8
