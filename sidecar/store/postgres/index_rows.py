"""How the blocks of the search index lie in rows: neighbours share one, deflated where that saves something.

A row of its own costs a block about 70 bytes beside its content. A row has the key of its first block; what
is in it beside that follows from what the row says. So the row with a block is the last one whose key is not
above that of the block.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import accumulate

from sidecar.store.indexing.segments import Blocks
from sidecar.store.indexing.spelling import unpacked

Key = tuple[int, int]
"""Segment and number of a block."""

_WANTED = 1_800
"""Bytes of a row, about: what is not larger than 2,000 fills pages well, and needs no room outside."""
_MOST = 5_000
"""Bytes of blocks in a row before they are deflated, all of which is read for one of them."""
_WORTH = 0.94
"""What is deflated must not be larger than this share, or it is kept as it is."""
REGION = 14
"""Blocks whose numbers differ in front of so many bits are of different kinds, and share no row."""
_PLAIN, _DEFLATED = b"\0", b"\1"
_RAW_DEFLATE = -15


def block_id(segment: int, number: int) -> int:
    """The key under which a block is kept."""
    return segment << 16 | number


def key_of(block: int) -> Key:
    """The block that a key stands for."""
    return block >> 16, block & 0xFFFF


def rows_of(segment: int, blocks: Blocks) -> Iterator[tuple[int, bytes]]:
    """The rows with these blocks of a segment, whose numbers rise.

    Raises:
        ValueError: the numbers do not rise, so that blocks would not be found again.
    """
    row: Blocks = []
    size = 0
    room = _WANTED
    last = -1
    for number, content in blocks:
        if number <= last:
            raise ValueError(f"block {number} of segment {segment} comes behind block {last}")
        if row and (size + len(content) > room or number >> REGION != last >> REGION):
            packed = _packed(row)
            yield block_id(segment, row[0][0]), packed
            room = min(_MOST, _WANTED * size // len(packed))
            row, size = [], 0
        row.append((number, content))
        size += len(content)
        last = number
    if row:
        yield block_id(segment, row[0][0]), _packed(row)


def blocks_in(row: int, content: bytes) -> list[tuple[Key, bytes]]:
    """The blocks in the row with this key, `unpacked`."""
    segment, _ = key_of(row)
    packed = content[1:] if content[:1] == _PLAIN else zlib.decompress(content[1:], _RAW_DEFLATE)
    (count,) = struct.unpack_from("<H", packed)
    numbers = struct.unpack_from(f"<{count}H", packed, 2)
    sizes = struct.unpack_from(f"<{count}I", packed, 2 + 2 * count)
    start = 2 + 6 * count
    ends = accumulate(sizes, initial=start)
    return [
        ((segment, number), unpacked(number, packed[begin : begin + size]))
        for number, size, begin in zip(numbers, sizes, ends, strict=False)
    ]


def _packed(blocks: Sequence[tuple[int, bytes]]) -> bytes:
    count = len(blocks)
    numbers, contents = zip(*blocks, strict=True)
    head = struct.pack(f"<H{count}H{count}I", count, *numbers, *map(len, contents))
    plain = b"".join((head, *contents))
    deflated = zlib.compress(plain, 1, _RAW_DEFLATE)
    return _DEFLATED + deflated if len(deflated) < _WORTH * len(plain) else _PLAIN + plain
