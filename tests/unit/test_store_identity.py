"""Generated message ids, and how they differ from those of hosts."""

from hypothesis import given
from hypothesis import strategies as st

from sidecar.store.records import made_up, new_tag, number_in


@given(st.integers(1, (1 << 40) - 1))
def test_the_number_of_a_made_up_id_is_read_back(number: int) -> None:
    assert number_in("k3f9x2ab", made_up("k3f9x2ab", number)) == number


@given(st.text(max_size=20))
def test_nothing_else_reads_as_a_made_up_id(ending: str) -> None:
    number = number_in("k3f9x2ab", f"k3f9x2ab{ending}")
    assert number is None or made_up("k3f9x2ab", number) == f"k3f9x2ab{ending}"


def test_an_id_of_another_session_has_no_number_here() -> None:
    assert number_in("k3f9x2ab", "aaaaaaaa-1") is None


def test_tags_are_short_and_differ() -> None:
    tags = {new_tag() for _ in range(1000)}
    assert len(tags) == 1000
    assert {len(tag) for tag in tags} == {8}
    assert all(tag.isalnum() and tag.islower() for tag in tags if not tag.isdigit())
