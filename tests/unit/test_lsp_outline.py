"""A transcript has an outline in any state of an edit."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.lsp.outline import turns
from tests.e2e.transcript_files import FILES

PIECES = st.sampled_from(
    ['"', "{", "}", "[", "]", ",", ":", "\\", "\n", "\r", "\\ud83d", "null", '"role"', "0", "é字😀", "\ufeff"]
)


@given(
    st.sampled_from(sorted(FILES)),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 60), PIECES), min_size=1, max_size=4),
)
def test_damage_anywhere_leaves_places_in_order(name: str, damage: list[tuple[float, int, str]]) -> None:
    text = FILES[name]
    for share, gone, piece in damage:
        start = int(share * len(text))
        text = text[:start] + piece + text[start + gone :]
    data = text.encode()
    spans = [entry.span for turn in turns(data) for entry in turn.entries]
    assert all(0 <= span.start < span.end <= len(data) for span in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_have_an_outline(data: bytes) -> None:
    turns(data)


@pytest.mark.parametrize("name", FILES)
def test_one_damaged_message_costs_no_more_than_itself(name: str) -> None:
    """The cut is inside one message's text, in the second half of the file."""
    text = FILES[name]
    whole = sum(len(turn.entries) for turn in turns(text.encode()))
    cut = text.index("Two files.")
    broken = text[:cut] + '"' + text[cut:]
    assert sum(len(turn.entries) for turn in turns(broken.encode())) == whole - 1
