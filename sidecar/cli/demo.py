"""`context-sidecar demo`: replay the bundled session with a budget that is too small for it."""

from __future__ import annotations

from pathlib import Path

import click

from sidecar.cli.failures import FAILURE, OK
from sidecar.cli.lab.figures import Replay
from sidecar.cli.lab.replay import Finished, Plan, Request, recorded, replay
from sidecar.cli.lab.report import print_report
from sidecar.cli.options import Common, common_options, token_budget
from sidecar.cli.output import console, print_json, shown_tokens
from sidecar.messages.dialects import dialect
from sidecar.messages.fence import claimed_mark

SESSION = Path(__file__).with_name("demo_session.jsonl")
EXCERPT_LINES = 12
EXCERPT_WIDTH = 110


@click.command("demo")
@click.option("--engine", default="default", show_default=True, metavar="ID", help="Engine to use.")
@click.option(
    "--budget",
    type=token_budget,
    metavar="TOKENS",
    default="6k",
    show_default=True,
    help="Token budget of every answer.",
)
@common_options
def command(common: Common, engine: str, budget: int) -> int:
    """Replay a bundled coding session, and explain the output."""
    plan = Plan("demo", budget, "ingest", every_call=True, compaction=True)
    request = Request(SESSION, "openai-chat", engine, exact=False, plan=plan)
    finished = replay(common, request, *recorded(request))
    if common.json:
        print_json(finished.figures)
    else:
        print_report(finished.figures, rows=24)
        _explain(finished)
    return OK if finished.figures.ok else FAILURE


def _explain(finished: Finished) -> None:
    out = console()
    figures: Replay = finished.figures
    summary = figures.summary
    out.print()
    for line in (
        f"What you see: a coding session of {summary.messages} messages and "
        f"{shown_tokens(summary.full_tokens)} tokens was sent to a sidecar process, message by message.",
        f"Before each of the {summary.asked} model calls, the sidecar assembled a context of at most "
        f"{shown_tokens(figures.budget)} tokens.",
        "Everything is still stored, even what was not sent; the model can search it.",
    ):
        out.print(line, soft_wrap=True)
    excerpt = _summary_excerpt(finished)
    if excerpt:
        out.print()
        out.print("In the last answer, this summary replaces the older messages:")
        for line in excerpt:
            out.print(f"  | {line}", soft_wrap=True)
    out.print()
    out.print("What to type next:")
    for typed, what in (
        ("context-sidecar demo --engine full", "the same, with old turns left out instead of summarised"),
        ("context-sidecar replay FILE --budget 32k", "your own session: Claude Code, Codex, pi, OpenAI, ..."),
        ("context-sidecar engines list", "all engines"),
        ("context-sidecar doctor", "a check of your installation"),
    ):
        out.print(f"  {typed:42} {what}", soft_wrap=True)


def _summary_excerpt(finished: Finished) -> list[str]:
    """The first lines of the first summary in the last answer."""
    read = dialect(finished.figures.message_format).read
    for message in finished.newest:
        reading = read(message)
        mark = claimed_mark(reading.text)
        if mark is not None and mark.kind == "summary":
            lines = [_shortened(line) for line in reading.text.splitlines() if line.strip()]
            return lines if len(lines) <= EXCERPT_LINES else [*lines[:EXCERPT_LINES], "..."]
    return []


def _shortened(line: str) -> str:
    return line if len(line) <= EXCERPT_WIDTH else line[: EXCERPT_WIDTH - 3] + "..."
