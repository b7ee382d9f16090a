"""`context-sidecar eval`: measure how much of the evidence for recorded questions engines find."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from sidecar.cli.failures import FAILURE, OK
from sidecar.cli.lab.evaluation import Measured, Plan, evaluate, judge_evaluation
from sidecar.cli.lab.figures import Evaluation, FileFigures
from sidecar.cli.lab.questions import read_sessions
from sidecar.cli.lab.report import print_evaluation
from sidecar.cli.lab.subjects import BASELINES
from sidecar.cli.options import Common, common_options, token_budget
from sidecar.cli.output import counted_progress, print_json
from sidecar.tokens.choose import counter

_MEANINGS: dict[str | None, tuple[bool | None, ...]] = {
    None: (None,),
    "off": (False,),
    "on": (True,),
    "both": (False, True),
}


def _budgets(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    del context, parameter
    return sorted({token_budget(part) for part in value.split(",")})


@click.command("eval")
@click.argument(
    "data",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="DATA...",
)
@click.option("--engine", "engines", multiple=True, metavar="ID", help="Engine to measure; repeatable.")
@click.option("--baselines", is_flag=True, help="Also measure recency and full-text search for comparison.")
@click.option(
    "--meaning",
    type=click.Choice(["off", "on", "both"]),
    help="Search by words only, by meaning too, or measure both (default: as configured).",
)
@click.option(
    "--budgets",
    callback=_budgets,
    default="1k,2k,4k,8k",
    show_default=True,
    metavar="TOKENS,...",
    help="Budgets of the answers.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Ask at most N questions per session.")
@click.option(
    "--prefix-budget",
    type=token_budget,
    metavar="TOKENS",
    help="Also assemble before every model call, and measure what a prompt cache would save.",
)
@common_options
def command(
    common: Common,
    data: Sequence[Path],
    engines: Sequence[str],
    baselines: bool,
    meaning: str | None,
    budgets: list[int],
    limit: int | None,
    prefix_budget: int | None,
) -> int:
    """Measure engines on sessions with questions, over the wire and without a model.

    DATA are files of JSON lines, plain or .gz, one session per line: `session_id`, `messages`, `questions`.
    A question has a `prompt`, the ids of the messages with its `evidence`, and the index of the message after
    which it is asked (`at`). Messages are ingested one by one; each question is assembled within every
    budget, and each budget has its own session. Evidence counts as found if at least half of it is in the
    context word for word. The exit code is 1 if an answer is invalid or over its budget, or if a budget is
    refused.

    --baselines adds the newest messages alone ("recency") and SQLite's full-text search with stemming, also
    with the passages around each hit ("fts5+neighbours"). With --meaning both, every engine is measured
    without and with search by meaning, which needs the extra `semantic`; questions wait until every message
    has its vectors.
    """
    files = [(path.name, read_sessions(path)) for path in data]
    counting = counter("auto")
    plan = Plan(budgets, limit, prefix_budget)
    chosen = [Measured(engine, by) for engine in engines or (None,) for by in _MEANINGS[meaning]]
    if baselines:
        chosen += map(Measured, BASELINES)
    total = len(chosen) * sum(len(session.messages) for _, sessions in files for session in sessions)
    results: list[FileFigures] = []
    with counted_progress("evaluating", total) as advance:
        for name, sessions in files:
            results += [
                evaluate(common, measured, name, sessions, plan, counting, advance) for measured in chosen
            ]
    verdict = judge_evaluation(results)
    evaluation = Evaluation(
        ok=verdict.grade == "good", verdict=verdict, counter=counting.name, results=results
    )
    if common.json:
        print_json(evaluation)
    else:
        print_evaluation(evaluation)
    return OK if evaluation.ok else FAILURE
