"""Prints a replay for people: a table of turns, a chart, and a summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from sidecar.cli.printing import console, print_table, shown_tokens
from sidecar.cli.replay.figures import Replay, Summary, TurnFigures
from sidecar.cli.replay.runtime import LEGACY
from sidecar.cli.replay.summary import is_good

if TYPE_CHECKING:
    from rich.console import Console

CHART_BARS = 20
"""Most bars of the chart; longer sessions show every n-th turn."""
CHART_WIDTH = 44
"""Characters of the longest bar."""
SHOWN_PROBLEMS = 5
"""Problems that are printed in full."""


def print_report(replay: Replay, rows: int) -> None:
    """The whole report on standard output; the table has about `rows` rows at most."""
    out = console()
    out.print(
        f"{replay.transcript}: {replay.summary.messages} messages ({replay.message_format}), "
        f"engine {replay.engine}, budget {shown_tokens(replay.budget)} tokens",
        soft_wrap=True,
    )
    shown, left_out = _picked(replay.turns, rows)
    print_table(
        ("turn", "calls", "full", "sent", "budget", "prefix", "epoch", "valid", "ms/call"),
        map(_row, shown),
        numbers=(0, 1, 2, 3, 5, 6, 8),
    )
    if left_out:
        out.print(f"({left_out} of {len(replay.turns)} turns are not shown; --rows {len(replay.turns)} does)")
    _print_chart(out, replay.turns)
    _print_summary(out, replay)


def _row(turn: TurnFigures) -> tuple[str, ...]:
    return (
        f"t{turn.turn}",
        str(turn.calls),
        shown_tokens(turn.full_tokens),
        shown_tokens(turn.assembled_tokens),
        "kept" if turn.within_budget else "OVER",
        "" if turn.prefix_kept is None else f"{turn.prefix_kept:.0%}",
        str(turn.epoch),
        "yes" if turn.valid else "NO",
        f"{turn.milliseconds:.1f}",
    )


def _picked(turns: Sequence[TurnFigures], rows: int) -> tuple[list[TurnFigures], int]:
    """Turns to show: those with problems or a new epoch first of all, then the newest and the oldest."""
    if len(turns) <= rows:
        return list(turns), 0
    wanted: dict[int, TurnFigures] = {}
    marked = [turn for turn in turns if turn.problems]
    marked += [turn for before, turn in pairwise(turns) if turn.epoch != before.epoch]
    for turn in (turns[0], turns[-1], *marked, *reversed(turns)):
        if len(wanted) == rows:
            break
        wanted[turn.turn] = turn
    return [turn for turn in turns if turn.turn in wanted], len(turns) - len(wanted)


def _print_chart(out: Console, turns: Sequence[TurnFigures]) -> None:
    if not turns:
        return
    from rich.text import Text

    longest = max(turn.full_tokens for turn in turns) or 1
    every = -(-len(turns) // CHART_BARS)
    out.print("Tokens of the whole history (light) and of what was sent (dark):")
    for turn in turns[::-1][::every][::-1]:
        full = max(1, round(turn.full_tokens / longest * CHART_WIDTH))
        sent = min(full, max(1, round(turn.assembled_tokens / longest * CHART_WIDTH)))
        bar = Text("█" * sent, "cyan") + Text("░" * (full - sent), "dim")
        figures = f"  {shown_tokens(turn.assembled_tokens)} of {shown_tokens(turn.full_tokens)}"
        out.print(Text(f"{f't{turn.turn}':>6} ") + bar + Text(figures), soft_wrap=True)
    out.print()


def _print_summary(out: Console, replay: Replay) -> None:
    from rich.text import Text

    for name, value in _lines(replay):
        out.print(f"{name:18} {value}", soft_wrap=True)
    problems = [(turn.turn, problem) for turn in replay.turns for problem in turn.problems]
    for number, problem in problems[:SHOWN_PROBLEMS]:
        out.print(Text(f"  t{number}: {problem}", "red"), soft_wrap=True)
    if len(problems) > SHOWN_PROBLEMS:
        out.print(f"  and {len(problems) - SHOWN_PROBLEMS} more; --json has them all")
    if not is_good(replay.summary):
        out.print(Text("Some answers are wrong.", "bold red"))
    elif replay.engine == LEGACY:
        out.print(Text("Every message came back byte for byte.", "green"))
    else:
        out.print(Text("Every answer was valid, within the budget, and byte for byte.", "green"))


def _lines(replay: Replay) -> Iterator[tuple[str, str]]:
    figures: Summary = replay.summary
    yield "answers", f"{figures.answers} in {figures.turns} turns, {figures.invalid_answers} invalid"
    held = "" if replay.engine != LEGACY else f"{LEGACY} is held to none; "
    yield (
        "budget",
        f"{held}{figures.over_budget} over it by {replay.counter} (tolerance {replay.tolerance:.0%}); "
        f"the largest had {shown_tokens(figures.largest_answer)}",
    )
    yield (
        "overflows",
        f"{figures.overflows}, of which {figures.needless_overflows} needless; "
        f"{figures.failed_retries} failed retries",
    )
    yield (
        "fidelity",
        f"{figures.returned_messages} messages came back: {figures.synthetic_messages} synthetic, "
        f"{figures.untrue_messages} not byte for byte",
    )
    yield (
        "prefix kept",
        f"{figures.prefix_kept:.1%} of tokens; {figures.whole_prefixes:.1%} of answers extend the one "
        f"before; {figures.epochs} epochs, {figures.compactions} compactions, "
        f"{figures.inconsistent_answers} inconsistent",
    )
    yield (
        "sent",
        f"{figures.share_of_full:.1%} of what the whole history would have taken",
    )
    for kind, timing in figures.timings.items():
        yield kind, f"{timing.p50:.1f} ms p50, {timing.p95:.1f} ms p95, {timing.count} times"
    if figures.not_stored:
        yield "not stored", f"{figures.not_stored} messages were declined"
    if replay.skipped:
        left = ", ".join(f"{count} {reason}" for reason, count in sorted(replay.skipped.items()))
        yield "left out", f"rows of the file: {left}"
