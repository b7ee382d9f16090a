"""Measures how much of an answer a provider's cache of prompts would have known from the answer before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sidecar.cli.evaluation.questions import EvaluationSession
from sidecar.cli.evaluation.subjects import Subject
from sidecar.cli.replay.recording import Tally
from sidecar.messages.contract import Dialect

READ, WRITTEN = 0.1, 1.25
"""Prices of a cached token that is read and of one that is written, against 1 without a cache.

https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
"""


class Prefixes(NamedTuple):
    """Sums over answers that had one before them."""

    calls: int = 0
    kept: int = 0
    """Tokens of unchanged beginnings."""
    total: int = 0
    """Tokens of all answers."""
    invalid: int = 0

    def __add__(self, other: tuple[object, ...]) -> Prefixes:
        assert isinstance(other, Prefixes)
        return Prefixes(*(mine + its for mine, its in zip(self, other, strict=True)))

    @property
    def share(self) -> float:
        """Share of all tokens that a cache would have known, 0 to 1."""
        return self.kept / self.total if self.total else 0.0

    @property
    def cost(self) -> float:
        """What the tokens cost with the cache, 1 being full price."""
        return READ * self.share + WRITTEN * (1 - self.share) if self.total else 0.0


async def play_calls(
    subject: Subject, session: EvaluationSession, dialect: Dialect, tally: Tally, budget: int
) -> Prefixes:
    """Play a session, and ask for the context wherever the recorded runtime called its model."""
    seen, before = Prefixes(), None
    following = [*session.messages[1:], None]
    for message, next_message in zip(session.messages, following, strict=True):
        await subject.tell(session.session_id, message)
        if next_message is None or next_message.role != "assistant" or message.role == "assistant":
            continue
        prompt = message.content if message.role == "user" else None
        answer = await subject.context(session.session_id, budget, prompt)
        rows = [answer.before.encode("utf-8", "surrogatepass"), *answer.bodies]
        invalid = bool(dialect.check([tally.read(body) for body in answer.bodies]))
        seen += _compared(before, rows, tally, invalid)
        before = rows
    return seen


def _compared(before: Sequence[bytes] | None, rows: Sequence[bytes], tally: Tally, invalid: bool) -> Prefixes:
    if before is None:
        return Prefixes(1, invalid=invalid)
    same = 0
    while same < min(len(before), len(rows)) and before[same] == rows[same]:
        same += 1
    addition = tally.counter.count(rows[0].decode("utf-8", "replace"))
    kept = addition + tally.total(rows[1:same]) if same else 0
    return Prefixes(1, kept, addition + tally.total(rows[1:]), invalid)
