"""A session as two files: its whole history, beside it what its terse tags say.

`context.json` has every message with its id, turn and time, in the shape of `session/export`.
`context.terse.json` has one entry for each tag; it follows from the messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from sidecar.cli.failures import CommandFailed
from sidecar.client.answers import StoredMessage
from sidecar.messages.contract import MessageError
from sidecar.messages.dialects import dialect
from sidecar.messages.terse_tags import may_have_tags, summaries
from sidecar.protocol.base import MessageFormat

Shape = TypeVar("Shape")

CONTEXT = "context.json"
TERSE = "context.terse.json"


class ContextEntry(Struct, rename="camel", omit_defaults=True):
    """One message of `context.json`."""

    message: Raw
    message_id: str | None = None
    turn_id: str | None = None
    timestamp: str | None = None


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
    folder: Path, session_id: str, message_format: MessageFormat, messages: Sequence[StoredMessage]
) -> tuple[Path, Path]:
    """Writes both files into a folder, which is made if need be; returns their paths."""
    entries = [ContextEntry(m.message, m.message_id, m.turn_id, m.timestamp) for m in messages]
    folder.mkdir(parents=True, exist_ok=True)
    context, terse = folder / CONTEXT, folder / TERSE
    context.write_bytes(msgspec.json.encode(Context(session_id, message_format, entries)) + b"\n")
    lines = terse_entries(message_format, entries)
    terse.write_bytes(msgspec.json.format(msgspec.json.encode(lines), indent=2) + b"\n")
    return context, terse


def read_files(path: Path) -> tuple[Context, list[TerseEntry]]:
    """What `write_files` wrote: a folder, or its `context.json`; the second file may be missing.

    Raises:
        CommandFailed: a file is not what it should be.
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


def terse_entries(message_format: str, entries: Sequence[ContextEntry]) -> list[TerseEntry]:
    """What the tags of a session's assistant say, in order."""
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
    """The entries that no tag of the messages says: they are not in the history, and cannot be kept."""
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
