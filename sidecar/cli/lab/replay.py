"""Plays a recorded session as an agent runtime would, and sums up what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from sidecar.cli.failures import CommandFailed
from sidecar.cli.lab.figures import (
    CallFigures,
    Compared,
    Comparison,
    Judgement,
    Overflow,
    Replay,
    Stopwatch,
    Style,
    Summary,
    TurnFigures,
)
from sidecar.cli.lab.judge import Judge, Verdict
from sidecar.cli.lab.recording import (
    Evidence,
    Recording,
    Step,
    Tally,
    plain_prompts,
    read_recording,
    smallest_answer,
)
from sidecar.cli.options import Common, Prices
from sidecar.cli.output import counted_progress
from sidecar.cli.own_sidecar import with_fresh_sidecar
from sidecar.client.errors import ContextOverflow, RequestFailed, RequestTimedOut, SessionNotFound
from sidecar.client.messages import AssembledContext
from sidecar.client.sidecar_client import SidecarClient
from sidecar.messages.importers.transcript import TranscriptError, nothing_in
from sidecar.plurals import counted
from sidecar.protocol.base import EngineInfo
from sidecar.tokens.choose import CounterUnavailable, counter

NAMESPACE = "replay"
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


class Request(NamedTuple):
    """What to replay, with which engine."""

    transcript: Path
    format: str | None
    engine: str | None
    exact: bool
    """Count with a vocabulary, or fail."""
    plan: Plan


class Finished(NamedTuple):
    """A replay that is over."""

    figures: Replay
    newest: list[bytes]
    """The messages of the last answer."""


def recorded(request: Request) -> tuple[Recording, Tally]:
    """The transcript, and what counts it.

    Raises:
        CommandFailed: the transcript cannot be read, or cannot be counted exactly.
    """
    try:
        recording = read_recording(request.transcript, request.format)
        tally = Tally(recording.dialect, counter("o200k" if request.exact else "auto"))
    except (TranscriptError, CounterUnavailable) as error:
        raise CommandFailed(f"{request.transcript.name}: {error}") from None
    if not recording.steps:
        raise CommandFailed(f"{request.transcript.name}: {nothing_in(recording.skipped)}")
    return recording, tally


def replay(common: Common, request: Request, recording: Recording, tally: Tally) -> Finished:
    """Play a recording against a fresh sidecar, in a state directory of its own unless one is named."""
    began = time.perf_counter()
    with counted_progress("replaying", len(recording.steps)) as advance:

        async def play(client: SidecarClient) -> tuple[str, Played]:
            await _refuse_known(client, request.plan.session_id)
            return client.engine.id, await Runtime(client, recording, tally, request.plan, advance).play()

        engine, played = with_fresh_sidecar(
            common,
            play,
            engine=request.engine,
            message_format=recording.message_format,
            namespace=NAMESPACE,
            config={"tokens": {"counter": "o200k"}} if request.exact else None,
        )
    seconds = time.perf_counter() - began
    return Finished(_figures(request, recording, tally, engine, played, seconds), played.newest)


def _figures(
    request: Request, recording: Recording, tally: Tally, engine: str, played: Played, seconds: float
) -> Replay:
    full = tally.total([step.message for step in recording.steps])
    summary = summarised(recording, played, full, seconds)
    verdict = judge_replay(summary, budget=request.plan.budget, held_to_budget=engine != LEGACY)
    return Replay(
        ok=verdict.grade == "good",
        verdict=verdict,
        transcript=recording.name,
        message_format=recording.message_format,
        engine=engine,
        budget=request.plan.budget,
        style=request.plan.style,
        counter=tally.counter.name,
        tolerance=tally.tolerance,
        skipped=recording.skipped,
        summary=summary,
        turns=by_turn(played.calls),
        calls=played.calls,
    )


async def _refuse_known(client: SidecarClient, session_id: str) -> None:
    try:
        await client.session(session_id)
    except SessionNotFound:
        return
    raise CommandFailed(
        f"the state directory has a session {session_id!r} already; name another one with --session, "
        f"or erase it: context-sidecar sessions delete {session_id} --namespace {NAMESPACE}"
    )


class Played(NamedTuple):
    """What came of it."""

    calls: list[CallFigures]
    verdicts: list[Verdict]
    not_stored: int
    failed_retries: int
    """Requests that were refused although the budget was what the sidecar had asked for."""
    stopwatch: Stopwatch
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
        self._judge = Judge(tally, held_to_budget=not self._is_legacy, arranged=not self._is_legacy)
        self._told: list[bytes] = []
        self._evidence = Evidence(tally)
        self._full_tokens = 0
        self._open_turn: list[bytes] = []
        self._commits = 0
        self._asked_turn = 0
        self._epoch = 0
        self._played = Played([], [], 0, 0, Stopwatch(), [])
        self._timing = self._played.stopwatch.timing
        self._not_stored = 0
        self._failed_retries = 0

    async def play(self) -> Played:
        """Tell every message, and ask wherever the model was called."""
        steps = self._recording.steps
        for at, step in enumerate(steps):
            if step.asks_model:
                await self._ask(step.turn, self._evidence.used(step.reading))
            await self._tell(step)
            self._advance()
            ends_turn = at + 1 == len(steps) or steps[at + 1].turn != step.turn
            if ends_turn and at + 1 == len(steps) and step.reading.role in ("user", "tool"):
                await self._ask(step.turn, [])
            if ends_turn and self._plan.style == "commit":
                await self._commit()
        return self._played._replace(not_stored=self._not_stored, failed_retries=self._failed_retries)

    async def _tell(self, step: Step) -> None:
        self._told.append(step.message)
        self._evidence.add(step.message)
        self._full_tokens += self._tally.tokens(step.message)
        if self._plan.style == "commit":
            self._open_turn.append(step.message)
            return
        with self._timing("ingest"):
            result = await self._client.ingest(
                self._plan.session_id, step.message, message_id=step.message_id, timestamp=step.timestamp
            )
        self._not_stored += not result.ingested and not self._is_legacy

    async def _commit(self) -> None:
        self._commits += 1
        with self._timing("commitTurn"):
            await self._client.commit_turn(self._plan.session_id, f"turn-{self._commits}", self._open_turn)
        self._open_turn = []

    async def _ask(self, turn: int, values: Sequence[str]) -> None:
        if not self._plan.every_call and turn == self._asked_turn:
            return
        self._asked_turn = turn
        problems: list[str] = []
        compacted = await self._compact_where_needed(problems)
        answer, overflow, budget = None, None, self._plan.budget
        try:
            answer = await self._assemble(budget)
        except ContextOverflow as error:
            overflow = self._refused(error, problems)
            answer, budget = await self._retry(error, problems), error.required
        except (RequestFailed, RequestTimedOut) as error:
            problems.append(f"failed: no answer: {error}")
        verdict, in_view = None, 0
        if answer is not None:
            if values:
                seen = "\n".join((answer.system_prompt_addition or "", *map(self._tally.said, answer.bodies)))
                in_view = sum(value in seen for value in values)
            verdict = self._judge.judge(answer, self._told, budget)
            problems += verdict.problems
            if answer.fallback_for is not None:
                instead = answer.fallback_for
                problems.append(f"failed: {instead.id} did not answer itself: {instead.reason}")
            self._played.verdicts.append(verdict)
            self._played.newest[:] = answer.bodies
            self._epoch = answer.context_epoch
        self._played.calls.append(
            CallFigures(
                turn=turn,
                messages_before=len(self._told),
                budget=self._plan.budget,
                answered=answer is not None and overflow is None,
                full_tokens=self._full_tokens,
                assembled_tokens=verdict.tokens if verdict else 0,
                estimated_tokens=answer.estimated_tokens if answer else 0,
                message_count=len(answer.messages or ()) if answer else 0,
                synthetic_messages=verdict.synthetic if verdict else 0,
                epoch=self._epoch,
                prefix_kept=verdict.prefix_kept if verdict else None,
                prefix_tokens=verdict.prefix_tokens if verdict else 0,
                values_used=len(values),
                values_in_view=in_view,
                milliseconds=self._played.stopwatch.last("assemble"),
                compacted=compacted,
                overflow=overflow,
                problems=problems,
            )
        )

    async def _assemble(self, budget: int) -> AssembledContext:
        with self._timing("assemble"):
            return await self._client.assemble(self._plan.session_id, budget, self._transcript())

    def _refused(self, error: ContextOverflow, problems: list[str]) -> Overflow:
        budget = self._plan.budget
        minimum = smallest_answer(self._told, self._tally)
        needless = minimum <= budget * (1 - self._tally.tolerance)
        if needless:
            problems.append(f"needless overflow: the minimum is {minimum} of {budget} tokens")
        return Overflow(required=error.required, minimum=minimum, needless=needless)

    async def _retry(self, error: ContextOverflow, problems: list[str]) -> AssembledContext | None:
        try:
            return await self._assemble(error.required)
        except ContextOverflow as again:
            self._failed_retries += 1
            problems.append(
                f"failed retry: {error.required} tokens were required; with them, {again.required} are"
            )
        except (RequestFailed, RequestTimedOut) as problem:
            problems.append(f"failed: no answer to the retry: {problem}")
        return None

    async def _compact_where_needed(self, problems: list[str]) -> bool:
        """Whether the context was compacted."""
        if not self._compacts or (self._plan.style == "commit" and not self._commits):
            return False
        session, budget = self._plan.session_id, self._plan.budget
        try:
            with self._timing("preflight"):
                check = await self._client.preflight(session, budget, messages=self._transcript())
            if check.action != "compact":
                return False
            with self._timing("compact"):
                result = await self._client.compact(session, budget)
        except (RequestFailed, RequestTimedOut) as error:
            problems.append(f"failed: the compaction: {error}")
            return False
        if not result.ok:
            problems.append(f"failed: the compaction: {result.reason or 'no reason given'}")
        return result.compacted

    def _transcript(self) -> list[bytes] | None:
        """What the host sends along: its transcript, where the sidecar does not have it all."""
        return self._told if self._is_legacy or self._plan.style == "commit" else None


def compare(common: Common, request: Request, engines: Sequence[str], prices: Prices) -> Comparison:
    """Play the transcript once for each engine, beside sending everything and beside a plain window.

    Raises:
        CommandFailed: as for `recorded`.
    """
    recording, tally = recorded(request)
    replays = [
        replay(common, request._replace(engine=engine), recording, tally).figures for engine in engines
    ]
    sizes = [tally.tokens(step.message) for step in recording.steps]
    asked = [call.messages_before for call in replays[0].calls]
    baselines = [
        _baseline("(everything)", sizes, asked, None, prices),
        _baseline("(plain window)", sizes, asked, request.plan.budget, prices),
    ]
    return Comparison(
        ok=all(one.ok for one in replays),
        transcript=recording.name,
        budget=request.plan.budget,
        prices=prices,
        counter=replays[0].counter,
        engines=[*(_compared(one, prices) for one in replays), *baselines],
    )


def _compared(played: Replay, prices: Prices) -> Compared:
    summary = played.summary
    timing = summary.timings.get("assemble")
    return Compared(
        engine=played.engine,
        sent_tokens=summary.sent_tokens,
        cached_tokens=summary.cached_tokens,
        cost=round(prices.of(summary.sent_tokens, summary.cached_tokens), 6),
        largest_answer=summary.largest_answer,
        prefix_kept=summary.prefix_kept,
        values_used=summary.values_used,
        values_in_view=summary.values_in_view,
        p50=timing.p50 if timing else None,
        refused=summary.overflows,
        wrong=played.verdict.sentences if played.verdict.grade == "wrong" else [],
    )


def _baseline(
    name: str, sizes: Sequence[int], asked: Sequence[int], budget: int | None, prices: Prices
) -> Compared:
    """What is sent without an engine: everything, or the newest messages that fit the budget."""
    prompts = plain_prompts(sizes, asked, budget)
    sent, cached = sum(prompt.sent for prompt in prompts), sum(prompt.cached for prompt in prompts)
    return Compared(
        engine=name,
        sent_tokens=sent,
        cached_tokens=cached,
        cost=round(prices.of(sent, cached), 6),
        largest_answer=max((prompt.sent for prompt in prompts), default=0),
        prefix_kept=None,
        values_used=None,
        values_in_view=None,
        p50=None,
        refused=0,
        wrong=[],
    )


def summarised(recording: Recording, played: Played, full_tokens: int, seconds: float) -> Summary:
    """The whole replay in numbers."""
    calls, verdicts = played.calls, played.verdicts
    given = [call for call in calls if call.answered]
    repeated = sum(verdict.tokens for verdict in verdicts[:-1])
    everything = sum(call.full_tokens for call in calls)
    followers = [call.prefix_kept for call in calls if call.prefix_kept is not None]
    epochs = {call.epoch for call in calls}
    return Summary(
        messages=len(recording.steps),
        turns=max((step.turn for step in recording.steps), default=0),
        asked=len(calls),
        answers=len(given),
        invalid_answers=sum(bool(verdict.invalid) for verdict in verdicts),
        over_budget=sum(bool(verdict.over_budget) for verdict in verdicts),
        untrue_messages=sum(len(verdict.untrue) for verdict in verdicts),
        returned_messages=sum(call.message_count for call in calls),
        synthetic_messages=sum(call.synthetic_messages for call in calls),
        inconsistent_answers=sum(bool(verdict.inconsistent) for verdict in verdicts),
        overflows=sum(call.overflow is not None for call in calls),
        needless_overflows=sum(call.overflow is not None and call.overflow.needless for call in calls),
        failed_retries=played.failed_retries,
        failures=sum(any(one.startswith("failed:") for one in call.problems) for call in calls),
        not_stored=played.not_stored,
        prefix_kept=_ratio(sum(verdict.prefix_tokens for verdict in verdicts), repeated),
        whole_prefixes=_ratio(sum(kept == 1.0 for kept in followers), len(followers)),
        epochs=len(epochs),
        compactions=sum(call.compacted for call in calls),
        full_tokens=full_tokens,
        largest_answer=max((call.assembled_tokens for call in given), default=0),
        largest_retry=max((call.assembled_tokens for call in calls if not call.answered), default=0),
        share_of_full=_ratio(sum(call.assembled_tokens for call in calls), everything),
        sent_tokens=sum(call.assembled_tokens for call in calls),
        cached_tokens=sum(call.prefix_tokens for call in calls),
        values_used=sum(call.values_used for call in calls),
        values_in_view=sum(call.values_in_view for call in calls),
        seconds=round(seconds, 3),
        timings=played.stopwatch.timings(),
    )


def by_turn(calls: Sequence[CallFigures]) -> list[TurnFigures]:
    """The calls of each turn together."""
    turns: list[TurnFigures] = []
    for turn, group in groupby(calls, key=lambda call: call.turn):
        members = list(group)
        problems = [problem for call in members for problem in call.problems]
        last = members[-1]
        turns.append(
            TurnFigures(
                turn=turn,
                calls=len(members),
                full_tokens=last.full_tokens,
                assembled_tokens=last.assembled_tokens,
                within_budget=all(call.answered for call in members)
                and not any(problem.startswith("over budget") for problem in problems),
                refused=sum(call.overflow is not None for call in members),
                prefix_kept=min((c.prefix_kept for c in members if c.prefix_kept is not None), default=None),
                epoch=last.epoch,
                valid=not any(problem.startswith("invalid") for problem in problems),
                milliseconds=round(sum(call.milliseconds for call in members) / len(members), 3),
                problems=problems,
            )
        )
    return turns


def judge_replay(summary: Summary, *, budget: int, held_to_budget: bool) -> Judgement:
    """What is to be said: what the sidecar got wrong, else what the budget or the recording did not allow."""
    wrong = [
        (summary.invalid_answers, counted(summary.invalid_answers, "invalid answer")),
        (summary.over_budget, counted(summary.over_budget, "answer") + " over the budget"),
        (summary.untrue_messages, counted(summary.untrue_messages, "message") + " not byte for byte"),
        (summary.inconsistent_answers, counted(summary.inconsistent_answers, "inconsistent answer")),
        (summary.needless_overflows, counted(summary.needless_overflows, "needless refusal")),
        (summary.failed_retries, counted(summary.failed_retries, "refused retry", "refused retries")),
        (summary.failures, counted(summary.failures, "failed call")),
    ]
    short: list[str] = []
    if summary.overflows > summary.needless_overflows:
        refused = summary.overflows - summary.needless_overflows
        short.append(
            f"The budget of {budget:,} tokens is too small for {refused:,} of "
            f"{counted(summary.asked, 'call')}: not even the smallest valid answer fits."
        )
    if summary.not_stored:
        short.append(f"The sidecar declined to store {counted(summary.not_stored, 'message')}.")
    if not summary.asked:
        short.append("Nothing was asked: the recording has no question and no call of a model.")
    good = "Every answer was valid, within the budget, and byte for byte."
    return Judgement.of(wrong, short, good if held_to_budget else "Every message came back byte for byte.")


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 1.0
