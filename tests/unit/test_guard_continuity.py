"""The epoch stays while answers of a view extend each other, over restarts too, and rises otherwise."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from sidecar.engine.guard.continuity import KEPT_VIEWS, Continuity, ViewRecord

LISTS = st.lists(st.sampled_from([b"a", b"b", b"ab", b""]), max_size=5)
BUDGETS = st.sampled_from([70, 80, 100, 140, 1000, 2000])


def _view(continuity: Continuity, budget: int = 100) -> ViewRecord:
    return continuity.of(budget) or continuity.fresh(budget)


def _advance(continuity: Continuity, messages: list[bytes], signature: str = "s", budget: int = 100) -> bool:
    begun = continuity.advance(_view(continuity, budget), messages, signature)
    continuity.drop_oldest()
    return begun


@given(
    answers=st.lists(st.tuples(BUDGETS, LISTS), min_size=1, max_size=12),
    restarts=st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_the_epoch_rises_where_an_answer_does_not_extend_its_view_or_another_view_answers(
    answers: list[tuple[int, list[bytes]]], restarts: list[bool]
) -> None:
    continuity = Continuity(None)
    views: list[tuple[int, list[bytes], int]] = []
    epoch = 0
    for (budget, messages), restart in zip(answers, restarts, strict=False):
        if restart and views:
            continuity = Continuity(continuity.encoded())
        known = next((v for v in views if 4 * min(v[0], budget) >= 3 * max(v[0], budget)), None)
        extends = known is not None and messages[: len(known[1])] == known[1]
        stays = extends and known is views[0]
        assert _advance(continuity, messages, budget=budget) is not stays
        epoch += not stays
        assert continuity.record.epoch == epoch
        begun = known[2] if extends and known else epoch
        assert continuity.record.views[0].begun == begun, "when the answers of the view began"
        views = [v for v in views if v is not known]
        views = [(known[0] if known else budget, messages, begun), *views][:KEPT_VIEWS]
        assert [view.budget for view in continuity.record.views] == [view[0] for view in views]


def test_another_signature_begins_an_epoch() -> None:
    continuity = Continuity(None)
    assert _advance(continuity, [b"a"], "full")
    assert _advance(continuity, [b"a"], "default")
    assert not _advance(Continuity(continuity.encoded()), [b"a", b"b"], "default")
    assert _advance(Continuity(continuity.encoded()), [b"a", b"b"], "full")


def test_a_record_that_lags_behind_still_continues() -> None:
    continuity = Continuity(None)
    _advance(continuity, [b"a"])
    kept = continuity.encoded()
    _advance(continuity, [b"a", b"b"])
    assert not _advance(Continuity(kept), [b"a", b"b", b"c"])


def test_a_view_that_has_not_answered_does_not_count_as_the_newest() -> None:
    continuity = Continuity(None)
    _advance(continuity, [b"a"])
    answered = continuity.newest
    continuity.add(continuity.fresh(5000))
    assert continuity.newest is answered
    assert not _advance(continuity, [b"a", b"b"])


def test_a_record_from_before_there_were_views_keeps_its_epoch_and_name() -> None:
    continuity = Continuity(json.encode([7, 3, "chain", "signature", "name"]))
    assert (continuity.record.epoch, continuity.record.name) == (7, "name")
    assert _advance(continuity, [b"a"]) and continuity.record.epoch == 8
