"""Segments: shelves in the form in which a store keeps them, made from messages or from smaller ones."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from sidecar.store.indexing.blocks import (
    APART_BLOCKS,
    APART_BYTES,
    LENGTHS_BLOCK,
    Block,
    bits_for,
    encode_block,
)
from sidecar.store.indexing.gathering import Gathered
from sidecar.store.indexing.keys import ANYWHERE, block_of, is_character, is_pair
from sidecar.store.indexing.places import (
    KeptPlaces,
    decode_places,
    encode_places,
    frequency_of,
    is_many,
    kept_apart,
    place_apart,
)
from sidecar.store.indexing.shelf import NOWHERE, ListedPlaces, PlaceFinder, Places, Shelf
from sidecar.store.indexing.spelling import blocks_to_read, joint_vocabulary, vocabulary_blocks, words_with

FORMAT = 5
"""Raised with every change of what is indexed or how; what was indexed before is then indexed anew."""

_BLOCK = 1_400
"""Bytes that are wanted in a block at most, about: not few, as each has a head, nor so many that what is left
over of a page is much."""
_PAIR_SIZE = 4
_MANY_PAIRS = 256
"""Pairs from which it is noted where their first character is."""

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
        self._words: dict[tuple[str, bool, bool], tuple[list[str], bool]] = {}

    @property
    def segment(self) -> Segment:
        """What is noted of the segment."""
        return self._segment

    def blocks(self, terms: Iterable[str]) -> list[tuple[int, int]]:
        """The blocks that tell where the terms occur, and the one with the lengths."""
        number, bits = self._number, self._segment.term_bits
        return [(number, LENGTHS_BLOCK), *((number, block_of(term, bits)) for term in terms)]

    def places(self, term: str) -> Places:
        """See `Shelf`."""
        encoded = self._encoded(term)
        return Places(*decode_places(self._whole(encoded))) if encoded else NOWHERE

    def finder(self, term: str) -> PlaceFinder:
        """See `Shelf`."""
        encoded = self._whole(self._encoded(term))
        return KeptPlaces(encoded) if is_many(encoded) else ListedPlaces(self.places(term))

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
        key = part, opens, closes
        if key not in self._words:
            if self.fetch is not None:
                self.fetch([(self._number, number) for number in blocks_to_read(part)])
            self._words[key] = words_with(self._number, self._read, part, opens=opens, closes=closes)
        return self._words[key]

    def _encoded(self, term: str) -> bytes:
        found = self._found.get(term)
        if found is None:
            block = self._read(self._number, block_of(term, self._segment.term_bits))
            found = b"" if block is None else self._find(Block(block), term)
            self._found[term] = found
        return found

    def _find(self, block: Block, term: str) -> bytes:
        if not is_character(term):
            return block.find(term)
        everywhere = block.find(term + ANYWHERE)
        if everywhere:
            return everywhere
        once, others = block.beginning_with(term)
        holders = set(once).union(*(decode_places(self._whole(places)).ordinals for places in others))
        return encode_places(sorted(holders), b"") if holders else b""

    def _whole(self, encoded: bytes) -> bytes:
        apart = place_apart(encoded)
        return encoded if apart is None else self._read(self._number, apart) or b""


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
    size = sum(
        (_PAIR_SIZE if is_pair(term) else len(term) + 2) + len(ordinals)
        for term, ordinals in gathered.ordinals.items()
    )
    bits = bits_for(size, _BLOCK)
    return Segment(
        0, session, gathered.first, gathered.count, bits, gathered.total_length(), *gathered.time_span()
    )


def blocks_of(gathered: Gathered, segment: Segment) -> Iterator[Blocks]:
    """The blocks of a segment with these messages, some at a time."""
    apart = _Apart()
    yield from _term_blocks(gathered.ordinals, gathered.counts, segment.term_bits, apart)
    yield from vocabulary_blocks(gathered.spelled())
    yield from apart.taken()
    yield [(LENGTHS_BLOCK, bytes(gathered.length_codes))]


def merged(segments: Sequence[Segment], read: Callable[[int, int], bytes | None]) -> Segment:
    """What is to be noted of one segment with the messages of these, one behind the other."""
    first = segments[0]
    bits = max(segment.term_bits for segment in segments)
    parts = (0, (1 << bits) - 1)
    sample = sum(len(content) for part in parts for content in _sampled(segments, bits, part, read))
    size = sample * (1 << bits) // len(parts)
    return Segment(
        0,
        first.session,
        first.first,
        sum(each.size for each in segments),
        max(bits, bits_for(size, _BLOCK)),
        sum(each.total for each in segments),
        min(each.earliest_ms for each in segments),
        max(each.latest_ms for each in segments),
    )


def merged_blocks(
    segments: Sequence[Segment], target: Segment, read: Callable[[int, int], bytes | None]
) -> Iterator[Blocks]:
    """The blocks of the merged segment, some at a time."""
    bits = max(segment.term_bits for segment in segments)
    apart = _Apart()
    for part in range(1 << bits):
        joined = _Joined()
        for done in joined.add_all(segments, bits, part, read):
            if done % _SOURCES_AT_ONCE == 0:
                yield []
        yield from _term_blocks(joined.ordinals, joined.counts, target.term_bits, apart)
    yield from joint_vocabulary([segment.segment for segment in segments], read)
    yield from apart.taken()
    yield [(LENGTHS_BLOCK, b"".join(read(each.segment, LENGTHS_BLOCK) or b"" for each in segments))]


def _sampled(
    segments: Sequence[Segment], bits: int, part: int, read: Callable[[int, int], bytes | None]
) -> Iterator[bytes]:
    """The blocks with a part of the terms, as they would be."""
    joined = _Joined()
    for _ in joined.add_all(segments, bits, part, read):
        pass
    for blocks in _term_blocks(joined.ordinals, joined.counts, bits, _Apart()):
        yield from (content for _, content in blocks)


class _Joined:
    """The places of some terms on neighbouring shelves."""

    def __init__(self) -> None:
        self.ordinals: dict[str, list[int]] = {}
        self.counts: dict[str, bytearray] = {}
        """For terms that occur more than once in a message."""

    def add_all(
        self,
        segments: Sequence[Segment],
        bits: int,
        part: int,
        read: Callable[[int, int], bytes | None],
    ) -> Iterator[int]:
        """Add one of 2 ** `bits` parts of the terms, segment by segment; how many are done."""
        for done, (segment, start) in enumerate(zip(segments, starts_of(segments), strict=True), 1):
            content = read(segment.segment, part >> (bits - segment.term_bits))
            if content is not None:
                self._add(Block(content), start, lambda number, of=segment.segment: read(of, number) or b"")
            yield done
        if any(segment.term_bits < bits for segment in segments):
            for term in [term for term in self.ordinals if block_of(term, bits) != part]:
                del self.ordinals[term]

    def _add(self, block: Block, start: int, read_apart: Callable[[int], bytes]) -> None:
        every, counts = self.ordinals, self.counts
        for term, ordinal in block.singles():
            known = every.get(term)
            if known is None:
                every[term] = [start + ordinal]
                continue
            known.append(start + ordinal)
            if term in counts:
                counts[term].append(1)
        for term, encoded in block.listed():
            if term[-1] == ANYWHERE and is_pair(term):
                continue
            apart = place_apart(encoded)
            ordinals, counted = decode_places(encoded if apart is None else read_apart(apart))
            known = every.setdefault(term, [])
            if counted and term not in counts:
                counts[term] = bytearray(b"\1") * len(known)
            known += [start + ordinal for ordinal in ordinals]
            if term in counts:
                counts[term].extend(counted or b"\1" * len(ordinals))


def _term_blocks(
    ordinals: Mapping[str, Sequence[int]], counts: Mapping[str, bytearray], bits: int, apart: "_Apart"
) -> Iterator[Blocks]:
    """Blocks with these terms, some at a time."""
    by_block: dict[int, list[str]] = {}
    for term in ordinals:
        by_block.setdefault(block_of(term, bits), []).append(term)
    done = 0
    for number in sorted(by_block):
        terms = by_block[number]
        singles: dict[str, int] = {}
        listed: dict[str, bytes] = {}
        for term in terms:
            places = ordinals[term]
            if len(places) == 1 and term not in counts:
                singles[term] = places[0]
            else:
                listed[term] = apart.put(encode_places(places, counts.get(term, b"")))
            done += 1
            if done % _AT_ONCE == 0:
                yield []
        for character, holders in _frequent_characters(terms, ordinals):
            listed[character + ANYWHERE] = apart.put(encode_places(holders, b""))
        yield [(number, encode_block(singles, listed))]


def _frequent_characters(
    terms: Sequence[str], ordinals: Mapping[str, Sequence[int]]
) -> Iterator[tuple[str, list[int]]]:
    """The characters that begin very many pairs, with the ordinals of the messages that have them."""
    pairs: dict[str, list[str]] = {}
    for term in terms:
        if is_pair(term):
            pairs.setdefault(term[0], []).append(term)
    for character, found in pairs.items():
        if len(found) > _MANY_PAIRS:
            yield character, sorted(set[int]().union(*(ordinals[pair] for pair in found)))


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
