import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from sidecar.client import UnexpectedAnswer, apply_edits
from sidecar.client.messages import REMEMBERED_SESSIONS, AnswerMemory, Basis
from sidecar.protocol.assemble import MessageEdit

MESSAGES = st.lists(st.integers(0, 3), max_size=12)


def raws(numbers: list[int]) -> list[Raw]:
    return [Raw(b'{"role":"user","content":%d}' % number) for number in numbers]


def bodies(messages: list[Raw]) -> list[bytes]:
    return [bytes(message) for message in messages]


@st.composite
def edits_of(draw: st.DrawFn, length: int) -> list[MessageEdit]:
    """Ascending edits of a list of that length."""
    edits: list[MessageEdit] = []
    position = 0
    for _ in range(draw(st.integers(0, 4))):
        if position > length:
            break
        start = draw(st.integers(position, length))
        count = draw(st.integers(0, length - start))
        edits.append(MessageEdit(start=start, delete_count=count, messages=raws(draw(MESSAGES))))
        position = start + count
    return edits


@given(st.data(), MESSAGES)
def test_edits_do_what_splicing_from_the_end_does(data: st.DataObject, numbers: list[int]) -> None:
    edits = data.draw(edits_of(len(numbers)))
    expected = raws(numbers)
    for edit in reversed(edits):
        expected[edit.start : edit.start + edit.delete_count] = edit.messages
    assert bodies(apply_edits(raws(numbers), edits)) == bodies(expected)


def test_the_previous_list_stays_unchanged() -> None:
    previous = raws([1, 2])
    apply_edits(previous, [MessageEdit(start=0, delete_count=2, messages=[])])
    assert bodies(previous) == bodies(raws([1, 2]))


@pytest.mark.parametrize(
    "edits",
    [
        [MessageEdit(start=3, delete_count=0, messages=[])],
        [MessageEdit(start=1, delete_count=2, messages=[])],
        [
            MessageEdit(start=1, delete_count=1, messages=[]),
            MessageEdit(start=0, delete_count=1, messages=[]),
        ],
    ],
)
def test_edits_that_do_not_fit_are_refused(edits: list[MessageEdit]) -> None:
    with pytest.raises(UnexpectedAnswer):
        apply_edits(raws([1, 2]), edits)


def test_the_number_of_remembered_sessions_is_limited() -> None:
    memory = AnswerMemory()
    for number in range(REMEMBERED_SESSIONS + 1):
        memory.keep(f"s{number}", Basis(f"r{number}", []))
    assert memory.basis("s0") is None
    assert memory.basis("s1") is not None
    memory.forget("s1")
    assert memory.basis("s1") is None
