"""Messages that are stored in front of others."""

import pytest

from sidecar.store.contract import AddSummary, Facts, Fork, MessageMissing, SessionRef, SummaryNode, Truncate
from tests.store_kit import REF, Driver, reply, user

CHILD = SessionRef("host", "child")


def test_a_message_goes_behind_the_position_it_names(store: Driver) -> None:
    store.append(REF, "a", "b", "c")
    result = store.append(REF, reply("x", after=2))
    assert store.texts(REF) == ["a", "b", "x", "c"]
    assert result.items[0].position == 3
    assert result.head.message_count == 4


def test_positions_mean_the_order_before_the_write(store: Driver) -> None:
    store.append(REF, "a", "b", "c")
    result = store.append(
        REF,
        reply("end"),
        reply("2x", after=2),
        reply("0x", after=0),
        reply("2y", after=2),
        reply("3x", after=3),
    )
    assert store.texts(REF) == ["0x", "a", "b", "2x", "2y", "c", "3x", "end"]
    assert [item.position for item in result.items] == [8, 4, 1, 5, 7]


def test_ids_stay_with_their_messages(store: Driver) -> None:
    store.append(REF, "a", user("b", message_id="host"), "c")
    before = dict(zip(store.texts(REF), store.ids(REF), strict=True))
    store.append(REF, reply("x", after=1))
    store.append(REF, "d", reply("y", after=0))
    after = dict(zip(store.texts(REF), store.ids(REF), strict=True))
    assert {text: after[text] for text in before} == before
    assert len(set(after.values())) == 6
    for text, message_id in after.items():
        found = store.run(store.store.message(REF, message_id))
        assert found is not None
        assert found.body == text.encode()


def test_an_inserted_message_joins_the_turn_it_follows(store: Driver) -> None:
    store.append(REF, "a", reply("b"), user("c", turn_id="named"), reply("d"), "e")
    store.append(REF, user("x", after=1), user("y", after=3), user("z", after=0))
    assert dict(zip(store.texts(REF), store.turns(REF), strict=True)) == {
        "z": "t1", "a": "t1", "x": "t1", "b": "t1", "c": "named", "y": "named", "d": "named", "e": "t3",
    }  # fmt: skip


def test_behind_the_last_message_is_the_end_without_a_new_turn(store: Driver) -> None:
    head = store.append(REF, "a").head
    result = store.append(REF, user("b", after=1))
    assert (result.items[0].turn_id, result.head.revision) == ("t1", head.revision)


def test_the_first_message_may_name_a_place_too(store: Driver) -> None:
    store.append(REF, user("a", after=0), user("b", after=0))
    assert store.texts(REF) == ["a", "b"]


def test_the_revision_rises_where_messages_move(store: Driver) -> None:
    head = store.append(REF, "a", "b").head
    assert store.append(REF, reply("x", after=1)).head.revision > head.revision


def test_doubles_are_recognised_and_told_their_new_position(store: Driver) -> None:
    store.append(REF, "a", user("b", message_id="m"))
    result = store.append(
        REF,
        reply("x", after=1, message_id="n"),
        user("b", message_id="m"),
        reply("y", message_id="n", after=0),
    )
    assert [(item.stored, item.position) for item in result.items] == [(True, 2), (False, 3), (False, 2)]
    assert result.items[2].existing == b"x"
    assert store.texts(REF) == ["a", "x", "b"]


def test_doubles_by_inner_id_within_a_write_follow_the_same_rule(store: Driver) -> None:
    store.append(REF, "a", "b")
    result = store.append(
        REF,
        reply("x", after=1, inner_id="i"),
        reply("y", after=1, inner_id="i", message_id="m1"),
        reply("z", after=1, inner_id="j", message_id="m2"),
        reply("w", after=1, inner_id="j", message_id="m3"),
    )
    assert [item.stored for item in result.items] == [True, False, True, True]


@pytest.mark.parametrize("after", [-1, 3])
def test_a_place_that_is_not_there_is_refused_without_effect(store: Driver, after: int) -> None:
    store.append(REF, "a", "b")
    with pytest.raises(MessageMissing):
        store.append(REF, "c", reply("x", after=after), advancement_key="k")
    assert store.texts(REF) == ["a", "b"]
    assert not store.run(store.store.advancement_known(REF, "k"))


def test_a_place_in_a_session_that_is_not_there_makes_no_session(store: Driver) -> None:
    with pytest.raises(MessageMissing):
        store.append(REF, reply("x", after=1))
    assert store.run(store.store.session(REF)) is None


def test_summaries_follow_the_messages_they_cover(store: Driver) -> None:
    revision = store.append(REF, *"abcdef").head.revision
    for node_id, first, last in (("low", 1, 2), ("across", 3, 4), ("high", 5, 6)):
        node = SummaryNode(
            node_id=node_id,
            first_position=first,
            last_position=last,
            text="",
            tokens=1,
            quality="",
            created_ms=0,
        )
        store.write(AddSummary(REF, node, revision=revision))
    store.append(REF, reply("x", after=3), reply("y", after=3))
    nodes = store.run(store.store.summaries(REF))
    assert [(n.node_id, n.first_position, n.last_position) for n in nodes] == [
        ("low", 1, 2),
        ("across", 3, 6),
        ("high", 7, 8),
    ]


def test_facts_stay_with_their_messages(store: Driver) -> None:
    store.append(REF, user("a", facts=Facts(1, 0, 0, 0)), user("b", facts=Facts(2, 0, 0, 0)))
    store.append(REF, reply("x", after=1, facts=Facts(9, 0, 0, 0)))
    keyed = store.run(store.store.keyed(REF, 1, 3))
    assert [row.facts and row.facts.tokens for row in keyed] == [1, 9, 2]


def test_a_fork_keeps_what_it_had_when_its_parent_is_put_into(store: Driver) -> None:
    store.append(REF, "a", "b", "c")
    store.write(Fork(REF, CHILD, None))
    before = store.messages(CHILD)
    store.append(REF, reply("x", after=1))
    assert store.texts(REF) == ["a", "x", "b", "c"]
    assert store.messages(CHILD) == before


def test_a_parent_keeps_what_it_had_when_its_fork_is_put_into(store: Driver) -> None:
    store.append(REF, "a", "b", "c")
    store.write(Fork(REF, CHILD, None))
    before = store.messages(REF)
    ids = store.ids(CHILD)
    store.append(CHILD, reply("x", after=1))
    assert store.texts(CHILD) == ["a", "x", "b", "c"]
    assert [store.ids(CHILD)[index] for index in (0, 2, 3)] == ids
    assert store.messages(REF) == before


def test_ids_are_not_used_again_after_insertion_and_truncation(store: Driver) -> None:
    store.append(REF, "a", "b", "c")
    store.append(REF, reply("x", after=1))
    seen = set(store.ids(REF))
    store.write(Truncate(REF, None))
    store.append(REF, *"defgh")
    assert not seen & set(store.ids(REF))
