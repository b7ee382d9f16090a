"""The log of compilations, which shows people what was injected, what was not, and why."""

from __future__ import annotations

from msgspec import Struct, json

from sidecar.memory.coordinator import Compilation
from sidecar.memory.ranking import Verdict, clamped

STATE = "memory.events"
"""Name of the session state that holds the events."""
KEPT = 50
"""Number of newest compilations kept for a session."""
LISTED = 40
"""Number of fragments kept for a compilation."""
EXCERPT = 200
"""Maximum length of a kept fragment, in characters."""


class FragmentEvent(Struct, frozen=True, rename="camel"):
    """The decision on one fragment."""

    source: str
    tokens: int
    priority: float
    included: bool
    reason: str
    """Why it was not included: `over the budget`, `injected before` and the like."""
    text: str
    """Its beginning."""
    label: str | None = None
    id: str | None = None


class SourceEvent(Struct, frozen=True, rename="camel"):
    """The contribution of one source."""

    name: str
    milliseconds: int
    fragments: int
    included: int
    tokens: int
    """Tokens of its included fragments."""
    problem: str = ""


class InjectionEvent(Struct, frozen=True, rename="camel"):
    """One compilation."""

    timestamp_ms: int
    agent_id: str
    injection_point: str
    token_budget: int
    tokens: int
    """Tokens of the text that was injected, frame included."""
    synthesized: bool
    sources: list[SourceEvent]
    fragments: list[FragmentEvent]


def event_of(
    made: Compilation, *, timestamp_ms: int, agent_id: str, point: str, budget: int, tokens: int
) -> InjectionEvent:
    """The event of a compilation."""
    sources: list[SourceEvent] = []
    for order, answer in enumerate(made.answers):
        inside = [v for v in made.verdicts if v.included and v.candidate.order == order]
        tokens_of = sum(verdict.candidate.tokens for verdict in inside)
        sources.append(
            SourceEvent(
                answer.source,
                answer.milliseconds,
                len(answer.fragments),
                len(inside),
                tokens_of,
                answer.problem,
            )
        )
    shown = [_told(verdict) for verdict in made.verdicts]
    shown += [
        FragmentEvent(
            source, 0, clamped(f.priority), False, "injected before", _cut(f.content), f.label, f.id
        )
        for source, f in made.known
    ]
    return InjectionEvent(
        timestamp_ms, agent_id, point, budget, tokens, made.synthesized, sources, shown[:LISTED]
    )


def added(kept: bytes | None, event: InjectionEvent) -> bytes:
    """The stored events with one more; the oldest are dropped."""
    return json.encode([*events(kept), event][-KEPT:])


def events(kept: bytes | None) -> list[InjectionEvent]:
    """The stored events, oldest first."""
    return json.decode(kept, type=list[InjectionEvent]) if kept else []


def _told(verdict: Verdict) -> FragmentEvent:
    candidate = verdict.candidate
    fragment = candidate.fragment
    return FragmentEvent(
        candidate.source,
        candidate.tokens,
        candidate.priority,
        verdict.included,
        verdict.reason,
        _cut(fragment.content),
        fragment.label,
        fragment.id,
    )


def _cut(text: str) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text[: 4 * EXCERPT].split())
    return line if len(line) <= EXCERPT else f"{line[: EXCERPT - 3]}..."
