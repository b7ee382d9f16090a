"""`context-sidecar conformance`: tells whether something outside keeps the rules."""

from __future__ import annotations

from importlib import import_module

import click

SUITES = {
    "client": ("sidecar.cli.conformance.client", "Check a client inside a driver that a command starts."),
    "engine": ("sidecar.cli.conformance.engine", "Check a context engine."),
    "server": ("sidecar.cli.conformance.server", "Check a server that a command starts."),
    "store": ("sidecar.cli.conformance.store", "Check a session store."),
}
"""The module of each suite's command, with what help says about it."""


class Suites(click.Group):
    """A group that imports a suite when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the suites."""
        del ctx
        return list(SUITES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that suite."""
        del ctx
        return import_module(SUITES[cmd_name][0]).command if cmd_name in SUITES else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of suites."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in SUITES.items()])


@click.group("conformance", cls=Suites)
def command() -> None:
    """Check that an implementation of your own keeps the rules that ours keep."""
