"""Hosts that behave at random: nothing is lost, nothing is kept twice, the order is right."""

import json
import re
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.e2e.sidecar_host import Host, history
from tests.e2e.talk import STAMP_MS, Message, Talk

BUDGET = 200_000
NUMBERED = re.compile(r"#(\d+)#")
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
_sessions = count(1)

steps = st.fixed_dictionaries(
    {
        "told": st.sampled_from(
            [
                "commit",
                "commit twice",
                "nobody",
                "ingest",
                "ingest and commit",
                "after turn",
                "whole after turn",
            ]
        ),
        "before": st.lists(
            st.sampled_from(["bootstrap", "assemble", "hand back", "assemble tail"]), max_size=3
        ),
        "tool": st.booleans(),
        "short": st.booleans(),
        "change": st.sampled_from(["nothing", "nothing", "edit", "decorate", "sanitise", "merge"]),
        "at": st.integers(0, 1000),
    }
)


class RandomHost:
    """Plays turns; `transcript` is what happened, `view` how the host shows it now."""

    def __init__(self, host: Host, talk: Talk, *, may_repeat: bool) -> None:
        self.host, self.talk, self.may_repeat = host, talk, may_repeat
        self.session = f"random-{talk.dialect}-{next(_sessions)}"
        self.transcript: list[Message] = []
        self.view: list[Message] = []
        self._clock = STAMP_MS

    def play(self, step: dict[str, Any]) -> None:
        """One turn with what comes before it."""
        self._change(step["change"], step["at"])
        turn = self._turn(step["tool"], step["short"])
        prompt = json.loads(json.dumps(turn[0]))["content"]
        prompt = prompt if isinstance(prompt, str) else prompt[0]["text"]
        for call in step["before"]:
            self._before(call, prompt, step["at"])
        self._tell(step["told"], turn, len(self.transcript))
        self.transcript += turn
        self.view += turn

    def end(self) -> list[int]:
        """The numbers of the stored messages, after the host has shown everything once more."""
        self.host.call("context/bootstrap", sessionId=self.session, messages=self.view)
        return [self._number(message) for message in history(self.host, self.session)]

    def _number(self, message: Message) -> int:
        if "timestamp" in message:
            return message["timestamp"] - STAMP_MS
        return int(NUMBERED.findall(json.dumps(message))[0])

    @property
    def numbers(self) -> list[int]:
        """The numbers of all messages in order."""
        return [self._number(message) for message in self.transcript]

    def _turn(self, tool: bool, short: bool) -> list[Message]:
        talk = self.talk
        short = short and self.may_repeat
        first = self._clock
        self._clock += 4 if tool else 2
        stamps = range(first, self._clock)
        says = [f"please look at #{n - STAMP_MS}# for me" for n in stamps]
        if not tool:
            texts = ("ok", "done") if short else says
            return [talk.user(texts[0], stamp=first), talk.assistant(texts[1], stamp=first + 1)]
        call_id = f"call_{first % 99991}_a{first}"
        text = "list" if short else says[0]
        number = {"n": 0} if short else {"n": f"#{first + 1 - STAMP_MS}#"}
        return [
            talk.user(text, stamp=first),
            talk.call(call_id, "look", number, stamp=first + 1),
            talk.result(call_id, "look", "nothing" if short else says[2], stamp=first + 2),
            talk.assistant("done" if short else says[3], stamp=first + 3),
        ]

    def _change(self, change: str, at: int) -> None:
        if not self.view or change == "nothing":
            return
        if change == "sanitise":
            text = json.dumps(self.view)
            self.view = json.loads(re.sub(r"call_(\d+)_a(\d+)", r"call\1a\2", text))
            return
        users = [
            i for i, m in enumerate(self.view) if m.get("role") == "user" and isinstance(m["content"], str)
        ]
        replies = [i for i, m in enumerate(self.view) if self._is_reply(m)]
        if change == "merge":
            i = replies[at % len(replies)]
            self._set_reply(i, "\nannounced by somebody else")
        elif change == "edit":
            i = replies[at % len(replies)]
            self._set_reply(i, " and a little more")
        elif users:
            i = users[at % len(users)]
            text = self.view[i]["content"]
            if not text.startswith("["):
                self.view[i] = {**self.view[i], "content": f"[Sat 2026-11-21 03:25 UTC] {text}"}

    def _is_reply(self, message: Message) -> bool:
        content = message.get("content")
        if message.get("role") != "assistant" or message.get("tool_calls"):
            return False
        return isinstance(content, str) or (isinstance(content, list) and "text" in content[0])

    def _set_reply(self, index: int, more: str) -> None:
        message = self.view[index]
        if isinstance(message["content"], str):
            self.view[index] = {**message, "content": message["content"] + more}
        else:
            part = {**message["content"][0], "text": message["content"][0]["text"] + more}
            self.view[index] = {**message, "content": [part]}

    def _before(self, call: str, prompt: str, at: int) -> None:
        host, session = self.host, self.session
        if call == "bootstrap":
            host.call("context/bootstrap", sessionId=session, messages=self.view)
            return
        shown = self._tail(at) if call == "assemble tail" else self.view
        answer = host.call(
            "context/assemble", sessionId=session, messages=shown, prompt=prompt, tokenBudget=BUDGET
        )
        if call == "hand back":
            host.call(
                "context/assemble",
                sessionId=session,
                messages=answer["messages"],
                prompt=prompt,
                tokenBudget=BUDGET,
            )

    def _tail(self, at: int) -> list[Message]:
        """The transcript from a question on, as hosts cut it that keep the newest turns."""
        users = [i for i, message in enumerate(self.view) if message.get("role") == "user"]
        whole = [i for i in users if isinstance(self.view[i]["content"], str)]
        return self.view[whole[at % len(whole)] :] if whole else []

    def _tell(self, how: str, turn: list[Message], number: int) -> None:
        host, session = self.host, self.session
        if how.startswith("ingest"):
            for message in turn:
                host.call("context/ingest", sessionId=session, message=message)
        if how.startswith("commit") or how.endswith("commit"):
            for _ in range(2 if how == "commit twice" else 1):
                host.call("context/commitTurn", sessionId=session, advancementKey=f"k{number}", messages=turn)
        if how == "after turn":
            host.call("context/afterTurn", sessionId=session, messages=turn)
        if how == "whole after turn":
            host.call(
                "context/afterTurn",
                sessionId=session,
                messages=[*self.view, *turn],
                prePromptMessageCount=len(self.view),
            )


@pytest.mark.parametrize(
    ("dialect", "may_repeat"), [("openclaw", True), ("openai", False), ("anthropic", False)]
)
def test_whatever_the_host_does_every_message_is_kept_once_in_order(
    serving_hosts: Callable[[str], Host], dialect: str, may_repeat: bool
) -> None:
    host = serving_hosts(dialect)

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
    @given(st.lists(steps, min_size=1, max_size=8))
    def play(plan: list[dict[str, Any]]) -> None:
        random_host = RandomHost(host, Talk(dialect), may_repeat=may_repeat)
        for step in plan:
            random_host.play(step)
        assert random_host.end() == random_host.numbers

    play()
