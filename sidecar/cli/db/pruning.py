"""`db prune`: erases sessions that nobody uses any more, as retention does while serving."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
import msgspec

from sidecar.cli.db.progress import Progress, shown_progress
from sidecar.cli.db.target import Target, store_failures, target_of
from sidecar.cli.failures import OK
from sidecar.cli.options import Common, common_options
from sidecar.cli.printing import console, print_json, print_table
from sidecar.server.configuration.settings import RetentionSettings
from sidecar.server.retention.pruning import Pruned, Pruning
from sidecar.store import open_store
from sidecar.store.lines import rfc3339

_DAY_MS = 86_400_000


@click.command("prune")
@click.option("--dry-run", is_flag=True, help="Tell what would be erased, and change nothing.")
@click.option(
    "--older-than", type=click.FloatRange(0, min_open=True), metavar="DAYS", help="retention.maxAgeDays"
)
@click.option("--max-size", type=click.IntRange(1), metavar="MB", help="retention.maxSizeMb")
@click.option("--min-idle", type=click.FloatRange(0), metavar="MINUTES", help="retention.minIdleMinutes")
@click.option(
    "--archive", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="retention.archiveDir"
)
@common_options
def prune(
    common: Common,
    dry_run: bool,
    older_than: float | None,
    max_size: int | None,
    min_idle: float | None,
    archive: Path | None,
) -> int:
    """Erase sessions by the rules of retention.*; options take the place of settings.

    Sessions go whole, those first that were not changed for longest. Forks keep what they share. With an
    archive each is written to a file of its own before.
    """
    target = target_of(common)
    rules = target.settings.retention
    if older_than is not None:
        rules = msgspec.structs.replace(rules, max_age_ms=int(older_than * _DAY_MS))
    if max_size is not None:
        rules = msgspec.structs.replace(rules, max_bytes=max_size << 20)
    if min_idle is not None:
        rules = msgspec.structs.replace(rules, min_idle_ms=int(min_idle * 60_000))
    if archive is not None:
        rules = msgspec.structs.replace(rules, archive_dir=archive)
    with store_failures(), shown_progress(quiet=common.json) as progress:
        _check_there(target)
        if not rules.is_set:
            raise click.UsageError("no rule is set: give --older-than or --max-size, or configure retention")
        pruned = asyncio.run(_pruned(target, rules, progress, dry=dry_run))
    if common.json:
        print_json({"dryRun": dry_run, "sessions": pruned})
    else:
        _print(pruned, dry=dry_run)
    return OK


async def _pruned(target: Target, rules: RetentionSettings, progress: Progress, *, dry: bool) -> list[Pruned]:
    store = open_store("sqlite" if target.url is None else "postgres", target.path, url=target.url)
    done = 0

    async def told(pruned: Pruned) -> None:
        nonlocal done
        done += 1
        progress(f"erased {done} sessions, the last one {pruned.session_id[:40]}", 0, 0)

    await store.open()
    try:
        return await Pruning(store, rules, told=told).run(dry=dry)
    finally:
        await store.close()


def _check_there(target: Target) -> None:
    """Refuse to make a store where there is none."""
    if target.url is not None:
        from sidecar.store.postgres import upkeep

        upkeep.versions(target.url)
    else:
        from sidecar.store.sqlite.upkeep.tidying import versions

        versions(target.file(""))


def _print(pruned: list[Pruned], *, dry: bool) -> None:
    if pruned:
        print_table(
            ("session", "namespace", "messages", "last change", "because of", "archive"),
            (
                (
                    p.session_id,
                    p.namespace,
                    f"{p.messages:,}",
                    rfc3339(p.updated_ms),
                    p.reason,
                    p.archive or "",
                )
                for p in pruned
            ),
            numbers=(2,),
        )
    verb = "would be erased" if dry else "erased"
    console(stderr=True).print(f"{len(pruned):,} sessions {verb}.")
