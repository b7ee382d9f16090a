"""Lets a model search step by step until it answers or its budget is spent."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import NamedTuple

from sidecar.summarize.host_model import cleaned
from sidecar.tools.asking.evidence import Evidence, Piece, Wanted
from sidecar.tools.asking.prompts import RULES, ask_prompt
from sidecar.tools.asking.replies import Claim, Reply, read_reply, supported
from sidecar.tools.contract import ToolModel

REPLY_TOKENS = 900
"""Tokens of one reply."""
LEAST_ROOM = 400
"""Tokens of messages that make another step worth it."""
SHARE = 0.4
"""Of the tokens that are left, what the messages of one step take."""
PIECE_TOKENS = 16
"""Tokens that the heading of a message takes, about."""


class Bound(NamedTuple):
    """What may be spent on one question."""

    tokens: int
    steps: int
    seconds: float


class Tried(NamedTuple):
    """One search that was done."""

    wanted: Wanted
    found: int | None
    """Messages that it found; `None` where it was no search."""

    @property
    def told(self) -> str:
        """The search as people read it."""
        wanted = self.wanted
        what = (
            f"messages {wanted.first}-{wanted.last}"
            if wanted.kind == "range"
            else f'{wanted.kind} "{wanted.text}"'
        )
        return f"{what}: {'not valid' if self.found is None else f'{self.found} found'}"


class Asked(NamedTuple):
    """What came of a question."""

    claims: list[Claim] | None
    """`None` where there is no answer; `failure` says why."""
    left_out: int
    """Claims that no message bears out."""
    tried: list[Tried]
    steps: int
    tokens: int
    failure: str = ""


class Inquiry:
    """One question on its way to an answer."""

    def __init__(
        self, model: ToolModel, evidence: Evidence, question: str, overview: str, bound: Bound
    ) -> None:
        self._model = model
        self._evidence = evidence
        self._question = question
        self._overview = overview
        self._bound = bound
        self._tried: list[Tried] = []
        self._spent = 0
        self._steps = 0
        self._shown: dict[int, Piece] = {}
        """All that the model has been shown; a claim may rest on nothing else."""

    async def answer(self) -> Asked:
        """The answer, or why there is none; the time limit holds for all steps together."""
        until = monotonic() + self._bound.seconds
        await self._look(Wanted("words", self._question))
        unreadable = False
        while self._steps < self._bound.steps:
            prompt = self._prompt(unreadable=unreadable)
            if prompt is None:
                return self._failed(f"the budget of {self._bound.tokens} tokens is spent")
            text = await self._ask(prompt, until - monotonic())
            if isinstance(text, Asked):
                return text
            reply = read_reply(cleaned(text))
            unreadable = reply is None
            if reply is None:
                continue
            if reply.claims is not None:
                return self._checked(reply)
            for wanted in reply.searches:
                await self._look(wanted)
        last = "its reply could not be read" if unreadable else "it went on searching"
        return self._failed(f"{last} after {self._steps} steps")

    async def _look(self, wanted: Wanted) -> None:
        if all(tried.wanted != wanted for tried in self._tried):
            self._tried.append(Tried(wanted, await self._evidence.look(wanted)))

    def _prompt(self, *, unreadable: bool) -> str | None:
        """The next request, with as many messages as there is room for; `None` where there is none left."""
        left = self._bound.tokens - self._spent - REPLY_TOKENS
        last = self._steps + 1 >= self._bound.steps
        empty = self._worded([], last=last, unreadable=unreadable)
        room = left - self._model.tokens(RULES + empty)
        if room < LEAST_ROOM:
            return None
        if not last:
            room = max(int(room * SHARE), LEAST_ROOM)
        shown: list[Piece] = []
        for piece in reversed(list(self._evidence.pieces.values())):
            room -= self._model.tokens(piece.text) + PIECE_TOKENS
            if room < 0:
                break
            shown.append(piece)
        self._shown.update((piece.position, piece) for piece in shown)
        return self._worded(shown, last=last, unreadable=unreadable)

    def _worded(self, shown: list[Piece], *, last: bool, unreadable: bool) -> str:
        tried = [tried.told for tried in self._tried]
        return ask_prompt(self._question, self._overview, tried, shown, last=last, unreadable=unreadable)

    async def _ask(self, prompt: str, seconds: float) -> str | Asked:
        self._steps += 1
        self._spent += self._model.tokens(RULES + prompt)
        try:
            async with asyncio.timeout(max(seconds, 0)):
                text = await self._model.ask([("user", prompt)], RULES, REPLY_TOKENS)
        except TimeoutError:
            return self._failed(f"no answer within {self._bound.seconds:g} s")
        except Exception as error:
            return self._failed(str(error) or type(error).__name__)
        self._spent += self._model.tokens(text)
        return text

    def _checked(self, reply: Reply) -> Asked:
        claims = [supported(claim, self._shown, self._question) for claim in reply.claims or ()]
        kept = [claim for claim in claims if claim is not None]
        return Asked(kept, len(claims) - len(kept), self._tried, self._steps, self._spent)

    def _failed(self, why: str) -> Asked:
        return Asked(None, 0, self._tried, self._steps, self._spent, why)
