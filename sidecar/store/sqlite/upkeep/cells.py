"""The rows in a page of a SQLite table, read without SQLite and without trust in what they say."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from sidecar.store.sqlite.upkeep.pages import PageFile

Value = int | float | str | bytes | None

_LEAF = 0x0D
_HEADER = 8
_CELL_POINTER = 2
_WIDTHS = (0, 1, 2, 3, 4, 6, 8)
"""Bytes of integers, by their serial type."""


class Cell(NamedTuple):
    """A row of a table."""

    row_id: int
    values: list[Value]


def rows_of(file: PageFile, number: int) -> Iterator[Cell | None]:
    """The rows of a page, if it is one of a table; `None` for one that cannot be read."""
    page = file.page(number)
    start = 100 if number == 1 else 0
    if page is None or page[start] != _LEAF:
        return
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    pointers = start + _HEADER
    if pointers + count * _CELL_POINTER > file.usable:
        return
    for index in range(count):
        yield row_at(file, page, int.from_bytes(page[pointers + 2 * index : pointers + 2 * index + 2], "big"))


def row_at(file: PageFile, page: bytes, offset: int) -> Cell | None:
    """The row whose cell begins there, `None` where there is none that can be read."""
    try:
        size, offset = _varint(page, offset)
        row_id, offset = _varint(page, offset)
        payload = _payload(file, page, offset, size)
        return None if payload is None else Cell(_signed(row_id), _values(payload))
    except (IndexError, ValueError, struct.error):
        return None


def _payload(file: PageFile, page: bytes, offset: int, size: int) -> bytes | None:
    """The bytes of a row, with those on the pages that it overflows to."""
    usable = file.usable
    most = usable - 35
    if size <= most:
        found = page[offset : offset + size]
        return found if len(found) == size else None
    if size > file.count * usable:
        return None
    least = (usable - 12) * 32 // 255 - 23
    local = least + (size - least) % (usable - 4)
    local = local if local <= most else least
    parts = [page[offset : offset + local]]
    left = size - local
    following = int.from_bytes(page[offset + local : offset + local + 4], "big")
    while left > 0:
        overflow = file.page(following)
        if overflow is None:
            return None
        parts.append(overflow[4 : 4 + min(left, usable - 4)])
        left -= len(parts[-1])
        following = int.from_bytes(overflow[:4], "big")
    return b"".join(parts)


def _values(payload: bytes) -> list[Value]:
    end, offset = _varint(payload, 0)
    if not offset <= end <= len(payload):
        raise ValueError("the header of the row is too long")
    kinds: list[int] = []
    while offset < end:
        kind, offset = _varint(payload, offset)
        kinds.append(kind)
    values: list[Value] = []
    for kind in kinds:
        value, offset = _value(payload, offset, kind)
        values.append(value)
    return values


def _value(payload: bytes, offset: int, kind: int) -> tuple[Value, int]:
    if kind >= 12:
        end = offset + (kind - 12) // 2
        raw = payload[offset:end]
        if end > len(payload):
            raise ValueError("the row is too short")
        return (raw.decode("utf-8", "surrogatepass") if kind % 2 else raw), end
    if kind in (8, 9):
        return kind - 8, offset
    if kind == 7:
        return struct.unpack(">d", payload[offset : offset + 8])[0], offset + 8
    if kind == 0:
        return None, offset
    end = offset + _WIDTHS[kind]
    if end > len(payload):
        raise ValueError("the row is too short")
    return int.from_bytes(payload[offset:end], "big", signed=True), end


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = 0
    for count in range(9):
        byte = data[offset + count]
        if count == 8:
            return value << 8 | byte, offset + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, offset + count + 1
    raise AssertionError


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
