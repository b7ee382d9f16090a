"""Replaces members of raw JSON objects; everything else keeps its bytes."""

from __future__ import annotations

import msgspec
from msgspec import Raw

_object = msgspec.json.Decoder(dict[str, Raw])
_list = msgspec.json.Decoder(list[Raw])


def members(raw: bytes) -> dict[str, Raw] | None:
    """The members of a JSON object, each as its bytes; `None` where `raw` cannot be taken apart."""
    try:
        return _object.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        pass
    from sidecar.surrogates import mask

    try:
        return _object.decode(mask(raw))
    except (msgspec.DecodeError, RecursionError):
        return None


def items(raw: bytes) -> list[Raw] | None:
    """The items of a JSON array, each as its bytes; `None` where `raw` is none."""
    try:
        return _list.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def with_members(raw: bytes, changes: dict[str, bytes]) -> bytes:
    """The object `raw` with these members set to new JSON; order, other members and their bytes stay."""
    found = members(raw)
    if found is None:
        return raw
    for name, value in changes.items():
        found[name] = Raw(value)
    return msgspec.json.encode(found)


def with_items(values: list[Raw]) -> bytes:
    """A JSON array of these values."""
    return msgspec.json.encode(values)
