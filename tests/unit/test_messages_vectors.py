"""The shared identity vectors hold for this implementation."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw, Struct

from sidecar.messages.alignment import StoredItem, TranscriptItem, align
from sidecar.messages.contract import Reading
from sidecar.messages.dialects import dialect
from sidecar.messages.identity import keys, leading_keys, size, stands_in, stub_refs, without_stubs
from sidecar.messages.marks import Marks

FOLDER = Path(__file__).parents[2] / "spec" / "vectors" / "identity"
KEY, ROOT = b"context-engine-protocol test key", "vectors\x1fs"
"""The secret of the codes in the vectors."""
FILES = sorted(FOLDER.glob("*.json"))


class Kept(Struct, rename="camel"):
    message_id: str
    message: Raw
    given_by_host: bool = False


class Seen(Struct, rename="camel"):
    message: Raw
    message_id: str | None = None


class Case(Struct, rename="camel", forbid_unknown_fields=True):
    title: str
    message_format: str
    transcript_is: str
    stored: list[Kept]
    transcript: list[Seen]
    expected: list[str | None]


def test_there_are_vectors() -> None:
    assert len(FILES) > 20


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_vector_holds(file: Path) -> None:
    case = msgspec.json.decode(file.read_bytes(), type=Case)
    read = dialect(case.message_format).marked(Marks([KEY], ROOT)).read
    stored: list[StoredItem] = []
    for kept in case.stored:
        reading = read(bytes(kept.message))
        host_id = kept.message_id if kept.given_by_host else None
        role = reading.role
        stored.append(StoredItem(kept.message_id, host_id, reading.inner_id, keys(reading), role == "system"))
    known = {kept.message_id: read(bytes(kept.message)) for kept in case.stored}
    readings = [_resolved(read(bytes(seen.message)), known) for seen in case.transcript]
    transcript = [
        TranscriptItem(_given_id(seen, r), r.inner_id, keys(r), size(r), r.role == "system")
        for seen, r in zip(case.transcript, readings, strict=True)
    ]
    found = align(
        stored,
        transcript,
        whole=case.transcript_is == "whole",
        leading_keys=lambda index: leading_keys(readings[index]),
    )
    assert [None if index is None else stored[index].message_id for index in found] == case.expected


def _given_id(seen: Seen, reading: Reading) -> str | None:
    return seen.message_id or next(iter(stub_refs(reading)), None)


def _resolved(reading: Reading, known: dict[str, Reading]) -> Reading:
    """The reading with its stubs, if they stand for stored messages."""
    refs = stub_refs(reading)
    holds = all(ref in known for ref in refs) and stands_in(reading, [known[ref] for ref in refs])
    return reading if holds or not refs else without_stubs(reading)


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_vector_is_well_formed(file: Path) -> None:
    case = json.loads(file.read_text())
    order = [kept["messageId"] for kept in case["stored"]]
    known = [message_id for message_id in case["expected"] if message_id is not None]
    assert len(case["expected"]) == len(case["transcript"])
    assert known == [message_id for message_id in order if message_id in known]
