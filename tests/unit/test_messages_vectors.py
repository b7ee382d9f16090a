"""The shared identity vectors hold for this implementation."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw, Struct

from sidecar.messages.alignment import StoredItem, TranscriptItem, align
from sidecar.messages.dialects import dialect
from sidecar.messages.identity import keys, leading_keys, size, stands_for

FOLDER = Path(__file__).parents[2] / "spec" / "vectors" / "identity"
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
    read = dialect(case.message_format).read
    stored: list[StoredItem] = []
    for kept in case.stored:
        reading = read(bytes(kept.message))
        host_id = kept.message_id if kept.given_by_host else None
        stored.append(StoredItem(kept.message_id, host_id, reading.inner_id, keys(reading)))
    readings = [read(bytes(seen.message)) for seen in case.transcript]
    transcript = [
        TranscriptItem(seen.message_id or stands_for(r), r.inner_id, keys(r), size(r))
        for seen, r in zip(case.transcript, readings, strict=True)
    ]
    found = align(
        stored,
        transcript,
        whole=case.transcript_is == "whole",
        leading_keys=lambda index: leading_keys(readings[index]),
    )
    assert [None if index is None else stored[index].message_id for index in found] == case.expected


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_vector_is_well_formed(file: Path) -> None:
    case = json.loads(file.read_text())
    order = [kept["messageId"] for kept in case["stored"]]
    known = [message_id for message_id in case["expected"] if message_id is not None]
    assert len(case["expected"]) == len(case["transcript"])
    assert known == [message_id for message_id in order if message_id in known]
