"""Segments: shelves in the form in which a store keeps them."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from sidecar.store.indexing.blocks import LENGTHS_BLOCK, Block
from sidecar.store.indexing.keys import ANYWHERE, block_of, is_character
from sidecar.store.indexing.places import (
    KeptPlaces,
    decode_places,
    encode_places,
    frequency_of,
    is_many,
    place_apart,
)
from sidecar.store.indexing.shelf import NOWHERE, ListedPlaces, PlaceFinder, Places, Shelf
from sidecar.store.indexing.spelling import blocks_to_read, words_with

FORMAT = 5
"""Raised with every change of what is indexed or how; what was indexed before is then indexed anew."""

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


SEGMENT_COLUMNS = ", ".join(Segment._fields)
"""What stores with tables call the columns for it."""
QUALIFIED_COLUMNS = ", ".join(f"search_segments.{name}" for name in Segment._fields)


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
