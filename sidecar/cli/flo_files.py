"""A session as two files: its whole history, and the summaries in its terse tags.

`context.json` has every message with its id, turn and time, in the shape of `session/export`.
`context.terse.json` has one entry for each tag; it follows from the messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from sidecar.cli.failures import CommandFailed
from sidecar.client.messages import StoredMessage
from sidecar.messages.contract import MessageError
from sidecar.messages.dialects import DIALECTS, dialect
from sidecar.messages.importers import Source, TranscriptError, conversations, read
from sidecar.messages.importers.transcript import BYTE_ORDER_MARK, nothing_in
from sidecar.messages.shapes import shapes
from sidecar.messages.terse_tags import may_have_tags, summaries
from sidecar.private_files import write
from sidecar.protocol.base import MessageFormat
from sidecar.protocol.times import format_rfc3339

Shape = TypeVar("Shape")

CONTEXT = "context.json"
TERSE = "context.terse.json"


class ContextEntry(Struct, rename="camel", omit_defaults=True):
    """One message of `context.json`."""

    message: Raw
    message_id: str | None = None
    turn_id: str | None = None
    timestamp: str | None = None
    issued: list[str] = []


class Context(Struct, rename="camel"):
    """`context.json`."""

    session_id: str
    message_format: MessageFormat
    messages: list[ContextEntry]


class TerseEntry(Struct, rename="camel", frozen=True):
    """One entry of `context.terse.json`."""

    timestamp: str
    turn_id: str
    role: str
    summary: str


def write_files(
    folder: Path, session_id: str, message_format: str, messages: Sequence[StoredMessage]
) -> tuple[Path, Path]:
    """Write both files into a folder, which is created if necessary, and return their paths."""
    entries = [
        ContextEntry(m.message, m.message_id, m.turn_id, m.timestamp, m.issued or []) for m in messages
    ]
    context, terse = folder / CONTEXT, folder / TERSE
    dialect = msgspec.convert(message_format, MessageFormat)
    write(context, msgspec.json.encode(Context(session_id, dialect, entries)) + b"\n")
    lines = terse_entries(dialect, entries)
    write(terse, msgspec.json.format(msgspec.json.encode(lines), indent=2) + b"\n")
    return context, terse


def read_files(path: Path) -> tuple[Context, list[TerseEntry]]:
    """Read the files of `write_files` from a folder or its `context.json`; the second file may be missing.

    Raises:
        CommandFailed: a file has the wrong form.
    """
    context = path / CONTEXT if path.is_dir() else path
    terse = context.with_name(TERSE)
    found = _decoded(context, Context)
    for number, entry in enumerate(found.messages):
        try:
            dialect(found.message_format).glance(bytes(entry.message))
        except MessageError as error:
            raise CommandFailed(f"{context.name}: messages[{number}]: {error.reason}") from None
    return found, _decoded(terse, list[TerseEntry]) if terse.exists() else []


def read_sessions(path: Path) -> list[tuple[Context, list[TerseEntry]]]:
    """The sessions in the output of `sessions export`, `db prune` or `db recover`, or in a transcript.

    Raises:
        CommandFailed: the file is none of these.
    """
    if path.is_dir():
        return [read_files(path)]
    archived = _archived(path)
    if archived:
        return [(context, []) for context in archived]
    try:
        return [read_files(path)]
    except CommandFailed as refused:
        found = conversations(path.read_bytes().removeprefix(BYTE_ORDER_MARK).strip())
        if found:
            several = len(found) > 1
            return [(_imported(one.source, one.id, path.name, refused, several), []) for one in found]
        return [(_transcript(path, refused), [])]


class _Line(Struct, rename="camel"):
    """A line of an archive, as `sidecar.store.lines` writes it."""

    namespace: str
    session_id: str
    message_format: str | None
    position: int
    message_id: str
    turn_id: str
    timestamp: str
    message: Raw = Raw()
    """Empty if the message is damaged."""
    issued: list[str] = []


def _archived(path: Path) -> list[Context]:
    """The sessions of an archive, whose lines each name their session; empty if it is not an archive."""
    found: dict[tuple[str, str], Context] = {}
    for line in path.read_bytes().splitlines():
        try:
            one = msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError:
            if not found:
                return []
            continue
        if not bytes(one.message) or one.message_format not in DIALECTS:
            continue
        spoken = cast("MessageFormat", one.message_format)
        entry = ContextEntry(one.message, one.message_id, one.turn_id, one.timestamp, one.issued)
        key = (one.namespace, one.session_id)
        found.setdefault(key, Context(one.session_id, spoken, [])).messages.append(entry)
    return list(found.values())


def _transcript(path: Path, refused: CommandFailed) -> Context:
    """A transcript in any supported format, or messages of one dialect, one per line."""
    lines = [line for line in path.read_bytes().splitlines() if line.strip()]
    named = [shapes(line) & set(DIALECTS) for line in lines]
    spoken = frozenset[str](DIALECTS).intersection(*named) if named else frozenset[str]()
    if spoken:
        # Messages of plain text fit several dialects; the first is the one that most hosts use.
        first = cast("MessageFormat", next(name for name in DIALECTS if name in spoken))
        entries = [ContextEntry(Raw(line), f"row-{n}") for n, line in enumerate(lines, 1)]
        return Context(path.stem, first, entries)
    return _imported(path, path.stem, path.name, refused)


def _imported(
    source: Source, session_id: str, named: str, refused: CommandFailed, may_be_empty: bool = False
) -> Context:
    """Import a source; errors name the file `named`. With `may_be_empty`, an empty conversation is a session
    without messages."""
    try:
        transcript = read(source)
    except TranscriptError as error:
        if may_be_empty:
            return Context(session_id, "openai", [])
        raise CommandFailed(f"{named}: {error}") from refused
    if not transcript.items and not may_be_empty:
        raise CommandFailed(f"{named}: {session_id}: {nothing_in(transcript.skipped)}")
    known = Counter(item.message_id for item in transcript.items)
    entries = [
        ContextEntry(
            Raw(item.message),
            item.message_id if item.message_id and known[item.message_id] == 1 else f"row-{n}",
            None,
            None if item.timestamp_ms is None else format_rfc3339(item.timestamp_ms),
        )
        for n, item in enumerate(transcript.items, 1)
    ]
    return Context(session_id, cast("MessageFormat", transcript.message_format), entries)


def terse_entries(message_format: str, entries: Sequence[ContextEntry]) -> list[TerseEntry]:
    """The terse tags in a session's assistant messages, in order."""
    read = dialect(message_format).read
    found: list[TerseEntry] = []
    for entry in entries:
        raw = bytes(entry.message)
        reading = read(raw) if may_have_tags(raw) else None
        if reading is not None and reading.role == "assistant":
            turn_id, timestamp = entry.turn_id or "", entry.timestamp or ""
            found += [TerseEntry(timestamp, turn_id, "assistant", said) for said in summaries(reading.text)]
    return found


def without_tag(context: Context, terse: Sequence[TerseEntry]) -> list[TerseEntry]:
    """The entries without a matching tag in the messages; they cannot be imported."""
    said = Counter((e.turn_id, e.summary) for e in terse_entries(context.message_format, context.messages))
    lacking: list[TerseEntry] = []
    for entry in terse:
        key = (entry.turn_id, entry.summary)
        if said[key]:
            said[key] -= 1
        else:
            lacking.append(entry)
    return lacking


def _decoded(path: Path, kind: type[Shape]) -> Shape:
    data = path.read_bytes()
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        from sidecar.surrogates import conceal

        veil = conceal(data)
        if veil is None:
            raise CommandFailed(f"{path.name} is no file that `sessions export` wrote: {error}") from None
    try:
        return veil.restore(msgspec.json.decode(veil.text, type=kind))
    except msgspec.DecodeError as error:
        raise CommandFailed(f"{path.name} is no file that `sessions export` wrote: {error}") from None
