"""Judges one answer by what was said before it, without trusting the sidecar's own figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from sidecar.cli.lab.recording import Tally
from sidecar.client.messages import AssembledContext
from sidecar.messages.contract import Reading
from sidecar.messages.fence import claimed_mark


def common_prefix(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """How many messages both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (here, there) in pairs if here != there), min(len(one), len(other)))


class Verdict(NamedTuple):
    """What is to say about one answer."""

    tokens: int
    """By independent count, additions included."""
    invalid: list[str]
    over_budget: list[str]
    untrue: list[str]
    inconsistent: list[str]
    synthetic: int
    prefix_kept: float | None
    prefix_tokens: int
    """Tokens of the answer before that this one begins with."""

    @property
    def problems(self) -> list[str]:
        """Everything that is wrong."""
        return [*self.invalid, *self.over_budget, *self.untrue, *self.inconsistent]


class Judge:
    """Knows the answer before, since answers have to go on from each other."""

    def __init__(self, tally: Tally, *, held_to_budget: bool, arranged: bool) -> None:
        self._tally = tally
        self._held_to_budget = held_to_budget
        self._arranged = arranged
        self._before: tuple[list[bytes], int, str | None] | None = None

    def judge(self, answer: AssembledContext, told: Sequence[bytes], budget: int) -> Verdict:
        """What is to say about an answer that was given when `told` had happened."""
        bodies = answer.bodies
        readings = [self._tally.read(body) for body in bodies]
        tokens = self._tally.total(bodies, answer.system_prompt_addition, answer.user_message_append)
        kept, prefix_tokens = self._prefix(bodies)
        untrue, synthetic = _untrue(bodies, readings, told)
        verdict = Verdict(
            tokens=tokens,
            invalid=self._invalid(bodies),
            over_budget=self._over_budget(tokens, answer, budget),
            untrue=untrue,
            inconsistent=[*_contradictions(answer), *self._broken_prefix(answer, bodies)],
            synthetic=synthetic,
            prefix_kept=kept,
            prefix_tokens=prefix_tokens,
        )
        self._before = bodies, answer.context_epoch, answer.system_prompt_addition
        return verdict

    def _invalid(self, bodies: list[bytes]) -> list[str]:
        if not self._arranged:
            return []
        return [
            f"invalid: {problem.rule} at message {problem.index}: {problem.detail}"
            for problem in self._tally.problems(bodies)
        ]

    def _over_budget(self, tokens: int, answer: AssembledContext, budget: int) -> list[str]:
        if not self._held_to_budget:
            return []
        if answer.estimated_tokens > budget:
            return [f"over budget: the sidecar itself says {answer.estimated_tokens} of {budget}"]
        if tokens > budget * (1 + self._tally.tolerance):
            return [f"over budget: {tokens} of {budget} tokens"]
        return []

    def _prefix(self, bodies: list[bytes]) -> tuple[float | None, int]:
        if self._before is None:
            return None, 0
        before = self._before[0]
        same = common_prefix(before, bodies)
        kept = self._tally.total(before[:same])
        whole = self._tally.total(before)
        return (kept / whole if whole else 1.0), kept

    def _broken_prefix(self, answer: AssembledContext, bodies: list[bytes]) -> list[str]:
        if self._before is None:
            return []
        before, epoch, addition = self._before
        if answer.context_epoch < epoch:
            return [f"inconsistent: the epoch fell from {epoch} to {answer.context_epoch}"]
        if answer.context_epoch > epoch:
            return []
        if bodies[: len(before)] != before:
            return [f"inconsistent: the epoch stayed {epoch}, but the messages before have changed"]
        if answer.system_prompt_addition != addition:
            return [f"inconsistent: the epoch stayed {epoch}, but systemPromptAddition has changed"]
        return []


def _untrue(bodies: list[bytes], readings: list[Reading], told: Sequence[bytes]) -> tuple[list[str], int]:
    """Messages that are neither marked nor among those that were told, and how many are marked."""
    left = Counter(told)
    untrue: list[str] = []
    synthetic = 0
    for at, (body, reading) in enumerate(zip(bodies, readings, strict=True)):
        if left[body]:
            left[body] -= 1
        elif _is_marked(reading):
            synthetic += 1
        else:
            untrue.append(f"not byte for byte: message {at}: {body[:80].decode('utf-8', 'replace')}")
    return untrue, synthetic


def _is_marked(reading: Reading) -> bool:
    """Whether the message, or a tool result in it, says by its mark that the sidecar wrote it."""
    texts = [reading.text, *(result.text for result in reading.results)]
    return any(claimed_mark(text) is not None for text in texts if text)


def _contradictions(answer: AssembledContext) -> list[str]:
    found: list[str] = []
    parts = answer.composition
    count = len(answer.messages or ())
    if sum(part.tokens for part in parts) != answer.estimated_tokens:
        found.append("inconsistent: the tokens of the composition do not sum to estimatedTokens")
    if sum(part.message_count for part in parts) != count:
        found.append("inconsistent: the counts of the composition do not sum to the length of the list")
    if answer.stable_prefix.message_count > count:
        found.append("inconsistent: the stable prefix is longer than the list")
    return found
