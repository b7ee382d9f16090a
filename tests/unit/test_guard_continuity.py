"""The epoch stays while answers extend each other, over restarts too, and rises otherwise."""

from hypothesis import given
from hypothesis import strategies as st

from sidecar.engine.guard.continuity import Continuity

LISTS = st.lists(st.lists(st.sampled_from([b"a", b"b", b"ab", b""]), max_size=5), min_size=1, max_size=8)


@given(lists=LISTS, restarts=st.lists(st.booleans(), min_size=8, max_size=8))
def test_the_epoch_rises_exactly_where_an_answer_does_not_extend_the_one_before(
    lists: list[list[bytes]], restarts: list[bool]
) -> None:
    continuity = Continuity(None)
    before: list[bytes] | None = None
    epoch = 0
    for messages, restart in zip(lists, restarts, strict=False):
        if restart and before is not None:
            continuity = Continuity(continuity.encoded())
        extends = before is not None and messages[: len(before)] == before
        assert continuity.advance(messages, "s") is not extends
        epoch += not extends
        assert continuity.record.epoch == epoch
        before = messages


def test_another_signature_begins_an_epoch() -> None:
    continuity = Continuity(None)
    assert continuity.advance([b"a"], "full")
    assert continuity.advance([b"a"], "default")
    assert not Continuity(continuity.encoded()).advance([b"a", b"b"], "default")
    assert Continuity(continuity.encoded()).advance([b"a", b"b"], "full")


def test_a_record_that_lags_behind_still_continues() -> None:
    continuity = Continuity(None)
    continuity.advance([b"a"], "s")
    kept = continuity.encoded()
    continuity.advance([b"a", b"b"], "s")
    assert not Continuity(kept).advance([b"a", b"b", b"c"], "s")
