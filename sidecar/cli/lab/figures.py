"""What a replay or an evaluation measures, as `--json` prints it, and what is to be said of it."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Literal

from msgspec import Struct, field

from sidecar.cli.options import Prices

Style = Literal["ingest", "commit"]
Grade = Literal["good", "short", "wrong"]


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
    """The budget that was asked for, in tokens."""
    answered: bool
    """True where this budget was answered; an answer to a retry with a larger one is not counted."""
    full_tokens: int
    """Tokens of everything that had happened, by independent count."""
    assembled_tokens: int
    """Tokens of the answer, or of the answer to the retry, by independent count; 0 without either."""
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
    prefix_tokens: int
    """Tokens of the answer before that this one begins with, by independent count."""
    values_used: int
    """Values such as paths and ids that the model's next call takes from an earlier turn."""
    values_in_view: int
    """Those of them that stand in the answer."""
    milliseconds: float
    """From request to answer."""
    compacted: bool
    """True where the context was compacted right before."""
    overflow: Overflow | None
    """Set where the budget was refused; the context is then asked for once more with what is required."""
    problems: Sequence[str]
    """What is wrong with the answer, or why there is none."""


class TurnFigures(Figures, frozen=True):
    """The calls of one turn together."""

    turn: int
    calls: int
    full_tokens: int
    """At the turn's last call."""
    assembled_tokens: int
    """At the turn's last call."""
    within_budget: bool
    """True where every call was answered within the budget."""
    refused: int
    """Calls whose budget was refused."""
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

    @classmethod
    def of(cls, times: Sequence[float]) -> Timing:
        """The timing of requests that took these milliseconds."""
        ordered = sorted(times)
        p50, p95 = (round(ordered[-(-len(ordered) * percent // 100) - 1], 3) for percent in (50, 95))
        return cls(count=len(ordered), p50=p50, p95=p95)


class Stopwatch:
    """Times requests, by their kind."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}

    @contextmanager
    def timing(self, kind: str) -> Generator[None]:
        """Times the block, also where it fails."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._times.setdefault(kind, []).append(1000 * (time.perf_counter() - began))

    def last(self, kind: str) -> float:
        """Milliseconds of the newest request of a kind."""
        return round(self._times[kind][-1], 3)

    def timings(self) -> dict[str, Timing]:
        """The timing of every kind."""
        return {kind: Timing.of(times) for kind, times in sorted(self._times.items())}


class Summary(Figures, frozen=True):
    """The whole replay in numbers."""

    messages: int
    turns: int
    asked: int
    """Calls of the model before which the context was asked for."""
    answers: int
    """Those that were answered with the budget given."""
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
    """Calls whose budget was refused because not even the minimum fits."""
    needless_overflows: int
    """Those of them whose minimum would have fitted."""
    failed_retries: int
    """Retries with the required budget that were refused as well."""
    failures: int
    """Calls that ended in an error, were answered by a stand-in, or whose compaction failed."""
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
    """Of the answers to the budget given, in tokens."""
    largest_retry: int
    """Of the answers to retries with a larger budget, in tokens."""
    share_of_full: float
    """Tokens of all answers against those of sending everything each time, 0 to 1."""
    sent_tokens: int
    """Tokens of all answers."""
    cached_tokens: int
    """Those of them with which the answer before began."""
    values_used: int
    """Values such as paths and ids that calls took from earlier turns."""
    values_in_view: int
    """Those of them that the model could see when it made the call."""
    seconds: float
    timings: dict[str, Timing] = field(default_factory=dict[str, Timing])


class Judgement(Figures, frozen=True):
    """What is to be said about a whole replay or evaluation."""

    grade: Grade
    """`wrong` where the sidecar erred, `short` where the budget cannot be met or nothing was asked."""
    sentences: Sequence[str]

    @classmethod
    def of(cls, wrong: Sequence[tuple[int, str]], short: Sequence[str], good: str) -> Judgement:
        """The verdict: what is `wrong` that has a count, then what falls `short`, else that all is `good`."""
        errors = ", ".join(said for count, said in wrong if count)
        if not errors and not short:
            return cls(grade="good", sentences=[good])
        sentences = [f"Wrong: {errors}.", *short] if errors else short
        return cls(grade="wrong" if errors else "short", sentences=sentences)


class Replay(Figures, frozen=True):
    """The document that `--json` prints."""

    ok: bool
    """True where every call was answered within the budget, validly and byte for byte."""
    verdict: Judgement
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


class Compared(Figures, frozen=True):
    """One way to choose the context, over one transcript."""

    engine: str
    """The id of the engine, or the name of what engines are compared with."""
    sent_tokens: int
    cached_tokens: int
    cost: float
    largest_answer: int
    """In tokens; above the budget where everything is sent."""
    prefix_kept: float | None
    values_used: int | None
    values_in_view: int | None
    """`None` for what engines are compared with."""
    p50: float | None
    """Milliseconds of an answer."""
    refused: int
    wrong: Sequence[str]
    """What the engine got wrong; empty where nothing."""


class Comparison(Figures, frozen=True):
    """The document that `--json` prints for several engines."""

    ok: bool
    transcript: str
    budget: int
    prices: Prices
    counter: str
    engines: Sequence[Compared]


class AtBudget(Figures, frozen=True):
    """The answers of one budget."""

    budget: int
    """Tokens."""
    questions: int
    evidence: float
    """Share of the evidence that stands in the context, 0 to 1."""
    found: int
    """Pieces of evidence that do."""
    wanted: int
    """Pieces of evidence that there are."""
    complete: float
    """Share of the questions of which all evidence does, 0 to 1."""
    answers: float | None
    """Share of the answers' texts that do, 0 to 1; `None` where no question names any."""
    tokens: float
    """The mean of the answers, by independent count."""
    over_budget: int
    """Answers over the budget by more than the tolerance of the count."""
    over_by_characters: int
    """Answers over the budget where four characters, or one of Han, are taken for a token; counted apart,
    since such a count is up to a third above a tokenizer's."""
    invalid: int
    """Answers that a provider would refuse."""
    refused: int
    """Questions for which not even the smallest valid context fits; they count as nothing found."""
    by_kind: dict[str, float]
    """Share of the evidence by kind of question."""


class PrefixFigures(Figures, frozen=True):
    """How much a cache of prompts would save, over every call of the model in the recording."""

    budget: int
    calls: int
    kept: float
    """Share of all tokens that are the unchanged beginning of the answer before, 0 to 1."""
    cost: float
    """What the tokens cost where cached ones are read for 0.1 and written for 1.25; 1 is full price."""
    invalid: int
    refused: int
    """Calls whose budget was refused."""


class FileFigures(Figures, frozen=True):
    """One engine over one file."""

    file: str
    engine: str
    """Its id, or the name of what it is compared with."""
    sessions: int
    messages: int
    budgets: Sequence[AtBudget]
    search: dict[int, float]
    """Share of the evidence among the first so many hits of `context_search`; empty without that tool."""
    prefix: PrefixFigures | None
    timings: dict[str, Timing]


class Evaluation(Figures, frozen=True):
    """The document that `--json` prints."""

    ok: bool
    """True where every question was answered validly and within its budget."""
    verdict: Judgement
    counter: str
    """What the independent count was made with."""
    results: Sequence[FileFigures]
