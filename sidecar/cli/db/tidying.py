"""`db vacuum`, `db migrate`: changes of the store that keep what is in it."""

from __future__ import annotations

import click

from sidecar.cli.db.progress import shown_progress
from sidecar.cli.db.target import store_failures, target_of
from sidecar.cli.failures import OK
from sidecar.cli.options import Common, common_options
from sidecar.cli.printing import console, print_json, shown_bytes


@click.command("vacuum")
@click.option(
    "--full",
    is_flag=True,
    help="PostgreSQL: write the tables anew, without what is left of erased rows. Locks each meanwhile.",
)
@common_options
def vacuum(common: Common, full: bool) -> int:
    """Give back the room that erased messages have left. Sidecars that write meanwhile wait."""
    target = target_of(common)
    with store_failures(), shown_progress(quiet=common.json) as progress:
        if target.url is not None:
            from sidecar.store.postgres import upkeep

            before, after = upkeep.vacuum(target.url, progress, full=full)
        else:
            from sidecar.store.sqlite.upkeep.tidying import vacuum as vacuum_file

            progress("vacuuming", 0, 0)
            before, after = vacuum_file(target.file(""))
    if common.json:
        print_json({"bytesBefore": before, "bytesAfter": after})
    else:
        console(stderr=True).print(f"{shown_bytes(before)} before, {shown_bytes(after)} now.")
    return OK


@click.command("migrate")
@click.option("--dry-run", is_flag=True, help="Tell the versions, and change nothing.")
@common_options
def migrate(common: Common, dry_run: bool) -> int:
    """Bring the store's tables to this version. `serve` does so by itself; make a backup first.

    A store of a newer version is refused.
    """
    target = target_of(common)
    with store_failures():
        if target.url is not None:
            from sidecar.store.postgres import upkeep

            before, after = (upkeep.versions if dry_run else upkeep.migrate)(target.url)
        else:
            from sidecar.store.sqlite.upkeep import tidying

            before, after = (tidying.versions if dry_run else tidying.migrate)(target.file(""))
    if common.json:
        print_json({"versionBefore": before, "versionAfter": before if dry_run else after, "newest": after})
    elif before == after:
        console(stderr=True).print(f"The store has schema version {before}, which is the newest.")
    else:
        verb = "would be brought" if dry_run else "was brought"
        console(stderr=True).print(f"The store {verb} from schema version {before} to {after}.")
    return OK
