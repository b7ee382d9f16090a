"""Lists the commands around engines; each is imported when it is run."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {
    "list": ("listing", "list_engines", "List every engine, and whether it can be selected."),
    "show": ("listing", "show", "Show one engine: where it comes from, what it does, its settings."),
    "use": ("choosing", "use", "Select an engine in the configuration file."),
    "new": ("scaffolding", "new", "Write the package of a new engine, which works at once."),
    "link": ("linking", "link", "Use the engines of a folder as they are there, without copying."),
    "unlink": ("linking", "unlink", "Use the engines of a folder no longer."),
    "install": ("packages", "install", "Install a package with engines into the sidecar's environment."),
    "uninstall": ("packages", "uninstall", "Remove such a package again."),
    "check": ("checking", "check", "Check that an engine keeps the rules."),
}
"""Module, name and help of each command, in the order of the help."""


class EngineCommands(click.Group):
    """A group that knows names and summaries without importing anything."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, name, _ = COMMANDS[cmd_name]
        return getattr(import_module(f"sidecar.cli.engines.{module}"), name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, _, summary) in COMMANDS.items()])


@click.group("engines", cls=EngineCommands)
def command() -> None:
    """The engines that can be selected, and how to make, link, install and check one."""
