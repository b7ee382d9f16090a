"""A host that takes part in memory: registers sources, asks turn by turn, keeps what is injected."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.e2e.agent_host import LIMIT_S, AgentHost, Assembled, Json
from tests.e2e.talk import Talk

CAPABILITY = "memory/getContext"
BOTH = ("session-start", "per-message")


class MemoryHost(AgentHost):
    """Answers for its sources from `fragments`, by the name of the source."""

    def __init__(
        self,
        state: Path,
        *,
        engine: str = "default",
        capabilities: Sequence[str] = (CAPABILITY,),
        session: str = "s1",
        **options: Any,
    ) -> None:
        self.fragments: dict[str, list[Json]] = {}
        self.session = session
        self.agent = "agent-1"
        self.talk = Talk(options.get("dialect", "openai"))
        self.transcript: list[Json] = []
        self.turn = 0
        super().__init__(state, engine=engine, capabilities=capabilities, **options)
        self.answerers[CAPABILITY] = lambda params: {"fragments": self.fragments.get(params["name"], [])}

    def offer(
        self, name: str, *fragments: Json, points: Sequence[str] = ("per-message",), **more: Any
    ) -> None:
        """Register a source that answers with these fragments."""
        self.fragments[name] = list(fragments)
        assert self.call("memory/register", name=name, injectionPoints=list(points), **more)["registered"]

    def about(self) -> Json:
        """Params that name the session and its agent."""
        return {"sessionId": self.session, "agentId": self.agent}

    def ask(self, prompt: str, **more: Any) -> Assembled:
        """What the model is to see for a prompt that the host adds itself."""
        request = self.send(
            "context/assemble", **self.about(), messages=self.transcript, prompt=prompt, **more
        )
        return Assembled(self.result(request))

    def commit(self, prompt: str, answer: Assembled, reply: str) -> None:
        """End the turn: the user's message keeps what was to be appended to it."""
        self.turn += 1
        appended = answer.result.get("userMessageAppend")
        said = self.talk.user(f"{prompt}\n\n{appended}" if appended else prompt)
        new = [said, self.talk.assistant(reply)]
        self.transcript += new
        self.call("context/commitTurn", **self.about(), advancementKey=f"turn-{self.turn}", messages=new)

    def say(self, prompt: str, reply: str = "I see.", **more: Any) -> Assembled:
        """One turn."""
        answer = self.ask(prompt, **more)
        self.commit(prompt, answer, reply)
        return answer

    def until_told(self, method: str, **members: str) -> None:
        """Wait for a notification that has these members."""
        until = time.monotonic() + LIMIT_S
        while not any(m == method and members.items() <= p.items() for m, p in self.notified):
            assert time.monotonic() < until, f"the sidecar has not sent {method}"
            self.call("session/list", limit=1)

    def injected(self) -> list[Json]:
        """What the sidecar has told of its compilations."""
        return [params for method, params in self.notified if method == "memory/contextInjected"]


def appended(answer: Assembled) -> str:
    """What is to be put at the end of the user's message."""
    return str(answer.result.get("userMessageAppend", ""))


def addition(answer: Assembled) -> str:
    """What is to be put at the end of the system prompt."""
    return str(answer.result.get("systemPromptAddition", ""))
