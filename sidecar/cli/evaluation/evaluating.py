"""Runs one engine over one file of sessions, and sums up what it made of the questions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, Protocol, TypeVar

from sidecar.cli.connecting import client_for, with_client
from sidecar.cli.evaluation.asking import Answer, Asked, Questioner
from sidecar.cli.evaluation.baselines import baselines
from sidecar.cli.evaluation.figures import AtBudget, FileFigures, PrefixFigures, Timing
from sidecar.cli.evaluation.prefixes import Prefixes, play_calls
from sidecar.cli.evaluation.questions import EvaluationSession
from sidecar.cli.evaluation.subjects import SidecarSubject, Subject
from sidecar.cli.options import Common
from sidecar.cli.replay.recording import Tally
from sidecar.client.sidecar_client import SidecarClient
from sidecar.messages.contract import Dialect
from sidecar.messages.dialects import dialect
from sidecar.tokens.contract import TokenCounter

FORMAT = "openai"

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
    spoken = dialect(FORMAT)
    tally = Tally(spoken, counter)
    run = _runner(common, measured, counter)

    async def ask(subject: Subject) -> Asked:
        questioner = Questioner(subject, spoken, tally, plan.budgets, advance)
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
        prefix=_prefixes(run, sessions, plan, spoken, tally),
        timings={kind: _timing(values) for kind, values in sorted(asked.durations.items())},
    )


def _prefixes(
    run: Run, sessions: Sequence[EvaluationSession], plan: Plan, spoken: Dialect, tally: Tally
) -> PrefixFigures | None:
    budget = plan.prefix_budget
    if budget is None:
        return None

    async def play(subject: Subject) -> Prefixes:
        seen = Prefixes()
        for session in sessions:
            seen += await play_calls(subject, session, spoken, tally, budget)
        return seen

    _, seen = run(play)
    return PrefixFigures(
        budget=budget,
        calls=seen.calls,
        kept=round(seen.share, 4),
        cost=round(seen.cost, 4),
        invalid=seen.invalid,
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

        with TemporaryDirectory(prefix="context-sidecar-") as folder:
            placed = common._replace(state_dir=Path(folder))
            client = client_for(placed, engine=engine, message_format=FORMAT, config=measured.config)
            return with_client(client, answered)

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


def _timing(values: Sequence[float]) -> Timing:
    ordered = sorted(values)
    return Timing(
        count=len(ordered),
        p50=round(ordered[len(ordered) // 2], 3),
        p95=round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], 3),
    )
