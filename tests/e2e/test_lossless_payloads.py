"""Large tool results stand as references from their first answer on, and can be read back whole."""

import signal
from pathlib import Path

import pytest
from msgspec import Raw, json

from tests.e2e.agent_host import AgentHost
from tests.e2e.conversations import DIALECTS, Speaker
from tests.e2e.judge import problems

LARGE = {"plugins": {"entries": {"lossless": {"config": {"payloadTokens": 2000}}}}}
WHOLE = {"plugins": {"entries": {"lossless": {"config": {"payloadTokens": 0}}}}}
BUDGET = 60_000


def log_of(lines: int) -> str:
    """A long log with one line that matters, and one that leads somewhere."""
    told = [f"step {number} went on as it was meant to go on" for number in range(lines)]
    told[lines // 2] = "ERROR: ticket OPS-4711 cannot be closed, see build/report/page.html"
    return "first line of all\n" + "\n".join(told) + "\nlast line of all"


def turn_with(speaker: Speaker, text: str) -> list[bytes]:
    call = speaker.new_call()
    asked = [speaker.user("Run it."), *speaker.assistant("", [call])]
    return [*asked, *speaker.results([(call, text)])]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_large_result_is_a_reference_with_what_matters_of_it(dialect: str, tmp_path: Path) -> None:
    speaker, text = Speaker(dialect), log_of(3000)
    with AgentHost(tmp_path, dialect=dialect, engine="lossless", config=LARGE) as host:
        messages = turn_with(speaker, text)
        ids = host.ingest("s", *messages)
        answer = host.assemble("s", tokenBudget=BUDGET)
        assert not problems(dialect, answer.messages)
        assert answer.raw[:-1] == messages[:-1] and answer.tokens < 2000
        shown = answer.raw[-1].decode()
        for part in ("first line of all", "last line of all", "OPS-4711", "build/report/page.html", ids[-1]):
            assert part in shown
        assert "context_expand" in shown and "[line 1502]" in shown
        assert host.call("session/export", sessionId="s")["messages"][-1]["message"] == json.decode(
            messages[-1]
        )


def test_the_limit_of_an_engine_in_a_process_of_its_own_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    speaker = Speaker("openai")
    file = tmp_path / "config.toml"
    file.write_text("[plugins.entries.lossless]\nisolation = 'process'\n", encoding="utf-8")
    monkeypatch.setenv("CONTEXT_SIDECAR_CONFIG", str(file))
    with AgentHost(tmp_path, engine="lossless", config=LARGE) as host:
        host.ingest("s", *turn_with(speaker, log_of(3000)))
        assert host.assemble("s", tokenBudget=BUDGET).tokens < 2000


def test_the_reference_leads_to_every_character_of_the_result(tmp_path: Path) -> None:
    speaker, text = Speaker("openai"), log_of(3000)
    with AgentHost(tmp_path, engine="lossless", config=LARGE) as host:
        ids = host.ingest("s", *turn_with(speaker, text))
        read, cursor = "", {}
        while cursor is not None:
            arguments = {"messageId": ids[-1], **cursor}
            page = host.call("tools/call", sessionId="s", name="context_expand", arguments=arguments)
            told = page["structuredContent"]
            read += "".join(part["text"] for part in told["messages"])
            cursor = {"cursor": told["nextCursor"]} if "nextCursor" in told else None
        assert read.endswith(text)


def test_the_reference_keeps_its_bytes_from_turn_to_turn_and_over_a_kill(tmp_path: Path) -> None:
    speaker = Speaker("openai", 2)
    messages = turn_with(speaker, log_of(2000))
    with AgentHost(tmp_path, engine="lossless", config=LARGE) as host:
        before = host.assemble("s", raw=messages, tokenBudget=BUDGET)
        host.call("context/afterTurn", sessionId="s", messages=list(map(Raw, messages)))
        for number in range(6):
            if number == 3:
                host.restart(signal.SIGKILL)
            answer = host.assemble("s", tokenBudget=BUDGET)
            assert answer.raw[: len(before.raw)] == before.raw and answer.epoch == before.epoch
            before = answer
            host.ingest("s", *speaker.turn(60), *turn_with(speaker, log_of(2000 + number)))


def test_a_large_result_is_sent_whole_where_that_is_wanted(tmp_path: Path) -> None:
    messages = turn_with(Speaker("openai"), log_of(2000))
    with AgentHost(tmp_path, engine="lossless", config=WHOLE) as host:
        host.ingest("s", *messages)
        assert host.assemble("s", tokenBudget=BUDGET).raw == messages


def test_a_summary_is_made_of_the_result_and_not_of_its_reference(tmp_path: Path) -> None:
    speaker = Speaker("openai", 3)
    text = log_of(1500).replace("step 700 went", "decided that Ottilie keeps account 998877; step 700 went")
    messages = turn_with(speaker, text)
    messages += [message for _ in range(40) for message in speaker.turn(200)]
    with AgentHost(tmp_path, engine="lossless", config=LARGE) as host:
        host.ingest("s", *messages)
        host.call("context/maintain", sessionId="s")
        nodes = host.call("session/summaries", sessionId="s")["summaries"]
        assert "OPS-4711" in " ".join(node["text"] for node in nodes)
