"""Segments made from messages: what is noted of them, with the blocks that hold their terms."""

from collections.abc import Iterator, Mapping, Sequence

from sidecar.store.indexing.blocks import APART_BLOCKS, APART_BYTES, LENGTHS_BLOCK, bits_for, encode_block
from sidecar.store.indexing.gathering import Gathered
from sidecar.store.indexing.keys import ANYWHERE, block_of, is_pair
from sidecar.store.indexing.places import encode_places, kept_apart
from sidecar.store.indexing.segments import Blocks, Segment
from sidecar.store.indexing.spelling import vocabulary_blocks

BLOCK_BYTES = 1_400
"""Bytes that are wanted in a block at most, about: not few, as each has a head, nor so many that what is left
over of a page is much."""
_PAIR_SIZE = 4
_MANY_PAIRS = 256
"""Pairs from which it is noted where their first character is."""
_AT_ONCE = 500
"""Terms that are worked on between two chances to do something else."""


def segment_of(gathered: Gathered, session: int) -> Segment:
    """What is to be noted of a segment with these messages."""
    size = sum(
        (_PAIR_SIZE if is_pair(term) else len(term) + 2) + len(ordinals)
        for term, ordinals in gathered.ordinals.items()
    )
    bits = bits_for(size, BLOCK_BYTES)
    return Segment(
        0, session, gathered.first, gathered.count, bits, gathered.total_length(), *gathered.time_span()
    )


def blocks_of(gathered: Gathered, segment: Segment) -> Iterator[Blocks]:
    """The blocks of a segment with these messages, some at a time."""
    apart = Apart()
    yield from term_blocks(gathered.ordinals, gathered.counts, segment.term_bits, apart)
    yield from vocabulary_blocks(gathered.spelled())
    yield from apart.taken()
    yield [(LENGTHS_BLOCK, bytes(gathered.length_codes))]


def term_blocks(
    ordinals: Mapping[str, Sequence[int]], counts: Mapping[str, bytearray], bits: int, apart: "Apart"
) -> Iterator[Blocks]:
    """Blocks with these terms, some at a time; what they hold of many places waits in `apart`."""
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


class Apart:
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
