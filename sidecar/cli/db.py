"""`context-sidecar db`: check, measure, copy, prune and tidy the store."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import click
import msgspec

from sidecar.cli.failures import FAILURE, OK, CommandFailed
from sidecar.cli.options import Common, InOrder, common_options
from sidecar.cli.output import (
    Progress,
    console,
    print_json,
    print_table,
    shown_bytes,
    shown_progress,
)
from sidecar.cli.recovery import recover
from sidecar.cli.target import Target, store_failures, target_of
from sidecar.plurals import counted
from sidecar.private_files import make_folder
from sidecar.server.background.retention import Clock, ClockAhead, Pruned, Pruning
from sidecar.server.configuration.settings import RetentionSettings
from sidecar.store import open_store
from sidecar.store.lines import rfc3339
from sidecar.store.upkeep import Finding, StoreStats

_DAY_MS = 86_400_000
_DUMP = "use pg_dump --format=custom --schema=context_sidecar, which is consistent while sidecars write"
_LOAD = "use pg_restore --dbname=DATABASE on what pg_dump wrote, with all sidecars stopped"


@click.group("db", cls=InOrder)
def command() -> None:
    """Look after the store: check it, copy it, save what a damaged one still has.

    All of them work on the configured store, most of them while a sidecar serves it. Exit code 0 means that
    all is well, 1 that something is wrong, 2 that the command line cannot be understood.
    """


@command.command("check", short_help="Tell whether the store is sound.")
@common_options
def check(common: Common) -> int:
    """Tell whether the store is sound: every page of its file, and what must hold between its tables.

    Nothing is changed. Exit code 1 where something is wrong.
    """
    target = target_of(common)
    with store_failures(), shown_progress(quiet=common.json) as progress:
        if target.url is not None:
            from sidecar.store.postgres import upkeep

            findings = upkeep.check(target.url, progress)
        else:
            from sidecar.store.sqlite.upkeep.inspection import check as check_file

            findings = check_file(target.file(""), progress)
    sound = all(finding.ok for finding in findings)
    if common.json:
        print_json({"ok": sound, "checks": findings})
    else:
        _print_findings(findings)
    return OK if sound else FAILURE


def _print_findings(findings: list[Finding]) -> None:
    from rich.text import Text

    out = console()
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark = Text("ok   ", "green") if finding.ok else Text("WRONG", "bold red")
        out.print(mark, Text(finding.name.ljust(width)), Text(finding.message), soft_wrap=True)
        if finding.fix:
            out.print(Text(f"      {'':{width}} {finding.fix}", "yellow"), soft_wrap=True)


@command.command("stats", short_help="Tell how large the store is, and what is in it.")
@common_options
def stats(common: Common) -> int:
    """Tell how large the store is, and what is in it: by table and by namespace."""
    target = target_of(common)
    with store_failures():
        found = _measured(target)
    if common.json:
        print_json(found)
    else:
        _print_stats(target, found)
    return OK


def _measured(target: Target) -> StoreStats:
    if target.url is not None:
        from sidecar.store.postgres import upkeep

        return upkeep.measure(target.url)
    from sidecar.store.sqlite.upkeep.inspection import measure

    return measure(target.file(""))


def _print_stats(target: Target, found: StoreStats) -> None:
    out = console()
    facts = [
        ("store", target.name),
        ("version", str(found.schema_version)),
        ("size", shown_bytes(found.bytes)),
        ("write-ahead log", None if found.log_bytes is None else shown_bytes(found.log_bytes)),
        ("free", None if found.free_bytes is None else shown_bytes(found.free_bytes)),
        ("sessions", f"{found.sessions:,}"),
        ("messages", f"{found.messages:,} of {shown_bytes(found.message_bytes)}"),
        ("summaries", f"{found.summaries:,}"),
    ]
    for name, value in facts:
        if value is not None:
            out.print(f"{name:16} {value}", soft_wrap=True)
    print_table(
        ("table", "size"),
        ((name, shown_bytes(size)) for name, size in found.table_bytes.items()),
        numbers=(1,),
    )
    if found.namespaces:
        print_table(
            ("namespace", "sessions", "messages", "oldest change", "newest change"),
            (
                (
                    _shown(n.namespace),
                    f"{n.sessions:,}",
                    f"{n.messages:,}",
                    rfc3339(n.oldest_ms),
                    rfc3339(n.newest_ms),
                )
                for n in found.namespaces
            ),
            numbers=(1, 2),
        )


def _shown(namespace: str) -> str:
    return namespace.replace("\0", "␀")


@command.command("backup", short_help="Copy the store to a file, while it is in use.")
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


@command.command("restore", short_help="Bring a backup back.")
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
        from sidecar.store.sqlite.upkeep.copying import copy_store, free_name, keep_secrets, leftovers
        from sidecar.store.sqlite.upkeep.inspection import in_use
        from sidecar.store.sqlite.upkeep.replacement import abandon, begin, commit, fresh_of

        if there and in_use(target):
            raise CommandFailed(f"{target} is in use (end all sidecars that use it first)")
        make_folder(target.parent)
        begin(target)
        try:
            size = copy_store(file, fresh_of(target), progress)
            if there:
                keep_secrets(target, fresh_of(target))
        except BaseException:
            abandon(target)
            raise
        name = free_name(target, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
        kept = name if leftovers(target) else None
        commit(target, name)
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


command.add_command(recover)


@command.command("prune", short_help="Erase sessions that nobody uses any more.")
@click.option("--dry-run", is_flag=True, help="Tell what would be erased, and change nothing.")
@click.option(
    "--older-than", type=click.FloatRange(0, min_open=True), metavar="DAYS", help="retention.maxAgeDays"
)
@click.option("--max-size", type=click.IntRange(1), metavar="MB", help="retention.maxSizeMb")
@click.option("--min-idle", type=click.FloatRange(0), metavar="MINUTES", help="retention.minIdleMinutes")
@click.option(
    "--archive", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="retention.archiveDir"
)
@click.option(
    "--trust-clock", is_flag=True, help="Erase even where the clock is far ahead of everything in the store."
)
@common_options
def prune(
    common: Common,
    dry_run: bool,
    older_than: float | None,
    max_size: int | None,
    min_idle: float | None,
    archive: Path | None,
    trust_clock: bool,
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
        try:
            pruned = asyncio.run(_pruned(target, rules, progress, dry=dry_run, trusting=trust_clock))
        except ClockAhead as error:
            raise CommandFailed(
                f"{error}: nothing is erased (set the clock, or give --trust-clock)"
            ) from None
    if common.json:
        print_json({"dryRun": dry_run, "sessions": pruned})
    else:
        _print(pruned, dry=dry_run)
    return OK


async def _pruned(
    target: Target, rules: RetentionSettings, progress: Progress, *, dry: bool, trusting: bool
) -> list[Pruned]:
    store = open_store("sqlite" if target.url is None else "postgres", target.path, url=target.url)
    done = 0

    async def told(pruned: Pruned) -> None:
        nonlocal done
        done += 1
        progress(f"erased {counted(done, 'session')}, the last one {pruned.session_id[:40]}", 0, 0)

    await store.open()
    try:
        clock = None if trusting else await Clock.of(store)
        return await Pruning(store, rules, told=told, clock=clock).run(dry=dry)
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
    console(stderr=True).print(f"{counted(len(pruned), 'session')} {verb}.")


@command.command("vacuum", short_help="Give back the room that erased messages have left.")
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
        text = vacuum_text(before, after, on_server=target.url is not None)
        console(stderr=True).print(text, soft_wrap=True)
    return OK


def vacuum_text(before: int, after: int, *, on_server: bool) -> str:
    """What a vacuum came to, in bytes; where the store has grown, why."""
    text = f"{shown_bytes(before)} before, {shown_bytes(after)} now."
    if after <= before:
        return text
    if not on_server:
        return f"{text} The store has grown: sidecars wrote meanwhile."
    return (
        f"{text} The store has grown: PostgreSQL wrote its maps of free space, or sidecars wrote meanwhile. "
        "New messages reuse the room of erased ones; --full gives it back to the disk."
    )


@command.command("reindex", short_help="Make the search index again.")
@common_options
def reindex(common: Common) -> int:
    """Make the search index again, for where `db check` finds it damaged.

    It is emptied now and filled behind the next start of a sidecar; until then searches read the messages.
    """
    target = target_of(common)
    with store_failures(), shown_progress(quiet=common.json) as progress:
        progress("emptying the search index", 0, 0)
        if target.url is not None:
            from sidecar.store.postgres import upkeep

            upkeep.reindex(target.url)
        else:
            from sidecar.store.sqlite.upkeep import tidying

            tidying.reindex(target.file(""))
    if common.json:
        print_json({"ok": True})
    else:
        console(stderr=True).print("The search index is empty; the next `context-sidecar serve` fills it.")
    return OK


@command.command("migrate", short_help="Bring the store's tables to this version.")
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
