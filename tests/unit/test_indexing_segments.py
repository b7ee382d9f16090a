"""Segments keep what was gathered, also after they were merged."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.store.indexing import segments
from sidecar.store.indexing.blocks import (
    decode_block,
    decode_places,
    encode_block,
    encode_places,
    find_encoded,
)
from sidecar.store.indexing.gathering import Gathered
from sidecar.store.indexing.segments import (
    Blocks,
    Segment,
    SegmentShelf,
    blocks_of,
    merged,
    merged_blocks,
    segment_of,
)
from sidecar.store.records import MessageRow
from sidecar.store.search import Searchable

WORDS = st.sampled_from(
    [f"word{index}" for index in range(80)] + ["苹果", "fooBar", "a_b", "x" * 70, "swordfish", "1207"]
)
TEXTS = st.lists(WORDS, max_size=9).map(" ".join)


class Kept:
    """Blocks of segments in a dictionary."""

    def __init__(self) -> None:
        self.blocks: dict[tuple[int, int], bytes] = {}
        self.count = 0

    def keep(self, segment: Segment, steps: Sequence[Blocks]) -> Segment:
        self.count += 1
        numbers = [number for blocks in steps for number, _ in blocks]
        assert len(numbers) == len(set(numbers))
        for blocks in steps:
            self.blocks.update(((self.count, number), content) for number, content in blocks)
        return segment._replace(segment=self.count)

    def read(self, segment: int, number: int) -> bytes | None:
        return self.blocks.get((segment, number))

    def shelf(self, segment: Segment) -> SegmentShelf:
        return SegmentShelf(segment, self.read, lambda uid, first, last: [])


def gather(first: int, texts: Sequence[str]) -> Gathered:
    gathered = Gathered(first)
    for number, text in enumerate(texts, first):
        row = MessageRow(number, 1, number, number, "u", 1000 + number, 0, None, None, None, None, b"")
        gathered.add(row, Searchable(text, ("bash",)))
    return gathered


def same(shelf: SegmentShelf, gathered: Gathered) -> None:
    assert (shelf.first, shelf.count) == (gathered.first, gathered.count)
    assert bytes(shelf.lengths()) == bytes(gathered.lengths())
    assert shelf.total_length() == gathered.total_length()
    assert shelf.time_span() == gathered.time_span()
    for term in [*gathered.ordinals, "nowhere", "\x01role u", "\x01tool bash"]:
        found, wanted = shelf.places(term), gathered.places(term)
        assert list(found.ordinals) == list(wanted.ordinals), term
        assert list(found.counts) == list(wanted.counts), term
        assert shelf.frequency(term) == gathered.frequency(term) == len(wanted.ordinals), term
    for part, opens, closes in (
        ("wor", True, False),
        ("7", False, True),
        ("ord1", False, False),
        ("ordf", False, False),
        ("苹", False, False),
    ):
        found_words, complete = shelf.words(part, opens=opens, closes=closes)
        wanted_words, also = gathered.words(part, opens=opens, closes=closes)
        assert (sorted(found_words), complete) == (sorted(wanted_words), also)


@settings(deadline=None)
@given(
    st.lists(st.lists(TEXTS, min_size=1, max_size=30), min_size=1, max_size=6),
    st.integers(1, 10_000),
    st.sampled_from([5, 20, 4096]),
)
def test_a_segment_holds_what_was_gathered_and_a_merged_one_what_its_parts_held(
    portions: list[list[str]], first: int, apart_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "APART_BYTES", apart_bytes)
        gather_and_merge(portions, first)


def gather_and_merge(portions: list[list[str]], first: int) -> None:
    kept = Kept()
    made: list[Segment] = []
    position = first
    for texts in portions:
        gathered = gather(position, texts)
        segment = segment_of(gathered, 1)
        made.append(kept.keep(segment, list(blocks_of(gathered, segment))))
        same(kept.shelf(made[-1]), gathered)
        position += len(texts)
    target = merged(made)
    joined = kept.keep(target, list(merged_blocks(made, target, kept.read)))
    same(kept.shelf(joined), gather(first, [text for texts in portions for text in texts]))


def test_long_lists_of_places_survive_encoding() -> None:
    everywhere = encode_places(range(65_535), bytes([7]) * 65_535)
    terms = {"all": everywhere, "one": encode_places([65_534], b""), "é": encode_places([0, 9], b"")}
    block = encode_block(terms)
    assert dict(decode_block(block)) == terms
    everywhere = decode_places(find_encoded(block, "all"))
    assert list(everywhere.ordinals) == list(range(65_535))
    assert set(everywhere.counts) == {7}
    assert list(decode_places(find_encoded(block, "one")).ordinals) == [65_534]
    assert list(decode_places(find_encoded(block, "é")).ordinals) == [0, 9]
    assert find_encoded(block, "al") == find_encoded(block, "ll") == b""
