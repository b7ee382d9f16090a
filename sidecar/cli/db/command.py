"""`context-sidecar db`: checks, copies, sizes, repairs of the store, each imported when it is run."""

from __future__ import annotations

from importlib import import_module

import click

_SUMMARIES = {
    "check": ("sidecar.cli.db.looking", "Tell whether the store is sound."),
    "stats": ("sidecar.cli.db.looking", "Tell how large the store is, and what is in it."),
    "backup": ("sidecar.cli.db.copying", "Copy the store to a file, while it is in use."),
    "restore": ("sidecar.cli.db.copying", "Bring a backup back."),
    "recover": ("sidecar.cli.db.recovering", "Save every readable message of a damaged store."),
    "prune": ("sidecar.cli.db.pruning", "Erase sessions that nobody uses any more."),
    "vacuum": ("sidecar.cli.db.tidying", "Give back the room that erased messages have left."),
    "migrate": ("sidecar.cli.db.tidying", "Bring the store's tables to this version."),
}
"""Every command, in the order of the help."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        del ctx
        return list(_SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        del ctx
        entry = _SUMMARIES.get(cmd_name)
        return None if entry is None else getattr(import_module(entry[0]), cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _SUMMARIES.items()])


@click.group("db", cls=_Commands)
def command() -> None:
    """Look after the store: check it, copy it, save what a damaged one still has.

    All of them work on the configured store, most of them while a sidecar serves it. Exit code 0 means that
    all is well, 1 that something is wrong, 2 that the command line cannot be understood.
    """
