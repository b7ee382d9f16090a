"""Plays evaluation sessions to a sidecar, asks for the context of every question, and looks what is in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import NamedTuple, TypeVar

from sidecar.cli.evaluation.evidence import Found, evidence_among, evidence_in, normalized, nothing_in
from sidecar.cli.evaluation.questions import EvaluationSession, Question
from sidecar.cli.evaluation.subjects import Context, Subject
from sidecar.cli.replay.judging import TOLERANCE_ESTIMATE, TOLERANCE_EXACT
from sidecar.cli.replay.recording import Tally
from sidecar.client.errors import ContextOverflow
from sidecar.messages.contract import Dialect
from sidecar.recall.passages import rough_tokens
from sidecar.tokens.message_cost import MESSAGE_OVERHEAD, readable_text

HIT_COUNTS = (5, 10, 20)
"""First hits of a search among which evidence is looked for."""

T = TypeVar("T")


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
    durations: dict[str, list[float]]
    """Milliseconds of every request, by its kind."""


class Questioner:
    """Asks the questions of sessions, one session after the other."""

    def __init__(
        self,
        subject: Subject,
        dialect: Dialect,
        tally: Tally,
        budgets: Sequence[int],
        advance: Callable[[], None],
    ) -> None:
        self.asked = Asked([], {count: [] for count in HIT_COUNTS}, {})
        self._subject = subject
        self._dialect = dialect
        self._tally = tally
        self._budgets = budgets
        self._advance = advance
        self._tolerance = TOLERANCE_EXACT if tally.counter.exact else TOLERANCE_ESTIMATE

    async def play(self, session: EvaluationSession, limit: int | None) -> None:
        """Tell every message, and ask where the recording does; at most `limit` questions."""
        questions = session.asked(limit)
        texts = {message.name: message.text for message in session.messages}
        for at, message in enumerate(session.messages):
            await self._timed("ingest", self._subject.tell(session.session_id, message))
            if at in questions:
                await self._subject.settle()
            for question in questions.get(at, ()):
                await self._search(session.session_id, question, texts)
                for budget in self._budgets:
                    await self._assemble(session.session_id, question, texts, budget)
            self._advance()

    async def _search(self, session_id: str, question: Question, texts: dict[str, str]) -> None:
        searching = self._subject.search(session_id, question.prompt, max(HIT_COUNTS))
        hits = await self._timed("search", searching)
        if hits is None:
            return
        for count, shares in self.asked.search.items():
            shares.append(evidence_among(question, texts, hits[:count]))

    async def _assemble(
        self, session_id: str, question: Question, texts: dict[str, str], budget: int
    ) -> None:
        asking = self._subject.context(session_id, budget, question.prompt)
        try:
            answer = await self._timed("assemble", asking)
        except ContextOverflow:
            self.asked.answers.append(_refused(question, budget))
            return
        tokens = answer_tokens(answer, self._tally)
        self.asked.answers.append(
            Answer(
                kind=question.kind,
                budget=budget,
                found=evidence_in(question, texts, self._said(answer, question.prompt)),
                tokens=tokens,
                over_budget=tokens > budget * (1 + self._tolerance),
                over_by_characters=self._by_characters(answer) > budget * (1 + TOLERANCE_EXACT),
                invalid=bool(self._dialect.check([self._tally.read(body) for body in answer.bodies])),
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

    async def _timed(self, kind: str, work: Coroutine[object, object, T]) -> T:
        began = time.perf_counter()
        try:
            return await work
        finally:
            self.asked.durations.setdefault(kind, []).append(1000 * (time.perf_counter() - began))


def answer_tokens(answer: Context, tally: Tally) -> int:
    """Tokens of an answer by independent count, additions included."""
    return tally.total(answer.bodies) + sum(map(tally.counter.count, (answer.before, answer.behind)))


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
