"""Decides which fragments enter a compilation, by priority and within every budget.

Rules: protocol.md, section 5, memory. Of two fragments that do not both fit, the one of lower priority is
left out; ties are resolved by order of registration, then by position. A fragment that does not fit is left
out whole, and smaller ones after it may still enter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from sidecar.engine.signature import digest
from sidecar.memory.contract import HIGHEST, Fragment

Reason = Literal["", "empty", "too large", "repeated", "over the budget", "over its source's budget"]

LONGEST = 200_000
"""Maximum length of a fragment in characters; longer ones are refused without counting tokens."""
MAX_TOKENS = (1 << 53) - 1
"""The largest size in tokens; every JSON reader represents it exactly."""
SEPARATOR_TOKENS = 1
"""Tokens of the blank line between two fragments."""


class Candidate(NamedTuple):
    """A fragment with its place in the order and its size."""

    source: str
    order: int
    """Place of its source in the order of registration."""
    position: int
    """Place in its source's answer."""
    fragment: Fragment
    text: str
    """The fragment as the model would see it: label and content."""
    own: int
    """Tokens of that text by our count."""
    tokens: int
    """The size used for budgets: the source's figure or our count, whichever is larger."""

    @property
    def key(self) -> str:
        """The key that identifies the fragment: its id, else a hash of its content."""
        return item_key(self.source, self.fragment)

    @property
    def priority(self) -> float:
        """The priority within its bounds."""
        return clamped(self.fragment.priority)


class Verdict(NamedTuple):
    """The decision on a fragment."""

    candidate: Candidate
    included: bool
    reason: Reason = ""


def candidates(
    source: str, order: int, fragments: Iterable[Fragment], count: Callable[[str], int]
) -> list[Candidate]:
    """The fragments of one source, measured."""
    found: list[Candidate] = []
    for position, fragment in enumerate(fragments):
        text = shown(fragment)
        own = count(text) if len(text) <= LONGEST else len(text)
        tokens = max(_said(fragment.tokens), own)
        found.append(Candidate(source, order, position, fragment, text, own, tokens))
    return found


def choose(found: Iterable[Candidate], budget: int, caps: Mapping[int, int], frame: int = 0) -> list[Verdict]:
    """A verdict on every candidate, highest rank first.

    `caps` maps the order of a source to its own budget, if it has one; `frame` is the tokens of the text
    around all fragments. The budget limits both the sum of the sizes and the tokens of the whole text.
    """
    ranked = sorted(found, key=lambda c: (-c.priority, c.order, c.position))
    left, room = budget, budget - frame
    shares = dict(caps)
    taken: set[str] = set()
    verdicts: list[Verdict] = []
    for candidate in ranked:
        reason = "repeated" if candidate.key in taken else _refusal(candidate, shares.get(candidate.order))
        if not reason and (candidate.tokens > left or candidate.own > room):
            reason = "over the budget"
        if not reason:
            taken.add(candidate.key)
            left -= candidate.tokens
            room -= candidate.own + SEPARATOR_TOKENS
            if candidate.order in shares:
                shares[candidate.order] -= candidate.tokens
        verdicts.append(Verdict(candidate, not reason, reason))
    return verdicts


def without_last(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts with the lowest-ranked included fragment left out."""
    last = max((i for i, verdict in enumerate(verdicts) if verdict.included), default=-1)
    return [
        Verdict(verdict.candidate, False, "over the budget") if i == last else verdict
        for i, verdict in enumerate(verdicts)
    ]


def shown(fragment: Fragment) -> str:
    """A fragment as the model sees it: its content, verbatim, below its label."""
    label = " ".join((fragment.label or "").split())[:200]
    return f"{label}:\n{fragment.content}" if label else fragment.content


def item_key(source: str, fragment: Fragment) -> str:
    """The key that identifies a fragment of a source: its id, else a hash of its content."""
    # Escape source names, which hosts choose freely, so that no two sources share a key.
    name = source.replace("%", "%25").replace(":", "%3A").replace("#", "%23")
    return f"{name}:{fragment.id}" if fragment.id else f"{name}#{digest(fragment.content)}"


def clamped(priority: float) -> float:
    """The priority, or the bound that it exceeds."""
    # Avoid converting integers to floats: they may be too large.
    return min(max(priority, 0), HIGHEST) if priority == priority else 0


def _refusal(candidate: Candidate, share: int | None) -> Reason:
    if not candidate.fragment.content.strip():
        return "empty"
    if len(candidate.text) > LONGEST:
        return "too large"
    return "over its source's budget" if share is not None and candidate.tokens > share else ""


def _said(tokens: float | None) -> int:
    """The size that a source gives for its fragment; 0 if missing or invalid."""
    if tokens is None or not 0 < tokens < math.inf:
        return 0
    return math.ceil(min(tokens, MAX_TOKENS))
