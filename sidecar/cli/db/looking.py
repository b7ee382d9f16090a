"""`db check`, `db stats`: what is told of a store without changing it."""

from __future__ import annotations

import click

from sidecar.cli.db.progress import shown_progress
from sidecar.cli.db.target import Target, store_failures, target_of
from sidecar.cli.failures import FAILURE, OK
from sidecar.cli.options import Common, common_options
from sidecar.cli.printing import console, print_json, print_table, shown_bytes
from sidecar.store.lines import rfc3339
from sidecar.store.upkeep import Finding, StoreStats


@click.command("check")
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
            from sidecar.store.sqlite.upkeep.checking import check as check_file

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


@click.command("stats")
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
    from sidecar.store.sqlite.upkeep.measuring import measure

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
