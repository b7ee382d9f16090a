"""How the places of one term are encoded: short for few of them, decoded in few steps for very many.

The first byte tells the form. Ordinals are single bytes while all are below 256, otherwise two bytes each; of
many only the lower bytes are kept, behind how many there are with each higher one. Behind the ordinals stand
the counts, two in a byte, unless all are 1.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from operator import mul
from typing import NamedTuple, overload

_WIDE, _NARROW, _BY_HIGHER_BYTE, _APART = range(4)
_FORM = 3
_COUNTED = 4
_FULL = 8
"""All 256 ordinals with some higher byte are there: numbers of ordinals take two bytes."""
_MANY = 2
"""Ordinals for each higher byte from which only their lower bytes are kept."""
_KEPT_COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 64, 128, 255)
ROUNDED = bytes(max(kept for kept in _KEPT_COUNTS if kept <= max(count, 1)) for count in range(256))
"""What is kept of each count."""
_TO_DIGIT = "".join(f"{_KEPT_COUNTS.index(count):x}" for count in ROUNDED).encode()
_FROM_DIGIT = bytes.maketrans(b"0123456789abcdef", bytes(_KEPT_COUNTS))
_BYTES = [bytes((number,)) for number in range(256)]


class PackedCounts(Sequence[int]):
    """Counts, two in a byte, which are unpacked when all of them are looked at."""

    def __init__(self, packed: bytes, size: int) -> None:
        self._packed = packed
        self._size = size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> bytes: ...
    def __getitem__(self, index: int | slice) -> int | bytes:
        if isinstance(index, slice):
            return self._all()[index]
        both = self._packed[index >> 1]
        return _KEPT_COUNTS[both & 15 if index & 1 else both >> 4]

    def __iter__(self) -> Iterator[int]:
        return iter(self._all())

    def _all(self) -> bytes:
        return self._packed.hex().encode().translate(_FROM_DIGIT)[: self._size]


class DecodedPlaces(NamedTuple):
    """`Places` as they were kept."""

    ordinals: Sequence[int]
    counts: Sequence[int]


def encode_places(ordinals: Sequence[int], counts: bytes | bytearray) -> bytes:
    """The places of a term, of which there are some; `counts` are `ROUNDED`, empty where all are 1."""
    if ordinals[-1] < 256:
        form, listed = _NARROW, bytes(ordinals)
    else:
        numbers = array("H", ordinals)
        if len(ordinals) < _MANY * ((ordinals[-1] >> 8) - (ordinals[0] >> 8) + 1):
            form, listed = _WIDE, bytes_of(numbers)
        else:
            form, listed = _without_higher_bytes(numbers)
    if not counts:
        return _BYTES[form] + listed
    digits = counts.translate(_TO_DIGIT).decode()
    return _BYTES[form | _COUNTED] + listed + bytes.fromhex(digits if len(digits) % 2 == 0 else digits + "0")


def encode_place(ordinal: int) -> bytes:
    """The places of a term that occurs once."""
    return b"\1" + _BYTES[ordinal] if ordinal < 256 else b"\0" + ordinal.to_bytes(2, "little")


def decode_places(encoded: bytes) -> DecodedPlaces:
    """What `encode_places` encoded."""
    form = encoded[0] & _FORM
    size = frequency_of(encoded)
    if form == _NARROW:
        end = 1 + size
        ordinals: Sequence[int] = encoded[1:end]
    elif form == _WIDE:
        end = 1 + 2 * size
        ordinals = array_of("H", encoded[1:end])
    else:
        first, sizes, start = _higher_bytes(encoded)
        end = start + size
        whole = bytearray(2 * size)
        whole[0::2] = encoded[start:end]
        whole[1::2] = b"".join(map(mul, _BYTES[first : first + len(sizes)], sizes))
        ordinals = array_of("H", whole)
    return DecodedPlaces(ordinals, PackedCounts(encoded[end:], size) if encoded[0] & _COUNTED else b"")


class KeptPlaces:
    """Many places, looked at one by one without decoding the others."""

    def __init__(self, encoded: bytes) -> None:
        """`encoded` is of the form of which `is_many` says so."""
        self._encoded = encoded
        self._first, sizes, start = _higher_bytes(encoded)
        self._bounds = list(accumulate(sizes, initial=start))
        self._counts = PackedCounts(encoded[self._bounds[-1] :], self._bounds[-1] - start)

    def times(self, ordinal: int) -> int:
        """How often the term occurs in a message, 0 where it does not."""
        bounds = self._bounds
        index = (ordinal >> 8) - self._first
        if not 0 <= index < len(bounds) - 1:
            return 0
        at = self._encoded.find(ordinal & 255, bounds[index], bounds[index + 1])
        if at < 0:
            return 0
        return self._counts[at - bounds[0]] if self._encoded[0] & _COUNTED else 1

    def backwards(self) -> Iterator[int]:
        """The ordinals, from the last one on."""
        bounds = self._bounds
        for index in reversed(range(len(bounds) - 1)):
            higher = (self._first + index) << 8
            for lower in reversed(self._encoded[bounds[index] : bounds[index + 1]]):
                yield higher | lower


def is_many(encoded: bytes) -> bool:
    """Whether these places can be looked at as `KeptPlaces`."""
    return bool(encoded) and encoded[0] & _FORM == _BY_HIGHER_BYTE


def frequency_of(encoded: bytes) -> int:
    """How many messages a term is in, by its encoded places."""
    if not encoded:
        return 0
    form, counted = encoded[0] & _FORM, encoded[0] & _COUNTED
    if form == _NARROW:
        return (len(encoded) - 1) * 2 // 3 if counted else len(encoded) - 1
    if form == _WIDE:
        return (len(encoded) - 1) * 2 // 5 if counted else (len(encoded) - 1) // 2
    if form == _APART:
        return int.from_bytes(encoded[3:5], "little")
    return sum(_higher_bytes(encoded)[1])


def kept_apart(number: int, encoded: bytes) -> bytes:
    """What stands in the block of a term whose places are in the block with this number."""
    return _BYTES[_APART] + number.to_bytes(2, "little") + frequency_of(encoded).to_bytes(2, "little")


def place_apart(encoded: bytes) -> int | None:
    """The number of the block with the places, `None` where these are the places."""
    return int.from_bytes(encoded[1:3], "little") if encoded[:1] == b"\3" else None


def array_of(kind: str, content: bytes | bytearray) -> "array[int]":
    """Numbers as `bytes_of` kept them; `kind` is the type code of the array."""
    found = array(kind, content)
    if sys.byteorder == "big":
        found.byteswap()
    return found


def bytes_of(numbers: "array[int]") -> bytes:
    """Numbers, the lowest byte of each first."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def _without_higher_bytes(numbers: "array[int]") -> tuple[int, bytes]:
    first, last = numbers[0] >> 8, numbers[-1] >> 8
    bounds = [bisect_left(numbers, higher << 8) for higher in range(first, last + 1)] + [len(numbers)]
    sizes = [end - start for start, end in pairwise(bounds)]
    full = max(sizes) > 255
    listed = bytes_of(array("H" if full else "B", sizes))
    form = _BY_HIGHER_BYTE | _FULL if full else _BY_HIGHER_BYTE
    return form, bytes((first, last - first)) + listed + bytes_of(numbers)[0::2]


def _higher_bytes(encoded: bytes) -> tuple[int, Sequence[int], int]:
    """The first of them, how many ordinals there are with each, and where the lower bytes begin."""
    span = encoded[2] + 1
    if encoded[0] & _FULL:
        return encoded[1], array_of("H", encoded[3 : 3 + 2 * span]), 3 + 2 * span
    return encoded[1], encoded[3 : 3 + span], 3 + span
