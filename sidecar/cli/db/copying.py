"""`db backup`, `db restore`: a whole store to one file and back."""

from __future__ import annotations

import time
from pathlib import Path

import click

from sidecar.cli.db.progress import shown_progress
from sidecar.cli.db.target import store_failures, target_of
from sidecar.cli.failures import OK, CommandFailed
from sidecar.cli.options import Common, common_options
from sidecar.cli.printing import console, print_json, shown_bytes

_DUMP = "use pg_dump --format=custom --schema=context_sidecar, which is consistent while sidecars write"
_LOAD = "use pg_restore --dbname=DATABASE on what pg_dump wrote, with all sidecars stopped"


@click.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@common_options
def backup(common: Common, file: Path) -> int:
    """Copy the store to FILE, which must not be there yet. Sidecars may go on writing.

    The copy is the store of one moment, checked before it gets its name.
    """
    source = target_of(common).file(_DUMP)
    _refuse_existing(file)
    with store_failures(), shown_progress(quiet=common.json) as progress:
        from sidecar.store.sqlite.upkeep.copying import copy_store

        size = copy_store(source, file, progress)
    if common.json:
        print_json({"file": str(file), "bytes": size})
    else:
        console(stderr=True).print(f"{file} has {shown_bytes(size)} and is sound.", soft_wrap=True)
    return OK


@click.command("restore")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--replace",
    is_flag=True,
    help="Take the place of a store that is there; that one is kept under another name.",
)
@common_options
def restore(common: Common, file: Path, replace: bool) -> int:
    """Make FILE, written by `db backup`, the store. All sidecars that use the store must have ended.

    A store that is there is left alone unless --replace is given; even then it is kept beside the new one.
    """
    target = target_of(common).file(_LOAD)
    there = target.exists() and target.stat().st_size > 0
    if there and not replace:
        raise CommandFailed(
            f"{target} is there already (--replace puts the backup in its place, and keeps the old one)"
        )
    with store_failures(), shown_progress(quiet=common.json) as progress:
        from sidecar.store.sqlite.upkeep.copying import copy_store, move_aside
        from sidecar.store.sqlite.upkeep.looking import in_use

        if there and in_use(target):
            raise CommandFailed(f"{target} is in use (end all sidecars that use it first)")
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = target.with_name(f"{target.name}.restored")
        fresh.unlink(missing_ok=True)
        size = copy_store(file, fresh, progress)
        kept = move_aside(target, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
        fresh.rename(target)
    if common.json:
        print_json({"file": str(target), "bytes": size, "kept": None if kept is None else str(kept)})
        return OK
    out = console(stderr=True)
    out.print(f"{target} has {shown_bytes(size)} of {file}.", soft_wrap=True)
    if kept is not None:
        out.print(f"What was there is kept as {kept}; remove it when you are sure.", soft_wrap=True)
    return OK


def _refuse_existing(file: Path) -> None:
    from sidecar.store.sqlite.upkeep.copying import leftovers

    if found := leftovers(file):
        raise CommandFailed(f"{found[-1]} is there already (name a new file)")
    if not file.parent.is_dir():
        raise CommandFailed(f"{file.parent} is no directory")
