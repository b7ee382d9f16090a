"""Prints replays and evaluations for people: tables, a chart, and a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from sidecar.cli.lab.figures import (
    Compared,
    Comparison,
    Evaluation,
    FileFigures,
    Replay,
    Summary,
    TurnFigures,
)
from sidecar.cli.lab.replay import LEGACY
from sidecar.cli.output import console, print_table, shown_tokens
from sidecar.plurals import counted

if TYPE_CHECKING:
    from rich.console import Console


CHART_BARS = 20
"""Most bars of the chart; longer sessions show every n-th turn."""
TURNS_CHART_WIDTH = 44
"""Characters of the longest bar of a replay."""
EVIDENCE_CHART_WIDTH = 50
"""Characters of a bar that stands for all of the evidence of an evaluation."""
SHOWN_PROBLEMS = 5
"""Problems that are printed in full."""
TERMS = (
    ("epoch", "rises where older messages make room; while it stays, an answer extends the one before"),
    ("prefix", "how much of the answer before an answer begins with: prompt caches hit there"),
    ("synthetic", "written by the sidecar and marked as such, such as a summary or a stub for an old result"),
    (
        "refused budget",
        "not even the smallest valid answer fits; needless where it would by independent count",
    ),
)
"""What the words of the report mean."""
COMPARISON_TERMS = (
    ("cached", "share of the tokens sent that repeat the beginning of the answer before"),
    (
        "values seen",
        "paths, ids and the like that calls took from earlier turns, and the model could see then",
    ),
    ("(everything)", "the whole history before each call, whatever the budget"),
    ("(plain window)", "the newest messages that fit the budget before each call"),
)
COLOURS = {"good": "green", "short": "bold yellow", "wrong": "bold red"}


def print_report(replay: Replay, rows: int) -> None:
    """The whole report on standard output; the table has about `rows` rows at most."""
    out = console()
    out.print(
        f"{replay.transcript}: {counted(replay.summary.messages, 'message')} ({replay.message_format}), "
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
        turns = len(replay.turns)
        out.print(f"({left_out} of {turns} turns are not shown; --rows {turns} shows all)")
    _print_turns_chart(out, replay.turns)
    _print_summary(out, replay)


def print_comparison(comparison: Comparison) -> None:
    """The engines in one table on standard output."""
    from rich.text import Text

    out = console()
    out.print(
        f"{comparison.transcript}, budget {shown_tokens(comparison.budget)} tokens, counted with "
        f"{comparison.counter}; a million new tokens cost ${comparison.prices.new:.2f}, cached ones "
        f"${comparison.prices.cached:.2f}",
        soft_wrap=True,
    )
    dearest = max((one.cost for one in comparison.engines), default=0)
    print_table(
        (
            "engine",
            "sent",
            "cached",
            "cost",
            "of dearest",
            "largest",
            "prefix",
            "values seen",
            "ms p50",
            "refused",
        ),
        [_compared_row(one, dearest) for one in comparison.engines],
        numbers=range(1, 10),
    )
    for one in comparison.engines:
        for sentence in one.wrong:
            out.print(Text(f"{one.engine}: {sentence}", COLOURS["wrong"]), soft_wrap=True)
    for term, meaning in COMPARISON_TERMS:
        out.print(Text(f"{term:18} {meaning}", "dim"), soft_wrap=True)


def _compared_row(one: Compared, dearest: float) -> tuple[str, ...]:
    used = one.values_used
    return (
        one.engine,
        shown_tokens(one.sent_tokens),
        f"{one.cached_tokens / (one.sent_tokens or 1):.0%}",
        f"${one.cost:.4f}",
        f"{one.cost / dearest:.0%}" if dearest else "",
        shown_tokens(one.largest_answer),
        "" if one.prefix_kept is None else f"{one.prefix_kept:.1%}",
        "" if used is None else f"{one.values_in_view}/{used}",
        "" if one.p50 is None else f"{one.p50:.1f}",
        str(one.refused),
    )


def _row(turn: TurnFigures) -> tuple[str, ...]:
    return (
        f"t{turn.turn}",
        str(turn.calls),
        shown_tokens(turn.full_tokens),
        shown_tokens(turn.assembled_tokens),
        _held(turn),
        "" if turn.prefix_kept is None else f"{turn.prefix_kept:.0%}",
        str(turn.epoch),
        "yes" if turn.valid else "NO",
        f"{turn.milliseconds:.1f}",
    )


def _held(turn: TurnFigures) -> str:
    if turn.refused:
        return "refused"
    if any(problem.startswith("failed:") for problem in turn.problems):
        return "FAILED"
    return "kept" if turn.within_budget else "OVER"


def _picked(turns: Sequence[TurnFigures], rows: int) -> tuple[list[TurnFigures], int]:
    """Turns to show: those with problems, refusals or a new epoch first, then the newest and the oldest."""
    if len(turns) <= rows:
        return list(turns), 0
    wanted: dict[int, TurnFigures] = {}
    marked = [turn for turn in turns if turn.problems or turn.refused]
    marked += [turn for before, turn in pairwise(turns) if turn.epoch != before.epoch]
    for turn in (turns[0], turns[-1], *marked, *reversed(turns)):
        if len(wanted) == rows:
            break
        wanted[turn.turn] = turn
    return [turn for turn in turns if turn.turn in wanted], len(turns) - len(wanted)


def _print_turns_chart(out: Console, turns: Sequence[TurnFigures]) -> None:
    if not turns:
        return
    from rich.text import Text

    longest = max(turn.full_tokens for turn in turns) or 1
    every = -(-len(turns) // CHART_BARS)
    out.print("Tokens sent (█) of the whole history (░):")
    for turn in turns[::-1][::every][::-1]:
        full = max(1, round(turn.full_tokens / longest * TURNS_CHART_WIDTH))
        sent = min(full, max(1, round(turn.assembled_tokens / longest * TURNS_CHART_WIDTH)))
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
    for sentence in replay.verdict.sentences:
        out.print(Text(sentence, COLOURS[replay.verdict.grade]), soft_wrap=True)
    out.print()
    for term, meaning in TERMS:
        out.print(Text(f"{term:18} {meaning}", "dim"), soft_wrap=True)


def _lines(replay: Replay) -> Iterator[tuple[str, str]]:
    figures: Summary = replay.summary
    yield (
        "answers",
        f"{figures.answers:,} to {counted(figures.asked, 'call')} in {counted(figures.turns, 'turn')}, "
        f"{figures.invalid_answers:,} invalid",
    )
    held = "" if replay.engine != LEGACY else f"{LEGACY} is held to none; "
    yield (
        "budget",
        f"{held}{figures.over_budget} over it by {replay.counter} (tolerance {replay.tolerance:.0%}); "
        f"the largest had {shown_tokens(figures.largest_answer)}",
    )
    retried = f"; with what was required the largest answer had {shown_tokens(figures.largest_retry)}"
    yield (
        "refused budgets",
        f"{figures.overflows:,}, of which {figures.needless_overflows:,} needless; "
        f"{counted(figures.failed_retries, 'failed retry', 'failed retries')}"
        + (retried if figures.largest_retry else ""),
    )
    if figures.failures:
        yield "failed", counted(figures.failures, "call")
    yield (
        "fidelity",
        f"{counted(figures.returned_messages, 'message')} came back: {figures.synthetic_messages} synthetic, "
        f"{figures.untrue_messages} not byte for byte",
    )
    yield (
        "prefix kept",
        f"{figures.prefix_kept:.1%} of tokens; {figures.whole_prefixes:.1%} of answers extend the one "
        f"before; {counted(figures.epochs, 'epoch')}, {counted(figures.compactions, 'compaction')}, "
        f"{figures.inconsistent_answers} inconsistent",
    )
    yield (
        "sent",
        f"{figures.share_of_full:.1%} of what the whole history would have taken",
    )
    for kind, timing in figures.timings.items():
        yield kind, f"{timing.p50:.1f} ms p50, {timing.p95:.1f} ms p95, {timing.count} times"
    if figures.not_stored:
        yield "not stored", counted(figures.not_stored, "message")
    if replay.skipped:
        left = ", ".join(f"{count} {reason}" for reason, count in sorted(replay.skipped.items()))
        yield "left out", f"rows of the file: {left}"


def print_evaluation(evaluation: Evaluation) -> None:
    """The whole report on standard output."""
    out = console()
    for file, rows in groupby(evaluation.results, key=lambda row: row.file):
        results = list(rows)
        questions = results[0].budgets[0].questions
        asked, messages = counted(questions, "question"), counted(results[0].messages, "message")
        out.print(f"{file}: {asked}, {messages}", soft_wrap=True)
        _print_table(results)
        _print_evidence_chart(out, results)
    _print_verdict(out, evaluation)


def _print_table(results: Sequence[FileFigures]) -> None:
    budgets = [f"{_short(at.budget)}" for at in results[0].budgets]
    titles = ["evidence", *budgets, "invalid", "over", "by chars", "refused"]
    print_table(titles, map(_answers, results), numbers=range(1, len(titles)))
    counts = sorted({count for result in results for count in result.search})
    titles = ["beside it", *(f"hits {count}" for count in counts), "ms p50", "ms p95", "search p50"]
    prefix = results[0].prefix
    if prefix is not None:
        titles += [f"prefix {_short(prefix.budget)}", "cost"]
    print_table(titles, [_beside(result, counts) for result in results], numbers=range(1, len(titles)))


def _answers(result: FileFigures) -> list[str]:
    budgets = result.budgets
    sums = (
        sum(at.invalid for at in budgets),
        sum(at.over_budget for at in budgets),
        sum(at.over_by_characters for at in budgets),
        sum(a.refused for a in budgets),
    )
    return [
        result.engine,
        *(f"{at.evidence:.1%} {at.found:>3}/{at.wanted}" for at in budgets),
        *map(str, sums),
    ]


def _beside(result: FileFigures, counts: Sequence[int]) -> list[str]:
    row = [result.engine, *(f"{result.search[n]:.1%}" if n in result.search else "" for n in counts)]
    timing = result.timings.get("assemble")
    row += (f"{timing.p50:.1f}", f"{timing.p95:.1f}") if timing else ("", "")
    searching = result.timings.get("search")
    row.append(f"{searching.p50:.1f}" if searching and result.search else "")
    if result.prefix is not None:
        row += [f"{result.prefix.kept:.1%}", f"{result.prefix.cost:.2f}"]
    return row


def _short(budget: int) -> str:
    return f"{budget // 1000}k" if budget % 1000 == 0 else str(budget)


def _print_evidence_chart(out: Console, results: Sequence[FileFigures]) -> None:
    from rich.text import Text

    longest = max(len(result.engine) for result in results)
    out.print("Evidence in the context, by budget in tokens:")
    for index, at in enumerate(results[0].budgets):
        for result in results:
            share = result.budgets[index].evidence
            full = round(share * EVIDENCE_CHART_WIDTH)
            name = _short(at.budget) if result is results[0] else ""
            bar = Text("█" * full, "cyan") + Text("░" * (EVIDENCE_CHART_WIDTH - full), "dim")
            label = Text(f"{name:>7} {result.engine:<{longest}} ")
            out.print(label + bar + Text(f" {share:.1%}"), soft_wrap=True)
    out.print()


def _print_verdict(out: Console, evaluation: Evaluation) -> None:
    from rich.text import Text

    out.print(f"Tokens counted independently with {evaluation.counter}.")
    for sentence in evaluation.verdict.sentences:
        out.print(Text(sentence, COLOURS[evaluation.verdict.grade]), soft_wrap=True)
