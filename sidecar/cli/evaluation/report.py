"""Prints an evaluation for people: a table a file, and a chart of evidence found against tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from sidecar.cli.evaluation.figures import Evaluation, FileFigures
from sidecar.cli.printing import console, print_table

if TYPE_CHECKING:
    from rich.console import Console

CHART_WIDTH = 50
"""Characters of a bar that stands for all of the evidence."""


def print_evaluation(evaluation: Evaluation) -> None:
    """The whole report on standard output."""
    out = console()
    for file, rows in groupby(evaluation.results, key=lambda row: row.file):
        results = list(rows)
        questions = results[0].budgets[0].questions
        out.print(f"{file}: {questions} questions, {results[0].messages} messages", soft_wrap=True)
        _print_table(results)
        _print_chart(out, results)
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


def _print_chart(out: Console, results: Sequence[FileFigures]) -> None:
    from rich.text import Text

    longest = max(len(result.engine) for result in results)
    out.print("Evidence in the context, by budget in tokens:")
    for index, at in enumerate(results[0].budgets):
        for result in results:
            share = result.budgets[index].evidence
            full = round(share * CHART_WIDTH)
            name = _short(at.budget) if result is results[0] else ""
            bar = Text("█" * full, "cyan") + Text("░" * (CHART_WIDTH - full), "dim")
            label = Text(f"{name:>7} {result.engine:<{longest}} ")
            out.print(label + bar + Text(f" {share:.1%}"), soft_wrap=True)
    out.print()


def _print_verdict(out: Console, evaluation: Evaluation) -> None:
    from rich.text import Text

    out.print(f"Tokens counted independently with {evaluation.counter}.")
    if evaluation.ok:
        out.print(Text("Every answer was valid and within its budget.", "green"))
    else:
        out.print(Text("Some answers were invalid or over their budget.", "bold red"))
