"""Puts the questions of recorded sessions to an engine, and sums up what its answers hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from sidecar.cli.lab.figures import AtBudget, FileFigures, Judgement, PrefixFigures, Stopwatch
from sidecar.cli.lab.judge import common_prefix
from sidecar.cli.lab.questions import (
    EvaluationSession,
    Found,
    Question,
    evidence_among,
    evidence_in,
    normalized,
    nothing_in,
)
from sidecar.cli.lab.recording import TOLERANCE_EXACT, Tally
from sidecar.cli.lab.subjects import BASELINES, Context, SidecarSubject, Subject, baselines
from sidecar.cli.options import Common
from sidecar.cli.own_sidecar import with_fresh_sidecar
from sidecar.client.errors import ContextOverflow
from sidecar.client.sidecar_client import SidecarClient
from sidecar.messages.dialects import dialect
from sidecar.plurals import counted
from sidecar.recall.passages import rough_tokens
from sidecar.tokens.contract import TokenCounter
from sidecar.tokens.message_cost import MESSAGE_OVERHEAD, readable_text

FORMAT = "openai"
HIT_COUNTS = (5, 10, 20)
"""First hits of a search among which evidence is looked for."""
READ, WRITTEN = 0.1, 1.25
"""Prices of a cached token that is read and of one that is written, against 1 without a cache.

https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
"""

T = TypeVar("T")


class Measured(NamedTuple):
    """An engine, or something simpler, as it is to be measured."""

    name: str | None
    """An id, `None` for the configured engine, or a name of `baselines`."""
    meaning: bool | None = None
    """Whether it searches by meaning too; `None` leaves that to the configuration."""

    @property
    def suffix(self) -> str:
        """What its name is told with."""
        return "+meaning" if self.meaning else ""

    @property
    def config(self) -> Mapping[str, object] | None:
        """Settings of its sidecar."""
        return None if self.meaning is None else {"search": {"meaning": "on" if self.meaning else "off"}}


class Plan(NamedTuple):
    """What to measure."""

    budgets: Sequence[int]
    """Tokens."""
    limit: int | None
    """Questions of a session at most."""
    prefix_budget: int | None
    """Tokens of the answers whose prefixes are compared; `None` for no comparison."""


def evaluate(
    common: Common,
    measured: Measured,
    file: str,
    sessions: Sequence[EvaluationSession],
    plan: Plan,
    counter: TokenCounter,
    advance: Callable[[], None],
) -> FileFigures:
    """What an engine, or something simpler, does with the questions of a file.

    Every run of an engine has a sidecar and a store of its own. `advance` is called once for every message
    that is played.
    """
    tally = Tally(dialect(FORMAT), counter)
    run = _runner(common, measured, counter)

    async def ask(subject: Subject) -> Asked:
        questioner = Questioner(subject, tally, plan.budgets, advance)
        for session in sessions:
            if session.questions:
                await questioner.play(session, plan.limit)
        return questioner.asked

    name, asked = run(ask)
    return FileFigures(
        file=file,
        engine=name + measured.suffix,
        sessions=len(sessions),
        messages=sum(len(session.messages) for session in sessions),
        budgets=[_at_budget(budget, asked.answers) for budget in plan.budgets],
        search={count: _mean(shares) for count, shares in asked.search.items() if shares},
        prefix=_prefixes(run, sessions, plan, tally),
        timings=asked.stopwatch.timings(),
    )


def _prefixes(
    run: Run, sessions: Sequence[EvaluationSession], plan: Plan, tally: Tally
) -> PrefixFigures | None:
    budget = plan.prefix_budget
    if budget is None:
        return None

    async def play(subject: Subject) -> Prefixes:
        seen = Prefixes()
        for session in sessions:
            seen += await play_calls(subject, session, tally, budget)
        return seen

    _, seen = run(play)
    return PrefixFigures(
        budget=budget,
        calls=seen.calls,
        kept=round(seen.share, 4),
        cost=round(seen.cost, 4),
        invalid=seen.invalid,
        refused=seen.refused,
    )


class Run(Protocol):
    """Does some work with a new subject; gives the subject's name, and what came of the work."""

    def __call__(self, work: Callable[[Subject], Coroutine[object, object, T]]) -> tuple[str, T]: ...


def _runner(common: Common, measured: Measured, counter: TokenCounter) -> Run:
    engine = measured.name
    simple = baselines(counter.count).get(engine or "")

    def with_baseline(work: Callable[[Subject], Coroutine[object, object, T]]) -> tuple[str, T]:
        assert simple is not None
        return engine or "", asyncio.run(work(simple()))

    def with_engine(work: Callable[[Subject], Coroutine[object, object, T]]) -> tuple[str, T]:
        async def answered(client: SidecarClient) -> tuple[str, T]:
            subject = SidecarSubject(client, by_meaning=bool(measured.meaning))
            return client.engine.id, await work(subject)

        apart = common._replace(state_dir=None)
        return with_fresh_sidecar(
            apart, answered, engine=engine, message_format=FORMAT, config=measured.config
        )

    return with_baseline if simple else with_engine


def _at_budget(budget: int, answers: Iterable[Answer]) -> AtBudget:
    mine = [answer for answer in answers if answer.budget == budget]
    kinds = sorted({answer.kind for answer in mine})
    held = [answer.found.answers for answer in mine if answer.found.answers is not None]
    return AtBudget(
        budget=budget,
        questions=len(mine),
        evidence=_mean([answer.found.evidence for answer in mine]),
        found=sum(answer.found.held for answer in mine),
        wanted=sum(answer.found.wanted for answer in mine),
        complete=_mean([answer.found.complete for answer in mine]),
        answers=_mean(held) if held else None,
        tokens=round(_mean([answer.tokens for answer in mine if not answer.refused]), 1),
        over_budget=sum(answer.over_budget for answer in mine),
        over_by_characters=sum(answer.over_by_characters for answer in mine),
        invalid=sum(answer.invalid for answer in mine),
        refused=sum(answer.refused for answer in mine),
        by_kind={kind: _mean([a.found.evidence for a in mine if a.kind == kind]) for kind in kinds},
    )


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def judge_evaluation(results: Sequence[FileFigures]) -> Judgement:
    """What is to be said about the engines; what they are compared with is held to nothing."""
    engines = [result for result in results if result.engine not in BASELINES]
    answers = [at for result in engines for at in result.budgets]
    prefixes = [result.prefix for result in engines if result.prefix is not None]
    invalid = sum(at.invalid for at in answers) + sum(prefix.invalid for prefix in prefixes)
    over, refused = sum(at.over_budget for at in answers), sum(at.refused for at in answers)
    refused += sum(prefix.refused for prefix in prefixes)
    asked = sum(at.questions for at in answers) + sum(one.calls + one.refused for one in prefixes)
    wrong = [
        (invalid, counted(invalid, "invalid answer")),
        (over, f"{counted(over, 'answer')} over the budget"),
    ]
    short: list[str] = []
    if refused:
        short.append(f"The budget was refused for {refused:,} of {counted(asked, 'request')}.")
    if engines and not asked:
        short.append("Nothing was asked: the files have no questions.")
    return Judgement.of(wrong, short, "Every answer was valid and within its budget.")


class Answer(NamedTuple):
    """The context for one question under one budget."""

    kind: str
    budget: int
    found: Found
    tokens: int
    over_budget: bool
    over_by_characters: bool
    invalid: bool
    refused: bool


class Asked(NamedTuple):
    """Everything that was seen while the sessions of one file were played."""

    answers: list[Answer]
    search: dict[int, list[float]]
    """By the number of hits, the share of each question's evidence among them."""
    stopwatch: Stopwatch


class Questioner:
    """Asks the questions of sessions, one session after the other."""

    def __init__(
        self,
        subject: Subject,
        tally: Tally,
        budgets: Sequence[int],
        advance: Callable[[], None],
    ) -> None:
        self.asked = Asked([], {count: [] for count in HIT_COUNTS}, Stopwatch())
        self._subject = subject
        self._tally = tally
        self._budgets = budgets
        self._advance = advance
        self._timing = self.asked.stopwatch.timing

    async def play(self, session: EvaluationSession, limit: int | None) -> None:
        """Tell every message, and ask where the recording does; at most `limit` questions.

        Each budget has a session of its own: what was cut for one of them would stay cut for the others.
        """
        questions = session.asked(limit)
        texts = {message.name: message.text for message in session.messages}
        ids = {budget: f"{session.session_id} at {budget}" for budget in self._budgets}
        for at, message in enumerate(session.messages):
            for session_id in ids.values():
                with self._timing("ingest"):
                    await self._subject.tell(session_id, message)
            if at in questions:
                await self._subject.settle()
            for question in questions.get(at, ()):
                await self._search(ids[self._budgets[0]], question, texts)
                for budget, session_id in ids.items():
                    await self._assemble(session_id, question, texts, budget)
            self._advance()

    async def _search(self, session_id: str, question: Question, texts: dict[str, str]) -> None:
        with self._timing("search"):
            hits = await self._subject.search(session_id, question.prompt, max(HIT_COUNTS))
        if hits is None:
            return
        for count, shares in self.asked.search.items():
            shares.append(evidence_among(question, texts, hits[:count]))

    async def _assemble(
        self, session_id: str, question: Question, texts: dict[str, str], budget: int
    ) -> None:
        try:
            with self._timing("assemble"):
                answer = await self._subject.context(session_id, budget, question.prompt)
        except ContextOverflow:
            self.asked.answers.append(_refused(question, budget))
            return
        tokens = self._tally.total(answer.bodies, answer.before, answer.behind)
        self.asked.answers.append(
            Answer(
                kind=question.kind,
                budget=budget,
                found=evidence_in(question, texts, self._said(answer, question.prompt)),
                tokens=tokens,
                over_budget=tokens > budget * (1 + self._tally.tolerance),
                over_by_characters=self._by_characters(answer) > budget * (1 + TOLERANCE_EXACT),
                invalid=bool(self._tally.problems(answer.bodies)),
                refused=False,
            )
        )

    def _said(self, answer: Context, prompt: str) -> str:
        """All texts of an answer, without the question itself."""
        readings = [self._tally.read(body) for body in answer.bodies]
        if readings and readings[-1].role == "user" and normalized(readings[-1].text) == normalized(prompt):
            readings.pop()
        parts = [answer.before]
        for reading in readings:
            parts += [reading.text, *(f"{call.name}({call.arguments})" for call in reading.calls)]
            parts += [result.text for result in reading.results if result.text != reading.text]
        return "\n".join(part for part in (*parts, answer.behind) if part)

    def _by_characters(self, answer: Context) -> int:
        """Tokens of an answer as hosts without a tokenizer count them."""
        readings = [self._tally.read(body) for body in answer.bodies]
        texts = [*map(readable_text, readings), answer.before, answer.behind]
        return sum(rough_tokens(text) for text in texts if text) + MESSAGE_OVERHEAD * len(readings)


def _refused(question: Question, budget: int) -> Answer:
    """Nothing was found, since nothing was answered."""
    found = nothing_in(question)
    return Answer(
        question.kind,
        budget,
        found,
        0,
        over_budget=False,
        over_by_characters=False,
        invalid=False,
        refused=True,
    )


class Prefixes(NamedTuple):
    """Sums over answers that had one before them."""

    calls: int = 0
    kept: int = 0
    """Tokens of unchanged beginnings."""
    total: int = 0
    """Tokens of all answers."""
    invalid: int = 0
    refused: int = 0
    """Calls whose budget was refused; they have no answer to compare."""

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


async def play_calls(subject: Subject, session: EvaluationSession, tally: Tally, budget: int) -> Prefixes:
    """Play a session, and ask for the context wherever the recorded runtime called its model."""
    seen, before = Prefixes(), None
    following = [*session.messages[1:], None]
    for message, next_message in zip(session.messages, following, strict=True):
        await subject.tell(session.session_id, message)
        if next_message is None or next_message.role != "assistant" or message.role == "assistant":
            continue
        prompt = message.content if message.role == "user" else None
        try:
            answer = await subject.context(session.session_id, budget, prompt)
        except ContextOverflow:
            seen += Prefixes(refused=1)
            continue
        rows = [answer.before.encode("utf-8", "surrogatepass"), *answer.bodies]
        seen += _compared(before, rows, tally, bool(tally.problems(answer.bodies)))
        before = rows
    return seen


def _compared(before: Sequence[bytes] | None, rows: Sequence[bytes], tally: Tally, invalid: bool) -> Prefixes:
    if before is None:
        return Prefixes(1, invalid=invalid)
    same = common_prefix(before, rows)
    addition = tally.counter.count(rows[0].decode("utf-8", "replace"))
    kept = addition + tally.total(rows[1:same]) if same else 0
    return Prefixes(1, kept, addition + tally.total(rows[1:]), invalid)
