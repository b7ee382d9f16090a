"""Plays a recorded session as an agent runtime would, against a real sidecar."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from sidecar.cli.replay.figures import CallFigures, Overflow, Style
from sidecar.cli.replay.judging import Judge, Verdict
from sidecar.cli.replay.recording import Recording, Step, Tally, smallest_answer
from sidecar.client.answers import AssembledContext
from sidecar.client.errors import ContextOverflow
from sidecar.client.sidecar_client import SidecarClient
from sidecar.protocol.base import EngineInfo

LEGACY = "legacy"


class Plan(NamedTuple):
    """How to replay."""

    session_id: str
    budget: int
    style: Style
    every_call: bool
    """Ask before every call of the model; otherwise once a turn."""
    compaction: bool
    """Compact where preflight says so."""


class Played(NamedTuple):
    """What came of it."""

    calls: list[CallFigures]
    verdicts: list[Verdict]
    not_stored: int
    failed_retries: int
    """Requests that were refused although the budget was what the sidecar had asked for."""
    times: dict[str, list[float]]
    """Milliseconds of every request, by kind."""
    newest: list[bytes]
    """The messages of the last answer."""


class Runtime:
    """One session, from its first message to its last."""

    def __init__(
        self,
        client: SidecarClient,
        recording: Recording,
        tally: Tally,
        plan: Plan,
        advance: Callable[[], None],
    ) -> None:
        self._client = client
        self._recording = recording
        self._tally = tally
        self._plan = plan
        self._advance = advance
        engine: EngineInfo = client.engine
        self._is_legacy = engine.id == LEGACY
        self._compacts = plan.compaction and engine.owns_compaction
        self._judge = Judge(
            recording.dialect, tally, held_to_budget=not self._is_legacy, arranged=not self._is_legacy
        )
        self._told: list[bytes] = []
        self._full_tokens = 0
        self._open_turn: list[bytes] = []
        self._commits = 0
        self._asked_turn = 0
        self._played = Played([], [], 0, 0, {}, [])
        self._not_stored = 0
        self._failed_retries = 0

    async def play(self) -> Played:
        """Tell every message, and ask wherever the model was called."""
        steps = self._recording.steps
        for at, step in enumerate(steps):
            if step.asks_model:
                await self._ask(step.turn)
            await self._tell(step)
            self._advance()
            ends_turn = at + 1 == len(steps) or steps[at + 1].turn != step.turn
            if ends_turn and at + 1 == len(steps) and step.reading.role in ("user", "tool"):
                await self._ask(step.turn)
            if ends_turn and self._plan.style == "commit":
                await self._commit()
        return self._played._replace(not_stored=self._not_stored, failed_retries=self._failed_retries)

    async def _tell(self, step: Step) -> None:
        self._told.append(step.message)
        self._full_tokens += self._tally.tokens(step.message)
        if self._plan.style == "commit":
            self._open_turn.append(step.message)
            return
        began = time.perf_counter()
        result = await self._client.ingest(
            self._plan.session_id, step.message, message_id=step.message_id, timestamp=step.timestamp
        )
        self._note("ingest", began)
        self._not_stored += not result.ingested and not self._is_legacy

    async def _commit(self) -> None:
        self._commits += 1
        began = time.perf_counter()
        await self._client.commit_turn(self._plan.session_id, f"turn-{self._commits}", self._open_turn)
        self._note("commitTurn", began)
        self._open_turn = []

    async def _ask(self, turn: int) -> None:
        if not self._plan.every_call and turn == self._asked_turn:
            return
        self._asked_turn = turn
        compacted = await self._compact_where_needed()
        budget, overflow = self._plan.budget, None
        began = time.perf_counter()
        try:
            answer = await self._assemble(budget)
        except ContextOverflow as error:
            answer = await self._retry(error)
            minimum = smallest_answer(self._told, self._tally)
            overflow = Overflow(
                required=error.required,
                minimum=minimum,
                needless=minimum <= budget * (1 - self._judge.tolerance),
            )
            budget = error.required
        milliseconds = self._note("assemble", began)
        if answer is not None:
            verdict = self._judge.judge(answer, self._told, budget)
            self._keep(turn, answer, verdict, budget, milliseconds, compacted, overflow)

    async def _assemble(self, budget: int) -> AssembledContext:
        return await self._client.assemble(self._plan.session_id, budget, self._transcript())

    async def _retry(self, error: ContextOverflow) -> AssembledContext | None:
        try:
            return await self._assemble(error.required)
        except ContextOverflow:
            self._failed_retries += 1
            return None

    async def _compact_where_needed(self) -> bool:
        if not self._compacts or (self._plan.style == "commit" and not self._commits):
            return False
        began = time.perf_counter()
        check = await self._client.preflight(
            self._plan.session_id, self._plan.budget, messages=self._transcript()
        )
        self._note("preflight", began)
        if check.action != "compact":
            return False
        began = time.perf_counter()
        result = await self._client.compact(self._plan.session_id, self._plan.budget)
        self._note("compact", began)
        return result.compacted

    def _transcript(self) -> list[bytes] | None:
        """What the host sends along: its transcript, where the sidecar does not have it all."""
        return self._told if self._is_legacy or self._plan.style == "commit" else None

    def _keep(
        self,
        turn: int,
        answer: AssembledContext,
        verdict: Verdict,
        budget: int,
        milliseconds: float,
        compacted: bool,
        overflow: Overflow | None,
    ) -> None:
        problems = verdict.problems
        if overflow is not None and overflow.needless:
            problems.append(
                f"needless overflow: the minimum is {overflow.minimum} of {self._plan.budget} tokens"
            )
        self._played.verdicts.append(verdict)
        self._played.newest[:] = answer.bodies
        self._played.calls.append(
            CallFigures(
                turn=turn,
                messages_before=len(self._told),
                budget=budget,
                full_tokens=self._full_tokens,
                assembled_tokens=verdict.tokens,
                estimated_tokens=answer.estimated_tokens,
                message_count=len(answer.messages or ()),
                synthetic_messages=verdict.synthetic,
                epoch=answer.context_epoch,
                prefix_kept=verdict.prefix_kept,
                milliseconds=milliseconds,
                compacted=compacted,
                overflow=overflow,
                problems=problems,
            )
        )

    def _note(self, kind: str, began: float) -> float:
        milliseconds = round((time.perf_counter() - began) * 1000, 3)
        self._played.times.setdefault(kind, []).append(milliseconds)
        return milliseconds
