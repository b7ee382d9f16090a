"""What a replay measures, as `--json` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field

Style = Literal["ingest", "commit"]


class Figures(Struct, rename="camel", kw_only=True, frozen=True):
    """Base of everything that is printed."""


class Overflow(Figures, frozen=True):
    """A refusal because not even the minimum fits."""

    required: int
    """Budget that the sidecar asked for, in tokens."""
    minimum: int
    """Tokens of the minimum by independent count, its results as stubs."""
    needless: bool
    """True where the minimum would have fitted."""


class CallFigures(Figures, frozen=True):
    """One answer to the question what the model should see."""

    turn: int
    """The turn in the recording, from 1."""
    messages_before: int
    """Messages that had happened."""
    budget: int
    """The budget in force, in tokens."""
    full_tokens: int
    """Tokens of everything that had happened, by independent count."""
    assembled_tokens: int
    """Tokens of the answer, by independent count."""
    estimated_tokens: int
    """Tokens of the answer, as the sidecar says."""
    message_count: int
    """Messages in the answer."""
    synthetic_messages: int
    """Messages in it that the sidecar has made."""
    epoch: int
    """The answer's `contextEpoch`."""
    prefix_kept: float | None
    """Share of the answer before that this one begins with, 0 to 1; `None` for the first."""
    milliseconds: float
    """From request to answer."""
    compacted: bool
    """True where the context was compacted right before."""
    overflow: Overflow | None
    """Set where the first request was refused."""
    problems: Sequence[str]
    """What is wrong with the answer."""


class TurnFigures(Figures, frozen=True):
    """The calls of one turn together."""

    turn: int
    calls: int
    full_tokens: int
    """At the turn's last call."""
    assembled_tokens: int
    """At the turn's last call."""
    within_budget: bool
    prefix_kept: float | None
    """The smallest of the turn."""
    epoch: int
    """At the turn's last call."""
    valid: bool
    milliseconds: float
    """The mean of its calls."""
    problems: Sequence[str]


class Timing(Figures, frozen=True):
    """How long one kind of request took, in milliseconds."""

    count: int
    p50: float
    p95: float


class Summary(Figures, frozen=True):
    """The whole replay in numbers."""

    messages: int
    turns: int
    answers: int
    invalid_answers: int
    """Answers that the provider would refuse."""
    over_budget: int
    """Answers over the budget by more than the tolerance."""
    untrue_messages: int
    """Messages that came back neither byte for byte nor marked as synthetic."""
    returned_messages: int
    synthetic_messages: int
    inconsistent_answers: int
    """Answers whose own figures contradict each other or the answer before."""
    overflows: int
    needless_overflows: int
    failed_retries: int
    not_stored: int
    """Messages that the sidecar declined to store."""
    prefix_kept: float
    """Share of all tokens sent that the next answer began with, 0 to 1."""
    whole_prefixes: float
    """Share of answers that began with the whole answer before, 0 to 1."""
    epochs: int
    compactions: int
    full_tokens: int
    """Tokens of the whole session."""
    largest_answer: int
    """In tokens."""
    share_of_full: float
    """Tokens of all answers against those of sending everything each time, 0 to 1."""
    seconds: float
    timings: dict[str, Timing] = field(default_factory=dict[str, Timing])


class Replay(Figures, frozen=True):
    """The document that `--json` prints."""

    ok: bool
    """True where every answer was valid, within the budget and byte for byte."""
    transcript: str
    message_format: str
    engine: str
    budget: int
    style: Style
    counter: str
    """What the independent count was made with."""
    tolerance: float
    """Share of the budget by which the independent count may differ."""
    skipped: dict[str, int]
    """Rows of the transcript that are no messages, by reason."""
    summary: Summary
    turns: Sequence[TurnFigures]
    calls: Sequence[CallFigures]
