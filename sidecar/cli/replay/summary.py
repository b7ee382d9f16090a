"""Sums a replay up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from sidecar.cli.replay.figures import CallFigures, Summary, Timing, TurnFigures
from sidecar.cli.replay.recording import Recording
from sidecar.cli.replay.runtime import Played


def summarised(recording: Recording, played: Played, full_tokens: int, seconds: float) -> Summary:
    """The whole replay in numbers."""
    calls, verdicts = played.calls, played.verdicts
    repeated = sum(verdict.tokens for verdict in verdicts[:-1])
    everything = sum(call.full_tokens for call in calls)
    followers = [call.prefix_kept for call in calls if call.prefix_kept is not None]
    epochs = {call.epoch for call in calls}
    return Summary(
        messages=len(recording.steps),
        turns=max((step.turn for step in recording.steps), default=0),
        answers=len(calls),
        invalid_answers=sum(bool(verdict.invalid) for verdict in verdicts),
        over_budget=sum(bool(verdict.over_budget) for verdict in verdicts),
        untrue_messages=sum(len(verdict.untrue) for verdict in verdicts),
        returned_messages=sum(call.message_count for call in calls),
        synthetic_messages=sum(call.synthetic_messages for call in calls),
        inconsistent_answers=sum(bool(verdict.inconsistent) for verdict in verdicts),
        overflows=sum(call.overflow is not None for call in calls) + played.failed_retries,
        needless_overflows=sum(call.overflow is not None and call.overflow.needless for call in calls),
        failed_retries=played.failed_retries,
        not_stored=played.not_stored,
        prefix_kept=_ratio(sum(verdict.prefix_tokens for verdict in verdicts), repeated),
        whole_prefixes=_ratio(sum(kept == 1.0 for kept in followers), len(followers)),
        epochs=len(epochs),
        compactions=sum(call.compacted for call in calls),
        full_tokens=full_tokens,
        largest_answer=max((call.assembled_tokens for call in calls), default=0),
        share_of_full=_ratio(sum(call.assembled_tokens for call in calls), everything),
        seconds=round(seconds, 3),
        timings={kind: _timing(times) for kind, times in sorted(played.times.items())},
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
                within_budget=not any(problem.startswith("over budget") for problem in problems),
                prefix_kept=min((c.prefix_kept for c in members if c.prefix_kept is not None), default=None),
                epoch=last.epoch,
                valid=not any(problem.startswith("invalid") for problem in problems),
                milliseconds=round(sum(call.milliseconds for call in members) / len(members), 3),
                problems=problems,
            )
        )
    return turns


def is_good(summary: Summary) -> bool:
    """Whether every answer was valid, within the budget, byte for byte, consistent, and given at all."""
    return not (
        summary.invalid_answers
        or summary.over_budget
        or summary.untrue_messages
        or summary.inconsistent_answers
        or summary.needless_overflows
        or summary.failed_retries
    )


def _timing(times: Sequence[float]) -> Timing:
    ordered = sorted(times)
    return Timing(count=len(ordered), p50=_percentile(ordered, 50), p95=_percentile(ordered, 95))


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[-(-len(ordered) * percent // 100) - 1]


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 1.0
