"""`context-sidecar engines use`: selects an engine."""

from __future__ import annotations

from collections.abc import Collection

import click

from sidecar.cli.engines.known import engine_named, file_of, settings_of
from sidecar.cli.engines.slot_file import FileNotChanged, select
from sidecar.cli.failures import CommandFailed
from sidecar.cli.options import Common, common_options

LEGACY = "legacy"


@click.command("use")
@click.argument("name")
@common_options
def use(common: Common, name: str) -> int:
    """Select the engine NAME for every host that names none itself."""
    found = engine_named(settings_of(common), name)
    if found.problem:
        raise CommandFailed(found.problem)
    write_slot(common, name)
    click.echo(f"{name} is selected ({file_of(common)}); `context-sidecar doctor` tries it out")
    return 0


def write_slot(common: Common, name: str) -> None:
    """Write the slot into the configuration file.

    Raises:
        CommandFailed: the file has to be changed by hand.
    """
    try:
        select(file_of(common), name)
    except FileNotChanged as error:
        raise CommandFailed(str(error)) from None


def reset_slot(common: Common, gone: Collection[str]) -> None:
    """Select `legacy` where the selected engine is one of those that are gone, and say so."""
    selected = settings_of(common).engine
    if selected in gone:
        write_slot(common, LEGACY)
        click.echo(f"{selected} was selected: {LEGACY} is now, until you select another one")
