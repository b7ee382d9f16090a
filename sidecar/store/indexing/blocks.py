"""How terms with their places, and vocabularies, are laid out in the blocks that a store keeps.

A term's block is chosen by the leading bits of a checksum. A block has the size of its list of terms, the
terms, each behind a line break, where the places of each end, and the places of all. Of a term that is in
very many messages it has their number only; the places have a block of their own, which is read when needed.
"""

import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

LENGTHS_BLOCK = 0xFFFF
"""The number of the block with the length codes."""
VOCABULARY_BLOCKS = 0x8000
"""The number of the first block with words as they are spelled; blocks with places come before."""
APART_BLOCKS = 0xC000
"""The number of the first block with the places of one term."""
APART_BYTES = 4096
"""Places from this size on are kept apart."""
MOST_BITS = 15


class DecodedPlaces(NamedTuple):
    """`Places` as they were kept."""

    ordinals: "array[int]"
    counts: bytes


_HEAD = 5
_SINGLY = 0
_COUNTED = 1
_APART = 2


def block_of(term: str, bits: int) -> int:
    """Which of 2 ** `bits` blocks a term is in."""
    return crc32(term.encode()) >> (32 - bits)


def bits_for(size: int, wanted: int) -> int:
    """The bits that make blocks of about `wanted` bytes, of content of this size."""
    return min(MOST_BITS, max(0, (size // wanted).bit_length()))


def encode_places(ordinals: Sequence[int], counts: bytes | bytearray) -> bytes:
    """The places of a term; `counts` is empty where all are 1."""
    if len(ordinals) == 1 and not counts:
        return b"\0" + ordinals[0].to_bytes(2, "little")
    listed = _bytes_of(array("H", ordinals))
    return b"\1" + listed + counts if counts else b"\0" + listed


def decode_places(encoded: bytes) -> DecodedPlaces:
    """What `encode_places` encoded."""
    if encoded[0] == _SINGLY:
        return DecodedPlaces(_array_of("H", encoded[1:]), b"")
    size = (len(encoded) - 1) // 3
    return DecodedPlaces(_array_of("H", encoded[1 : 1 + 2 * size]), encoded[1 + 2 * size :])


def join_places(found: list[tuple[int, bytes]]) -> bytes:
    """The places of one term on neighbouring shelves, with what is added to the ordinals of each."""
    ordinals: list[int] = []
    counts = bytearray()
    counted = False
    for offset, encoded in found:
        if len(encoded) == 3:
            ordinals.append(offset + encoded[1] + (encoded[2] << 8))
            counts.append(1)
            continue
        places = decode_places(encoded)
        ordinals += [ordinal + offset for ordinal in places.ordinals]
        counts += places.counts or b"\1" * len(places.ordinals)
        counted = counted or encoded[0] == _COUNTED
    return encode_places(ordinals, counts if counted else b"")


def encode_block(terms: Mapping[str, bytes]) -> bytes:
    """A block with the encoded places of its terms."""
    head = ("\n" + "\n".join(terms) + "\n").encode()
    ends: list[int] = []
    end = 0
    for places in terms.values():
        end += len(places)
        ends.append(end)
    kind = b"H" if end < 1 << 16 else b"I"
    listed = _bytes_of(array(kind.decode(), ends))
    return b"".join((kind, len(head).to_bytes(4, "little"), head, listed, *terms.values()))


def decode_block(block: bytes) -> list[tuple[str, bytes]]:
    """The terms of a block with their encoded places."""
    size, ends, start = _layout(block)
    terms = block[_HEAD + 1 : _HEAD + size - 1].decode().split("\n")
    found: list[tuple[str, bytes]] = []
    begin = 0
    for term, end in zip(terms, ends, strict=True):
        found.append((term, block[start + begin : start + end]))
        begin = end
    return found


def find_encoded(block: bytes, term: str) -> bytes:
    """The encoded places of a term that would be in this block, empty where it is not."""
    size = int.from_bytes(block[1:_HEAD], "little")
    at = block.find(b"\n%b\n" % term.encode(), _HEAD, _HEAD + size)
    if at < 0:
        return b""
    index = block.count(b"\n", _HEAD, at)
    _, ends, start = _layout(block)
    return block[start + (ends[index - 1] if index else 0) : start + ends[index]]


def frequency_of(encoded: bytes) -> int:
    """How many messages a term is in, by its encoded places."""
    if not encoded:
        return 0
    if encoded[0] == _APART:
        return int.from_bytes(encoded[3:5], "little")
    return (len(encoded) - 1) // (3 if encoded[0] == _COUNTED else 2)


def kept_apart(number: int, encoded: bytes) -> bytes:
    """What stands in the block of a term whose places are in the block with this number."""
    return b"\2" + number.to_bytes(2, "little") + frequency_of(encoded).to_bytes(2, "little")


def place_apart(encoded: bytes) -> int | None:
    """The number of the block with the places, `None` where these are the places."""
    return int.from_bytes(encoded[1:3], "little") if encoded[:1] == b"\2" else None


def _layout(block: bytes) -> tuple[int, "array[int]", int]:
    size = int.from_bytes(block[1:_HEAD], "little")
    kind = chr(block[0])
    head = block[_HEAD : _HEAD + size]
    start = _HEAD + size + (head.count(b"\n") - 1) * (2 if kind == "H" else 4)
    return size, _array_of(kind, block[_HEAD + size : start]), start


def _array_of(kind: str, content: bytes) -> "array[int]":
    found = array(kind, content)
    if sys.byteorder == "big":
        found.byteswap()
    return found


def _bytes_of(numbers: "array[int]") -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
