"""`context-sidecar replay`: replay a recorded session through a real sidecar process."""

from __future__ import annotations

from pathlib import Path

import click

from sidecar.cli.failures import FAILURE, OK
from sidecar.cli.lab.figures import Style
from sidecar.cli.lab.replay import Plan, Request, compare, recorded, replay
from sidecar.cli.lab.report import print_comparison, print_report
from sidecar.cli.options import Common, Prices, common_options, price_option, token_budget
from sidecar.cli.output import print_json
from sidecar.messages.importers.documents import FORMATS


@click.command("replay")
@click.argument("transcript", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="ID",
    help="Engine to use (default: as configured); give several to compare them.",
)
@click.option(
    "--budget",
    type=token_budget,
    metavar="TOKENS",
    default="128k",
    show_default=True,
    help="Token budget of every answer.",
)
@click.option(
    "--format",
    "format",
    type=click.Choice(FORMATS),
    help="Format of the transcript (default: detected).",
)
@click.option(
    "--style",
    type=click.Choice(("ingest", "commit")),
    default="ingest",
    show_default=True,
    help="Ingest each message as it happens, or commit whole turns and send the transcript along.",
)
@click.option(
    "--assemble-every-call/--assemble-once-per-turn",
    "every_call",
    default=True,
    help="Assemble before every model call (default), or only before the first one of a turn.",
)
@click.option(
    "--compaction/--no-compaction",
    default=True,
    help="Compact when preflight asks for it (default), or never.",
)
@click.option("--exact", is_flag=True, help="Fail if tokens cannot be counted exactly (extra `tokens`).")
@click.option("--session", metavar="ID", help="Id of the session (default: the name of the file).")
@price_option
@click.option(
    "--rows",
    type=click.IntRange(2),
    default=24,
    show_default=True,
    help="Maximum number of rows in the table of turns.",
)
@common_options
def command(
    common: Common,
    transcript: Path,
    engines: tuple[str, ...],
    budget: int,
    format: str | None,
    style: Style,
    every_call: bool,
    compaction: bool,
    exact: bool,
    session: str | None,
    prices: Prices,
    rows: int,
) -> int:
    """Replay a recorded session as an agent runtime would, and judge every answer.

    A fresh sidecar receives the messages one by one, and assembles the context wherever the recorded runtime
    called its model. Each answer is checked independently: it must be valid for the provider, within the
    budget by a separate token count, and byte for byte. The exit code is 1 if a check fails.

    A message is synthetic if the sidecar wrote it, such as a summary. The epoch rises when older messages
    make room; until then each answer extends the previous one. Refusing a budget is needless if the smallest
    valid answer would have fit.

    With several engines, one table compares them: tokens, cost with cache prices, prefix, time, and how many
    of the values that later calls used were still in view.
    """
    plan = Plan(session or transcript.stem, budget, style, every_call, compaction)
    request = Request(transcript, format, engines[0] if engines else None, exact, plan)
    if len(engines) > 1:
        comparison = compare(common, request, engines, prices)
        (print_json if common.json else print_comparison)(comparison)
        return OK if comparison.ok else FAILURE
    result = replay(common, request, *recorded(request)).figures
    if common.json:
        print_json(result)
    else:
        print_report(result, rows)
    return OK if result.ok else FAILURE
