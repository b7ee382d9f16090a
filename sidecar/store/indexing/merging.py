"""Segments made from smaller ones that are one behind the other."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from sidecar.store.indexing.blocks import LENGTHS_BLOCK, Block, bits_for
from sidecar.store.indexing.building import BLOCK_BYTES, Apart, term_blocks
from sidecar.store.indexing.keys import ANYWHERE, block_of, is_pair
from sidecar.store.indexing.places import decode_places, place_apart
from sidecar.store.indexing.segments import Blocks, Segment
from sidecar.store.indexing.spelling import joint_vocabulary

_SOURCES_AT_ONCE = 8

Read = Callable[[int, int], bytes | None]
"""Reads a block by its segment and number, `unpacked`."""


def merged(segments: Sequence[Segment], read: Read) -> Segment:
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
        max(bits, bits_for(size, BLOCK_BYTES)),
        sum(each.total for each in segments),
        min(each.earliest_ms for each in segments),
        max(each.latest_ms for each in segments),
    )


def merged_blocks(segments: Sequence[Segment], target: Segment, read: Read) -> Iterator[Blocks]:
    """The blocks of the merged segment, some at a time."""
    bits = max(segment.term_bits for segment in segments)
    apart = Apart()
    for part in range(1 << bits):
        joined = _Joined()
        for done in joined.add_all(segments, bits, part, read):
            if done % _SOURCES_AT_ONCE == 0:
                yield []
        yield from term_blocks(joined.ordinals, joined.counts, target.term_bits, apart)
    yield from joint_vocabulary([segment.segment for segment in segments], read)
    yield from apart.taken()
    yield [(LENGTHS_BLOCK, b"".join(read(each.segment, LENGTHS_BLOCK) or b"" for each in segments))]


def starts_of(segments: Sequence[Segment]) -> list[int]:
    """The ordinals that their first messages get when they are merged."""
    return [0, *accumulate(segment.size for segment in segments)][:-1]


def _sampled(segments: Sequence[Segment], bits: int, part: int, read: Read) -> Iterator[bytes]:
    """The blocks with a part of the terms, as they would be."""
    joined = _Joined()
    for _ in joined.add_all(segments, bits, part, read):
        pass
    for blocks in term_blocks(joined.ordinals, joined.counts, bits, Apart()):
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
        read: Read,
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
