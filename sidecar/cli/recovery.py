"""`context-sidecar db recover`: save every readable message of a damaged store, and report the losses."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import click
from msgspec import Struct, field

from sidecar.cli.failures import FAILURE, OK, CommandFailed
from sidecar.cli.options import Common, common_options
from sidecar.cli.output import Progress, console, print_json, shown_progress
from sidecar.cli.target import store_failures, target_of
from sidecar.messages.contract import Dialect, MessageError
from sidecar.messages.dialects import dialect_of_family
from sidecar.messages.marks import issued
from sidecar.private_files import create
from sidecar.store import open_store
from sidecar.store.lines import UNKNOWN_FORMAT, Owner, is_json, message_line, refill
from sidecar.store.sqlite.upkeep.copying import add_secrets, leftovers
from sidecar.store.stored import StoredMessage

_MOST = 20
"""Maximum number of incomplete sessions printed one by one."""
_INSTEAD = "restore a dump by pg_dump; PostgreSQL recovers from crashes by itself"


class SessionReport(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A session that has lost messages, and what is left of it."""

    namespace: str
    session_id: str
    saved: int
    lost: int | None
    """`None` if unknown, because the session's own row is lost."""
    damaged: int = 0
    """Messages that exist but are no longer valid JSON."""


class Recovery(Struct, rename="camel"):
    """The result of a recovery: what was saved, and what was not."""

    sessions: int = 0
    messages: int = 0
    lost: int = 0
    damaged: int = 0
    unreadable_rows: int = 0
    incomplete: list[SessionReport] = field(default_factory=list[SessionReport])

    @property
    def complete(self) -> bool:
        """Whether no loss is known."""
        return not (self.lost or self.damaged or self.unreadable_rows or self.incomplete)


@click.command("recover", short_help="Save every readable message of a damaged store.")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the messages to a new file.",
)
@click.option(
    "--to",
    "store",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="STORE",
    help="Write the messages to a new store.",
)
@common_options
def recover(common: Common, file: Path | None, out: Path | None, store: Path | None) -> int:
    """Save every readable message of FILE (default: the configured store), which is never changed.

    Messages are written as lines of JSON to standard output or to --out, or into a new store with --to. If
    anything is lost, the report lists it and the exit code is 1. Summaries, pins and settings are not saved.
    """
    damaged = file or target_of(common).file(_INSTEAD)
    for made in (out, store):
        if made is not None and (found := leftovers(made)):
            raise CommandFailed(f"{found[-1]} exists already (name a new file)")
    if common.json and out is None and store is None:
        raise CommandFailed("--json writes the report to standard output: add --out or --to for the messages")
    with store_failures(), shown_progress(quiet=common.json) as progress:
        report = _recovered(damaged, out, store, progress)
    if common.json:
        print_json(report)
    else:
        _print(report)
    return OK if report.complete else FAILURE


def _recovered(damaged: Path, out: Path | None, store: Path | None, progress: Progress) -> Recovery:
    from sidecar.store.sqlite.upkeep.salvage import Salvage

    with ExitStack() as stack:
        salvage = Salvage(damaged, progress)
        stack.callback(salvage.close)
        secrets, families = salvage.secrets[::-1], salvage.families
        report = Recovery(unreadable_rows=salvage.unreadable_rows)
        lines: BinaryIO | None = None
        if out is not None:
            lines = stack.enter_context(create(out))
        elif store is None:
            lines = sys.stdout.buffer
        refill = None
        if store is not None:
            refill = stack.enter_context(Filling(store)).put
        for number, (saved, messages) in enumerate(salvage.sessions(), 1):
            progress("saving sessions", number, salvage.session_count)
            tally = _Tally()
            root = families.get(saved.owner.ref, (None, False))[0] or saved.owner.ref.root
            reader = dialect_of_family(saved.owner.message_format or UNKNOWN_FORMAT, secrets, root)
            passed = _written(saved.owner, messages, lines, tally, reader)
            if refill is None:
                deque(passed, maxlen=0)
            else:
                refill(saved.owner, passed)
            _note(report, saved.owner, saved.message_count, tally)
        if lines is not None:
            lines.flush()
    if store is not None:
        add_secrets(store, salvage.secrets, salvage.families)
    return report


class _Tally:
    saved = 0
    damaged = 0


def _written(
    owner: Owner,
    messages: Iterator[StoredMessage],
    lines: BinaryIO | None,
    tally: _Tally,
    reader: Dialect,
) -> Iterator[StoredMessage]:
    """Write a line for every message, and yield the sound ones."""
    for message in messages:
        sound = is_json(message.body)
        if lines is not None:
            ours = _issued(reader, message.body) if sound else []
            lines.write(message_line(owner, message, sound=sound, issued=ours))
        if sound:
            tally.saved += 1
            yield message
        else:
            tally.damaged += 1


def _issued(reader: Dialect, body: bytes) -> list[str]:
    try:
        return issued(reader, body)
    except MessageError:
        return []


def _note(report: Recovery, owner: Owner, count: int | None, tally: _Tally) -> None:
    report.sessions += 1
    report.messages += tally.saved
    report.damaged += tally.damaged
    lost = None if count is None else count - tally.saved - tally.damaged
    report.lost += lost or 0
    if lost or lost is None or tally.damaged:
        report.incomplete.append(SessionReport(*owner.ref, tally.saved, lost, tally.damaged))


def _print(report: Recovery) -> None:
    out = console(stderr=True)
    out.print(f"Saved {report.messages:,} messages of {report.sessions:,} sessions.")
    if report.complete:
        out.print("No losses were found.")
        return
    if report.unreadable_rows:
        out.print(f"{report.unreadable_rows:,} rows are unreadable.")
    if report.damaged:
        out.print(f"{report.damaged:,} messages are damaged; their lines have the rest as damagedMessage.")
    if report.incomplete:
        out.print("Incomplete sessions:")
    for session in report.incomplete[:_MOST]:
        lost = "an unknown number" if session.lost is None else f"{session.lost:,}"
        line = f"  {session.session_id} ({session.namespace}): {session.saved:,} saved, {lost} lost"
        out.print(line + (f", {session.damaged:,} damaged" if session.damaged else ""), soft_wrap=True)
    if len(report.incomplete) > _MOST:
        out.print(f"  and {len(report.incomplete) - _MOST:,} more (--json lists them all)")


class Filling:
    """A new store to fill, open inside its with-block; everything is on disk when the block ends."""

    def __init__(self, path: Path) -> None:
        self._runner = asyncio.Runner()
        self._store = open_store("sqlite", path)

    def __enter__(self) -> Filling:
        self._runner.run(self._store.open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del kind, error, trace
        self._runner.run(self._store.close())
        self._runner.close()

    def put(self, owner: Owner, messages: Iterator[StoredMessage]) -> None:
        """Store the messages of one session."""
        self._runner.run(refill(self._store, owner, messages))
