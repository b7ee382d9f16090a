"""`context-sidecar engines link` and `unlink`: engines in development, used where they are."""

from __future__ import annotations

from pathlib import Path

import click

from sidecar.cli.engines.choosing import reset_slot
from sidecar.cli.engines.known import links_of, settings_of, sources_of
from sidecar.cli.failures import CommandFailed
from sidecar.cli.options import Common, common_options
from sidecar.engine.declared import NothingDeclared, declared_engines
from sidecar.engine.links import LinksUnreadable, add_link, read_links, remove_link
from sidecar.engine.sources import BUILT_IN


@click.command("link")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@common_options
def link(common: Common, folder: Path) -> int:
    """Use the engines of FOLDER as they are there; what is changed counts at the next start."""
    folder = folder.resolve()
    try:
        engines = declared_engines(folder)
        taken = sorted(set(engines) & set(BUILT_IN))
        if taken:
            raise CommandFailed(f"{', '.join(taken)}: built-in engines have this id, choose another one")
        add_link(links_of(settings_of(common)), folder)
    except (NothingDeclared, LinksUnreadable) as error:
        raise CommandFailed(str(error)) from None
    names = ", ".join(engines)
    click.echo(
        f"linked {names} from {folder}; `context-sidecar engines use {next(iter(engines))}` selects it"
    )
    return 0


@click.command("unlink")
@click.argument("name", metavar="FOLDER|ENGINE")
@common_options
def unlink(common: Common, name: str) -> int:
    """Use the engines of a linked FOLDER, or the one that an ENGINE comes from, no longer."""
    settings = settings_of(common)
    found = [one for one in sources_of(settings).all() if one.origin == "linked"]
    folder = next((one.source for one in found if one.id == name), str(Path(name).resolve()))
    gone = [one.id for one in found if one.source == folder]
    try:
        if not remove_link(links_of(settings), folder):
            linked = ", ".join(read_links(links_of(settings))) or "none"
            raise CommandFailed(f"{name} is not linked; linked are: {linked}")
    except LinksUnreadable as error:
        raise CommandFailed(str(error)) from None
    click.echo(f"unlinked {', '.join(gone) or folder}")
    reset_slot(common, gone)
    return 0
