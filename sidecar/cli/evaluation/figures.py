"""What an evaluation measures, as `--json` prints it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class EvaluationFigures(Struct, rename="camel", kw_only=True, frozen=True):
    """Base of everything that is printed."""


class Timing(EvaluationFigures, frozen=True):
    """How long one kind of request took, in milliseconds from request to answer."""

    count: int
    p50: float
    p95: float


class AtBudget(EvaluationFigures, frozen=True):
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


class PrefixFigures(EvaluationFigures, frozen=True):
    """How much a cache of prompts would save, over every call of the model in the recording."""

    budget: int
    calls: int
    kept: float
    """Share of all tokens that are the unchanged beginning of the answer before, 0 to 1."""
    cost: float
    """What the tokens cost where cached ones are read for 0.1 and written for 1.25; 1 is full price."""
    invalid: int


class FileFigures(EvaluationFigures, frozen=True):
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


class Evaluation(EvaluationFigures, frozen=True):
    """The document that `--json` prints."""

    ok: bool
    """True where every answer was valid and within its budget."""
    counter: str
    """What the independent count was made with."""
    results: Sequence[FileFigures]
