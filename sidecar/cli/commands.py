"""The command line: a list of commands, each imported only when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import NamedTuple

import click

from sidecar import __version__
from sidecar.cli.failures import reported_failures
from sidecar.import_path import complaint

PROGRAM = "context-sidecar"


class Entry(NamedTuple):
    """A command: the module that defines `command`, and its line in the help."""

    module: str
    summary: str


ENTRIES = {
    "serve": Entry("sidecar.cli.commands", "Speak the protocol on standard input and output."),
    "demo": Entry("sidecar.cli.demo", "Replay a session that comes with the package."),
    "replay": Entry("sidecar.cli.replay", "Replay a recorded session and judge every answer."),
    "inspect": Entry("sidecar.cli.inspect", "Show in a browser what the model saw, why, and what it cost."),
    "eval": Entry("sidecar.cli.eval", "Measure how much of the evidence for questions engines find."),
    "run": Entry("sidecar.cli.run", "Start Claude Code, Codex or another program behind the gateway."),
    "gateway": Entry("sidecar.cli.gateway", "Serve programs that only know a model's API."),
    "mcp": Entry("sidecar.cli.mcp", "Serve the recall tools over MCP, on standard input and output."),
    "doctor": Entry("sidecar.cli.doctor", "Find problems and say how to fix them."),
    "engines": Entry("sidecar.cli.engines", "List, create, link, install, select or check engines."),
    "sessions": Entry("sidecar.cli.sessions", "List, show, export, import or delete stored sessions."),
    "memory": Entry("sidecar.cli.memory", "Show injected memory; list or forget facts."),
    "db": Entry("sidecar.cli.db", "Check, copy, repair or compact the store."),
    "config": Entry("sidecar.cli.config", "Show or validate the configuration."),
    "conformance": Entry("sidecar.cli.conformance", "Check your own server, client, engine or store."),
    "schema": Entry("sidecar.cli.schema", "Write or check the files generated from the protocol's types."),
}
"""Every command, in the order of the help."""


class LazyCommands(click.Group):
    """A group that lists names and summaries without importing the commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        del ctx
        return list(ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        del ctx
        entry = ENTRIES.get(cmd_name)
        return None if entry is None else import_module(entry.module).command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in ENTRIES.items()])


@click.group(
    PROGRAM,
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`context-sidecar COMMAND --help` explains a command. Start with `context-sidecar demo`.",
)
@click.version_option(__version__, prog_name=PROGRAM)
def cli() -> None:
    """Keep, choose and compact what an agent's model sees: a language server for agent context."""


@click.command(
    "serve", add_help_option=False, context_settings={"ignore_unknown_options": True, "help_option_names": []}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Speak the protocol on standard input and output; `main` starts it without loading this module."""
    from sidecar.cli.serve import serve

    return serve(arguments)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0 ok, 1 failure or unhealthy, 2 usage."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    if (warning := complaint(os.environ)) is not None:
        print(f"{PROGRAM}: warning: {warning}", file=sys.stderr)
    with reported_failures(PROGRAM) as outcome:
        code: object = cli.main(given or ["--help"], prog_name=PROGRAM, standalone_mode=False)
        outcome.code = code if isinstance(code, int) else 0
    return outcome.code
