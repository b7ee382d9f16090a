"""Segments: shelves in the form in which a store keeps them, made from messages or from smaller ones."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from sidecar.store.indexing.blocks import (
    APART_BLOCKS,
    APART_BYTES,
    LENGTHS_BLOCK,
    MOST_BITS,
    bits_for,
    block_of,
    decode_block,
    decode_places,
    encode_block,
    encode_places,
    find_encoded,
    frequency_of,
    join_places,
    kept_apart,
    place_apart,
)
from sidecar.store.indexing.gathering import Gathered
from sidecar.store.indexing.shelf import NOWHERE, Places, Shelf
from sidecar.store.indexing.spelling import blocks_to_read, joint_vocabulary, vocabulary_blocks, words_with

FORMAT = 3
"""Raised with every change of what is indexed or how; what was indexed before is then indexed anew."""

_BLOCK = 1_000
"""Bytes of places that are wanted in a block."""

_AT_ONCE = 500
"""Terms that are worked on between two chances to do something else."""
_SOURCES_AT_ONCE = 8

Blocks = list[tuple[int, bytes]]
"""Blocks by their numbers."""


class Segment(NamedTuple):
    """What is noted of a segment beside its blocks."""

    segment: int
    """Given by the store, and never given again."""
    session: int
    """The uid of the owner of its messages."""
    first: int
    size: int
    """How many messages: at most 65,535."""
    term_bits: int
    total: int
    """The sum of the lengths that the length codes stand for."""
    earliest_ms: int
    latest_ms: int
    bundle: int = 0
    """The segment in whose blocks the places are, among those of other sessions; 0 where they are in its own,
    negative while they are copied into those."""
    start: int = 0
    """The ordinal there of its first message."""

    @property
    def behind(self) -> int:
        """The position behind its last message."""
        return self.first + self.size


class SegmentShelf:
    """`Shelf` over the blocks of a segment.

    Where reading is slow, `fetch` is told in advance which blocks are about to be read.
    """

    def __init__(
        self,
        segment: Segment,
        read: Callable[[int, int], bytes | None],
        read_stamps: Callable[[int, int, int], list[int]],
        fetch: Callable[[list[tuple[int, int]]], None] | None = None,
    ) -> None:
        self.first = segment.first
        self.count = segment.size
        self.fetch = fetch
        self._segment = segment
        self._number = segment.bundle if segment.bundle > 0 else segment.segment
        self._read = read
        self._read_stamps = read_stamps
        self._found: dict[str, bytes] = {}

    def blocks(self, terms: Iterable[str]) -> list[tuple[int, int]]:
        """The blocks that tell where the terms occur, and the one with the lengths."""
        number, bits = self._number, self._segment.term_bits
        return [(number, LENGTHS_BLOCK), *((number, block_of(term, bits)) for term in terms)]

    def places(self, term: str) -> Places:
        """See `Shelf`."""
        encoded = self._encoded(term)
        apart = place_apart(encoded)
        if apart is not None:
            encoded = self._read(self._number, apart) or b""
        return Places(*decode_places(encoded)) if encoded else NOWHERE

    def frequency(self, term: str) -> int:
        """See `Shelf`."""
        return frequency_of(self._encoded(term))

    def lengths(self) -> Sequence[int]:
        """See `Shelf`."""
        return self._read(self._number, LENGTHS_BLOCK) or b""

    def total_length(self) -> int:
        """See `Shelf`."""
        return self._segment.total

    def stamps(self, low: int, high: int) -> Sequence[int]:
        """See `Shelf`."""
        return self._read_stamps(self._segment.session, self.first + low, self.first + high - 1)

    def time_span(self) -> tuple[int, int]:
        """See `Shelf`."""
        return self._segment.earliest_ms, self._segment.latest_ms

    def words(self, part: str, *, opens: bool, closes: bool) -> tuple[list[str], bool]:
        """See `Shelf`."""
        if self.fetch is not None:
            self.fetch([(self._number, number) for number in blocks_to_read(part)])
        return words_with(self._number, self._read, part, opens=opens, closes=closes)

    def _encoded(self, term: str) -> bytes:
        found = self._found.get(term)
        if found is None:
            block = self._read(self._number, block_of(term, self._segment.term_bits))
            found = self._found[term] = b"" if block is None else find_encoded(block, term)
        return found


def expect(shelves: Iterable[Shelf], terms: Sequence[str]) -> None:
    """Fetch in one go what is about to be read of these terms."""
    fetch = None
    wanted: list[tuple[int, int]] = []
    for shelf in shelves:
        if isinstance(shelf, SegmentShelf) and shelf.fetch is not None:
            fetch = shelf.fetch
            wanted += shelf.blocks(terms)
    if fetch is not None:
        fetch(wanted)


def segment_of(gathered: Gathered, session: int) -> Segment:
    """What is to be noted of a segment with these messages."""
    places = sum(2 * len(ordinals) for ordinals in gathered.ordinals.values())
    size = places + sum(len(term) + 4 for term in gathered.ordinals)
    bits = bits_for(size, _BLOCK)
    return Segment(
        0, session, gathered.first, gathered.count, bits, gathered.total_length(), *gathered.time_span()
    )


def blocks_of(gathered: Gathered, segment: Segment) -> Iterator[Blocks]:
    """The blocks of a segment with these messages, some at a time."""
    by_block: dict[int, dict[str, bytes]] = {}
    apart = _Apart()
    for index, (term, ordinals) in enumerate(gathered.ordinals.items()):
        places = apart.put(encode_places(ordinals, gathered.counts.get(term, b"")))
        by_block.setdefault(block_of(term, segment.term_bits), {})[term] = places
        if index % _AT_ONCE == _AT_ONCE - 1:
            yield []
    for number in sorted(by_block):
        yield [(number, encode_block(by_block[number]))]
    yield from vocabulary_blocks(gathered.spelled())
    yield from apart.taken()
    yield [(LENGTHS_BLOCK, bytes(gathered.length_codes))]


def merged(segments: Sequence[Segment]) -> Segment:
    """What is to be noted of one segment with the messages of these, one behind the other."""
    first = segments[0]
    return Segment(
        0,
        first.session,
        first.first,
        sum(each.size for each in segments),
        _joint_bits(each.term_bits for each in segments),
        sum(each.total for each in segments),
        min(each.earliest_ms for each in segments),
        max(each.latest_ms for each in segments),
    )


def merged_blocks(
    segments: Sequence[Segment], target: Segment, read: Callable[[int, int], bytes | None]
) -> Iterator[Blocks]:
    """The blocks of the merged segment, some at a time."""
    bits = max(segment.term_bits for segment in segments)
    starts = starts_of(segments)
    apart = _Apart()
    for part in range(1 << bits):
        found: dict[str, list[tuple[int, bytes]]] = {}
        for index, segment in enumerate(segments):
            block = read(segment.segment, part >> (bits - segment.term_bits))
            for term, places in () if block is None else decode_block(block):
                if segment.term_bits == bits or block_of(term, bits) == part:
                    number = place_apart(places)
                    whole = places if number is None else read(segment.segment, number) or b"\0"
                    found.setdefault(term, []).append((starts[index], whole))
            if index % _SOURCES_AT_ONCE == _SOURCES_AT_ONCE - 1:
                yield []
        by_block: dict[int, dict[str, bytes]] = {}
        for index, (term, places) in enumerate(found.items()):
            by_block.setdefault(block_of(term, target.term_bits), {})[term] = apart.put(join_places(places))
            if index % _AT_ONCE == _AT_ONCE - 1:
                yield []
        for number in sorted(by_block):
            yield [(number, encode_block(by_block[number]))]
    yield from joint_vocabulary([segment.segment for segment in segments], read)
    yield from apart.taken()
    yield [(LENGTHS_BLOCK, b"".join(read(each.segment, LENGTHS_BLOCK) or b"" for each in segments))]


def starts_of(segments: Sequence[Segment]) -> list[int]:
    """The ordinals that their first messages get when they are merged."""
    return [0, *accumulate(segment.size for segment in segments)][:-1]


class _Apart:
    """Places that are so many that they have a block of their own."""

    def __init__(self) -> None:
        self._numbers = iter(range(APART_BLOCKS, LENGTHS_BLOCK))
        self._waiting: Blocks = []

    def put(self, encoded: bytes) -> bytes:
        """What goes into the block of the term."""
        number = next(self._numbers, None) if len(encoded) >= APART_BYTES else None
        if number is None:
            return encoded
        self._waiting.append((number, encoded))
        return kept_apart(number, encoded)

    def taken(self) -> Iterator[Blocks]:
        """The blocks with the places that were put since."""
        waiting, self._waiting = self._waiting, []
        for block in waiting:
            yield [block]


def _joint_bits(bits: Iterable[int]) -> int:
    """As many blocks as there were, or half of that: what segments share is then there once."""
    return min(MOST_BITS, sum(1 << each for each in bits).bit_length() - 1)
