"""What every engine that stores recalls where the history no longer fits."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent_host import AgentHost, Assembled, Json
from tests.e2e.conversations import Speaker

BUDGET = 4000
ENGINES = ("default", "full", "lossless", "recall", "sliding-window", "terse")
SECRET = "The wifi password of the cabin is heron-42."
ASK = "What was the wifi password of that cabin?"
PLAN = "Here is the plan:\n1. Move the boathouse ledger\n2. Paint the barometer"


class Talk:
    """One session of a host."""

    def __init__(self, host: AgentHost) -> None:
        self.host = host
        self.speaker = Speaker("openai")

    def say(self, question: str, answer: str) -> None:
        self.host.ingest("s", self.speaker.user(question), *self.speaker.assistant(answer))

    def chatter(self, turns: int) -> None:
        for _ in range(turns):
            self.say(self.speaker.words(40), self.speaker.words(60))

    def answer(self, prompt: str, budget: int = BUDGET) -> Assembled:
        answer = self.host.assemble("s", tokenBudget=budget, prompt=prompt)
        assert answer.tokens <= budget
        return answer


def recalled(answer: Assembled) -> list[str]:
    """The texts that were recalled."""
    texts = [message["content"] for message in answer.messages if isinstance(message.get("content"), str)]
    return [text for text in texts if text.startswith("[ctx:recall:")]


@pytest.fixture(params=ENGINES)
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    with AgentHost(tmp_path, engine=request.param) as host:
        yield Talk(host)


def test_what_the_prompt_calls_for_is_recalled_by_every_engine(talk: Talk) -> None:
    talk.say(SECRET, "Noted.")
    talk.chatter(60)
    assert SECRET in "".join(recalled(talk.answer(ASK)))


def test_a_plan_of_the_fifth_turn_is_in_view_two_hundred_turns_later(talk: Talk) -> None:
    talk.chatter(4)
    talk.say("How do we go about it?", PLAN)
    talk.chatter(195)
    answer = talk.answer("Go on, please.")
    assert "- [ ] Move the boathouse ledger\n- [ ] Paint the barometer" in "".join(recalled(answer))


def test_nothing_is_recalled_while_all_is_sent(talk: Talk) -> None:
    talk.say(SECRET, "Noted.")
    talk.chatter(2)
    assert recalled(talk.answer(ASK)) == []


def test_explain_says_why_a_message_was_recalled(talk: Talk) -> None:
    talk.say(SECRET, "Noted.")
    talk.chatter(60)
    (block,) = recalled(talk.answer(ASK))
    told = talk.host.call("context/explain", sessionId="s")["decisions"]
    why = next(each for each in told if "recalled" in each["reason"] and "wifi" in each["reason"])
    assert why["decision"] == "summarised"
    assert block.startswith(f"[ctx:recall:{why['by']}:")


def test_the_answer_to_the_same_prompt_is_the_same_after_a_restart(talk: Talk) -> None:
    talk.say(SECRET, "Noted.")
    talk.chatter(60)
    first = talk.answer(ASK)
    talk.host.restart()
    again = talk.answer(ASK)
    assert (again.raw, again.epoch) == (first.raw, first.epoch)


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "terse"])
def test_what_was_recalled_keeps_its_place_while_the_window_grows(engine: str, tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine=engine) as host:
        talk = Talk(host)
        talk.say(SECRET, "Noted.")
        talk.chatter(60)
        first = talk.answer(ASK)
        talk.say(ASK, "It is heron-42.")
        second = talk.answer("And the ferry?")
        assert second.raw[: len(first.raw)] == first.raw
        assert second.epoch == first.epoch
        assert all(SECRET not in block for block in recalled(second)[1:])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_share_of_nothing_switches_recall_off(engine: str, tmp_path: Path) -> None:
    config: Json = {"recall": {"share": 0}}
    with AgentHost(tmp_path, engine=engine, config=config) as host:
        talk = Talk(host)
        talk.say(SECRET, "Noted.")
        talk.chatter(60)
        assert recalled(talk.answer(ASK)) == []


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("engine", ENGINES)
def test_recalled_text_keeps_to_its_share(engine: str, share: float, tmp_path: Path) -> None:
    config: Json = {"recall": {"share": share}}
    with AgentHost(tmp_path, engine=engine, config=config) as host:
        talk = Talk(host)
        for number in range(80):
            talk.say(f"How was the ferry {number}?", f"The ferry {number} was late. {talk.speaker.words(40)}")
        for number in range(12):
            prompt = f"When was the ferry {number} late?"
            parts: dict[str, Any] = {
                part["kind"]: part["tokens"] for part in talk.answer(prompt).result["composition"]
            }
            assert parts.get("recall", 0) <= BUDGET * share
            talk.say(prompt, "On a Tuesday.")


def test_terse_keeps_its_shape_in_front_of_what_is_recalled(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="terse") as host:
        talk = Talk(host)
        talk.say(SECRET, "Noted. <terse>Took down the password</terse>")
        for number in range(40):
            talk.say(
                talk.speaker.words(20), f"{talk.speaker.words(30)} <terse>Turn {number} went well</terse>"
            )
        answer = talk.answer(ASK, 2000)
        texts = [message["content"] for message in answer.messages]
        (block,) = recalled(answer)
        shape = texts[: texts.index(block)]
        assert "[Context -- Activity Log]" in shape[0]
        assert answer.messages[1]["role"] == "assistant"
        assert len(shape) == 2 + 3 * 2
