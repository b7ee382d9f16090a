"""Segments keep what was gathered, also after they were merged."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.store.indexing import building
from sidecar.store.indexing.blocks import Block, encode_block
from sidecar.store.indexing.building import blocks_of, segment_of
from sidecar.store.indexing.gathering import Gathered
from sidecar.store.indexing.merging import merged, merged_blocks
from sidecar.store.indexing.places import ROUNDED, decode_places, encode_places, frequency_of
from sidecar.store.indexing.segments import Blocks, Segment, SegmentShelf
from sidecar.store.indexing.spelling import unpacked
from sidecar.store.records import MessageRow
from sidecar.store.search import Searchable

WORDS = st.sampled_from(
    [f"word{index}" for index in range(80)]
    + ["苹果", "苹", "果", "果园苹果", "苹好", "𠀀𠀁好", "fooBar", "a_b", "x" * 70, "swordfish", "1207"]
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
        content = self.blocks.get((segment, number))
        return None if content is None else unpacked(number, content)

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
    for term in [*gathered.ordinals, "nowhere", "\x01role u", "\x01tool bash", *"苹果园好𠀀无"]:
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
    st.sampled_from([1, 256]),
)
def test_a_segment_holds_what_was_gathered_and_a_merged_one_what_its_parts_held(
    portions: list[list[str]], first: int, apart_bytes: int, many_pairs: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "APART_BYTES", apart_bytes)
        patch.setattr(building, "_MANY_PAIRS", many_pairs)
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
    target = merged(made, kept.read)
    joined = kept.keep(target, list(merged_blocks(made, target, kept.read)))
    same(kept.shelf(joined), gather(first, [text for texts in portions for text in texts]))


COUNTS = st.integers(1, 255).map(lambda count: ROUNDED[count])


@given(st.sets(st.integers(0, 65_534), min_size=1), st.data())
def test_places_survive_encoding(ordinals: set[int], data: st.DataObject) -> None:
    counts = data.draw(st.just([]) | st.lists(COUNTS, min_size=len(ordinals), max_size=len(ordinals)))
    encoded = encode_places(sorted(ordinals), bytes(counts))
    found = decode_places(encoded)
    assert list(found.ordinals) == sorted(ordinals)
    assert list(found.counts) == counts
    assert frequency_of(encoded) == len(ordinals)


@pytest.mark.parametrize("counts", [b"", bytes([7]) * 65_535], ids=["once", "often"])
@pytest.mark.parametrize("ordinals", [range(65_535), range(1, 65_535, 3), range(64_000, 65_000)])
def test_long_lists_of_places_survive_encoding(ordinals: range, counts: bytes) -> None:
    encoded = encode_places(ordinals, counts[: len(ordinals)])
    found = decode_places(encoded)
    assert list(found.ordinals) == list(ordinals)
    assert bytes(found.counts) == counts[: len(ordinals)]
    assert frequency_of(encoded) == len(ordinals)


@pytest.mark.parametrize("ordinal", [0, 255, 256, 65_533])
def test_terms_of_all_kinds_are_found_in_a_block_and_others_are_not(ordinal: int) -> None:
    singles = {"one": ordinal, "é": 3, "苹果": ordinal, "果": 1, "𠀀𠀁": 2}
    listed = {
        term: encode_places([ordinal // 2, ordinal + 1], bytes([2, 1]))
        for term in ("two", "\x01role u", "苹好", "苹", "好\x01")
    }
    block = Block(encode_block(singles, listed))
    assert dict(block.singles()) == singles
    assert dict(block.listed()) == listed
    for term, single in singles.items():
        assert list(decode_places(block.find(term)).ordinals) == [single]
    for term, places in listed.items():
        assert block.find(term) == places
    for absent in ("on", "ne", "苹园", "园", "园园", "好", "𠀀", "role u", "one\n"):
        assert block.find(absent) == b""


def test_an_empty_block_has_nothing() -> None:
    block = Block(encode_block({}, {}))
    assert block.find("one") == block.find("苹果") == b""
    assert list(block.singles()) == list(block.listed()) == []
