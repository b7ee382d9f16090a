"""Plays evaluation sessions to a sidecar, asks for the context of every question, and looks what is in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from sidecar.cli.evaluation.evidence import Found, evidence_among, evidence_in, normalized
from sidecar.cli.evaluation.questions import EvaluationSession, Question, RecordedMessage
from sidecar.cli.replay.judging import TOLERANCE_ESTIMATE, TOLERANCE_EXACT
from sidecar.cli.replay.recording import Tally
from sidecar.client.answers import AssembledContext
from sidecar.client.errors import ContextOverflow, InvalidParams
from sidecar.client.sidecar_client import SidecarClient
from sidecar.messages.contract import Dialect
from sidecar.protocol.times import parse_rfc3339

SEARCH_TOOL = "context_search"
HIT_COUNTS = (5, 10, 20)
"""First hits of a search among which evidence is looked for."""

T = TypeVar("T")


class Hits(msgspec.Struct, frozen=True):
    """The part of the tool's structured content that is looked at."""

    class Hit(msgspec.Struct, frozen=True, rename="camel"):
        """One hit."""

        message_id: str | None = None
        text: str = ""

    hits: Sequence[Hit] = ()


class Answer(NamedTuple):
    """The context for one question under one budget."""

    kind: str
    budget: int
    found: Found
    tokens: int
    over_budget: bool
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
        client: SidecarClient,
        dialect: Dialect,
        tally: Tally,
        budgets: Sequence[int],
        advance: Callable[[], None],
    ) -> None:
        self.asked = Asked([], {count: [] for count in HIT_COUNTS}, {})
        self._client = client
        self._dialect = dialect
        self._tally = tally
        self._budgets = budgets
        self._advance = advance
        self._tolerance = TOLERANCE_EXACT if tally.counter.exact else TOLERANCE_ESTIMATE

    async def play(self, session: EvaluationSession, limit: int | None) -> None:
        """Tell every message, and ask where the recording does; at most `limit` questions."""
        questions = session.asked(limit)
        texts = {message.name: message.text for message in session.messages}
        searchable = any(tool.name == SEARCH_TOOL for tool in await self._client.tools(session.session_id))
        for at, message in enumerate(session.messages):
            await self._timed("ingest", tell(self._client, session.session_id, message))
            for question in questions.get(at, ()):
                if searchable:
                    await self._search(session.session_id, question, texts)
                for budget in self._budgets:
                    await self._assemble(session.session_id, question, texts, budget)
            self._advance()

    async def _search(self, session_id: str, question: Question, texts: dict[str, str]) -> None:
        arguments = {"mode": "relevant", "query": question.prompt, "limit": max(HIT_COUNTS)}
        result = await self._timed("search", self._client.call_tool(session_id, SEARCH_TOOL, arguments))
        content = result.structured_content
        hits = msgspec.json.decode(bytes(content), type=Hits).hits if content else ()
        for count, shares in self.asked.search.items():
            first = [(hit.message_id, hit.text) for hit in hits[:count]]
            shares.append(evidence_among(question, texts, first))

    async def _assemble(
        self, session_id: str, question: Question, texts: dict[str, str], budget: int
    ) -> None:
        asking = self._client.assemble(session_id, budget, prompt=question.prompt)
        try:
            answer = await self._timed("assemble", asking)
        except ContextOverflow:
            nothing = Found(0.0, complete=False, answers=0.0 if question.answers else None)
            refused = Answer(
                question.kind, budget, nothing, 0, over_budget=False, invalid=False, refused=True
            )
            self.asked.answers.append(refused)
            return
        tokens = answer_tokens(answer, self._tally)
        self.asked.answers.append(
            Answer(
                kind=question.kind,
                budget=budget,
                found=evidence_in(question, texts, self._said(answer, question.prompt)),
                tokens=tokens,
                over_budget=tokens > budget * (1 + self._tolerance),
                invalid=bool(self._dialect.check([self._tally.read(body) for body in answer.bodies])),
                refused=False,
            )
        )

    def _said(self, answer: AssembledContext, prompt: str) -> str:
        """All texts of an answer, without the question itself."""
        readings = [self._tally.read(body) for body in answer.bodies]
        if readings and readings[-1].role == "user" and normalized(readings[-1].text) == normalized(prompt):
            readings.pop()
        parts = [answer.system_prompt_addition or ""]
        for reading in readings:
            parts += [reading.text, *(f"{call.name}({call.arguments})" for call in reading.calls)]
            parts += [result.text for result in reading.results if result.text != reading.text]
        return "\n".join(part for part in (*parts, answer.user_message_append or "") if part)

    async def _timed(self, kind: str, work: Coroutine[object, object, T]) -> T:
        began = time.perf_counter()
        try:
            return await work
        finally:
            self.asked.durations.setdefault(kind, []).append(1000 * (time.perf_counter() - began))


async def tell(client: SidecarClient, session_id: str, message: RecordedMessage) -> None:
    """Ingest a message, with its time where that is RFC 3339."""
    await client.ingest(
        session_id,
        message.encoded(),
        message_id=message.name,
        timestamp=message.ts if message.ts and _is_time(message.ts) else None,
    )


def answer_tokens(answer: AssembledContext, tally: Tally) -> int:
    """Tokens of an answer by independent count, additions included."""
    additions = (answer.system_prompt_addition or "", answer.user_message_append or "")
    return tally.total(answer.bodies) + sum(map(tally.counter.count, additions))


def _is_time(text: str) -> bool:
    try:
        parse_rfc3339(text)
    except (ValueError, InvalidParams):
        return False
    return True
