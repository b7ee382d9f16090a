"""Alignment finds known messages in order, and mistakes no new message for a known one."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.messages.alignment import StoredItem, TranscriptItem, align, common_subsequence, rising
from sidecar.messages.contract import IdentityKeys

NOTHING = IdentityKeys(0, 0, 0)


def stored(place: int, text: int, *, stamp: int = 0, call: int = 0, inner: str | None = None) -> StoredItem:
    return StoredItem(f"m{place}", None, inner, IdentityKeys(call, stamp and hash((stamp, text)), text))


def seen(
    text: int, *, stamp: int = 0, call: int = 0, inner: str | None = None, size: int = 40
) -> TranscriptItem:
    return TranscriptItem(None, inner, IdentityKeys(call, stamp and hash((stamp, text)), text), size)


def history(texts: list[int]) -> list[StoredItem]:
    return [stored(place, text) for place, text in enumerate(texts)]


few = st.integers(1, 4)
texts = st.lists(st.one_of(few, few, st.integers(1, 1000)), max_size=30)
stamps = st.sampled_from([0, 0, 7, 8, 9])
inners = st.sampled_from([None, None, "r1", "r2"])
anything_stored = st.lists(st.tuples(few, stamps, few, inners), max_size=20).map(
    lambda rows: [stored(n, t, stamp=s, call=c % 3, inner=i) for n, (t, s, c, i) in enumerate(rows)]
)
anything_seen = st.lists(
    st.builds(lambda t, s, c, i: seen(t, stamp=s, call=c % 3, inner=i), few, stamps, few, inners), max_size=20
)


@given(anything_stored, anything_seen, st.booleans(), st.booleans())
def test_matches_ascend_and_none_is_used_twice(
    kept: list[StoredItem], transcript: list[TranscriptItem], whole: bool, from_start: bool
) -> None:
    found = align(kept, transcript, whole=whole, from_start=from_start)
    matched = [index for index in found if index is not None]
    assert len(found) == len(transcript)
    assert all(before < after for before, after in pairwise(matched))
    assert all(0 <= index < len(kept) for index in matched)


@given(anything_stored, anything_seen, st.booleans())
def test_matched_messages_share_a_fingerprint(
    kept: list[StoredItem], transcript: list[TranscriptItem], whole: bool
) -> None:
    for item, index in zip(transcript, align(kept, transcript, whole=whole), strict=True):
        if index is not None:
            same = kept[index]
            assert (
                item.keys.text == same.keys.text
                or item.keys.call == same.keys.call
                or (item.inner_id is not None and item.inner_id == same.inner_id)
            )


@given(texts)
def test_an_identical_transcript_is_known_whole(words: list[int]) -> None:
    assert align(history(words), [seen(text, size=1) for text in words]) == list(range(len(words)))


@given(texts, st.integers(0, 30))
def test_new_messages_after_a_known_transcript_stay_new(words: list[int], count: int) -> None:
    transcript = [seen(text, size=1) for text in words] + [seen(-n - 1) for n in range(count)]
    assert align(history(words), transcript) == [*range(len(words)), *[None] * count]


@given(st.integers(1, 40), st.data())
def test_messages_that_the_host_lacks_do_not_disturb_the_rest(count: int, data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, count - 1))))
    transcript = [seen(place + 1) for place in places]
    assert align(history([place + 1 for place in range(count)]), transcript) == places


@given(texts, st.integers(0, 30))
def test_a_transcript_without_its_beginning_ends_as_the_history(words: list[int], dropped: int) -> None:
    rest = words[dropped:]
    found = align(history(words), [seen(text) for text in rest], from_start=dropped == 0)
    assert not rest or found[-1] == len(words) - 1


@given(st.lists(few, min_size=1, max_size=20), st.lists(few, min_size=1, max_size=20))
def test_a_turn_with_other_time_stamps_is_new_whatever_it_says(old: list[int], new: list[int]) -> None:
    kept = [stored(place, text, stamp=place + 1) for place, text in enumerate(old)]
    transcript = [seen(text, stamp=1000 + place) for place, text in enumerate(new)]
    assert align(kept, transcript, whole=False) == [None] * len(new)


@given(st.lists(few, min_size=1, max_size=20), st.integers(0, 19))
def test_time_stamps_place_repeated_texts(words: list[int], dropped: int) -> None:
    kept = [stored(place, text, stamp=place + 1) for place, text in enumerate(words)]
    transcript = [seen(text, stamp=place + 1) for place, text in enumerate(words)][dropped:]
    assert align(kept, transcript) == list(range(len(words)))[dropped:]


def test_an_id_wins_over_the_text() -> None:
    kept = [stored(0, 5), stored(1, 6)]
    transcript = [TranscriptItem("m1", None, IdentityKeys(0, 0, 5), 40)]
    assert align(kept, transcript) == [1]


def test_ids_that_cross_keep_as_many_as_possible() -> None:
    kept = history([1, 2, 3, 4])
    ids = ["m3", "m0", "m1", "m2"]
    transcript = [TranscriptItem(name, None, NOTHING) for name in ids]
    assert align(kept, transcript) == [None, 0, 1, 2]


def test_an_inner_id_finds_an_edited_message() -> None:
    kept = [stored(0, 1), stored(1, 2, inner="r1"), stored(2, 3)]
    transcript = [seen(1), seen(99, inner="r1"), seen(3)]
    assert align(kept, transcript) == [0, 1, 2]


def test_two_inner_ids_are_two_messages() -> None:
    kept = [stored(0, 1, inner="r1")]
    assert align(kept, [seen(1, inner="r2")]) == [None]


def test_an_inner_id_that_a_provider_uses_again_does_not_decide() -> None:
    kept = [stored(0, 1, inner="same"), stored(1, 2), stored(2, 3, inner="same")]
    transcript = [seen(2), seen(3, inner="same"), seen(4), seen(5, inner="same")]
    assert align(kept, transcript) == [1, 2, None, None]


def test_a_shortened_result_is_found_next_to_its_call() -> None:
    kept = [stored(0, 1, call=11), stored(1, 2, call=12), stored(2, 3)]
    transcript = [seen(1, call=11), seen(99, call=12), seen(3)]
    assert align(kept, transcript) == [0, 1, 2]


def test_a_call_id_used_again_in_a_new_turn_is_a_new_call() -> None:
    kept = [stored(0, 1), stored(1, 2, call=11), stored(2, 3, call=12)]
    piece = [seen(4), seen(5, call=11), seen(6, call=12)]
    assert align(kept, piece, whole=False) == [None, None, None]


def test_synthetic_messages_are_passed_over() -> None:
    kept = history([1, 2, 3])
    synthetic = TranscriptItem(None, None, NOTHING)
    transcript = [synthetic, seen(1, size=1), seen(2, size=1), synthetic, seen(3, size=1)]
    assert align(kept, transcript) == [None, 0, 1, None, 2]


def test_a_piece_that_repeats_older_messages_is_new() -> None:
    assert align(history([1, 2, 3]), [seen(1), seen(2)], whole=False) == [None, None]


def test_a_piece_is_known_as_far_as_it_overlaps_the_end() -> None:
    assert align(history([1, 2, 3]), [seen(2), seen(3), seen(4)], whole=False) == [1, 2, None]


def test_a_merged_message_is_found_by_its_beginning() -> None:
    kept = history([1, 2, 3, 4])
    beginnings = {1: [IdentityKeys(0, 0, 2)]}
    found = align(kept, [seen(1), seen(99), seen(4)], leading_keys=lambda index: beginnings.get(index, []))
    assert found == [0, 1, 3]


def test_ten_thousand_messages_with_two_texts_are_aligned() -> None:
    words = [1 + place % 2 for place in range(10_000)]
    transcript = [seen(99), *[seen(text) for text in words[1:]]]
    assert align(history(words), transcript) == [None, *range(1, 10_000)]


@settings(max_examples=50)
@given(st.lists(st.integers(0, 30), unique=True, max_size=12))
def test_a_rising_subsequence_is_as_long_as_any(values: list[int]) -> None:
    chosen = [values[position] for position in rising(values)]
    best = [0] * len(values)
    for i, value in enumerate(values):
        best[i] = 1 + max((best[j] for j in range(i) if values[j] < value), default=0)
    assert chosen == sorted(chosen)
    assert len(chosen) == max(best, default=0)


@settings(max_examples=80)
@given(st.lists(few, max_size=12), st.lists(few, max_size=12))
def test_a_common_subsequence_is_as_long_as_any(columns: list[int], rows: list[int]) -> None:
    matches = [sum(1 << c for c, value in enumerate(columns) if value == row) for row in rows]
    pairs = common_subsequence(len(columns), matches)
    table = [[0] * (len(columns) + 1) for _ in range(len(rows) + 1)]
    for r, row in enumerate(rows):
        for c, column in enumerate(columns):
            table[r + 1][c + 1] = table[r][c] + 1 if row == column else max(table[r][c + 1], table[r + 1][c])
    assert all(rows[r] == columns[c] for r, c in pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))
    assert len(pairs) == table[-1][-1]


@pytest.mark.parametrize("seed", range(5))
def test_edits_drops_and_additions_together_leave_most_of_a_long_transcript_known(seed: int) -> None:
    chance = random.Random(seed)
    words = [chance.choice([1, 2, 3]) if chance.random() < 0.4 else 10 + place for place in range(600)]
    transcript: list[TranscriptItem] = []
    truth: list[int | None] = []
    for place, text in enumerate(words):
        luck = chance.random()
        if luck < 0.1:
            continue
        transcript.append(seen(-place - 1 if luck < 0.15 else text))
        truth.append(None if luck < 0.15 else place)
    found = align(history(words), transcript)
    wrong = sum(1 for a, b in zip(found, truth, strict=True) if a is not None and b is not None and a != b)
    missed = sum(1 for a, b in zip(found, truth, strict=True) if a is None and b is not None)
    assert wrong + missed < len(transcript) * 0.05
