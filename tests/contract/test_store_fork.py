"""Sessions that share their beginnings."""

import pytest

from sidecar.store.contract import (
    AddSummary,
    Configure,
    Delete,
    Facts,
    Fork,
    MessageMissing,
    SaveState,
    SessionExists,
    SessionMissing,
    SessionRef,
    SessionSettings,
    SummaryNode,
    Truncate,
)
from tests.store_kit import REF, Driver, reply, user

CHILD = SessionRef("host", "child")
OTHER = SessionRef("host", "other")
GRANDCHILD = SessionRef("host", "grandchild")


def node(node_id: str, first: int, last: int) -> SummaryNode:
    return SummaryNode(
        node_id=node_id,
        first_position=first,
        last_position=last,
        text="t",
        tokens=1,
        quality="q",
        created_ms=1,
    )


def test_a_fork_starts_with_the_messages_of_its_parent(store: Driver) -> None:
    store.append(REF, "a", reply("b"), user("c", message_id="host", turn_id="x"))
    head = store.write(Fork(REF, CHILD, None))
    assert store.messages(CHILD) == store.messages(REF)
    assert (head.message_count, head.turn_count, head.message_format) == (3, 2, "openai")


def test_a_fork_may_end_at_a_message_in_the_middle(store: Driver) -> None:
    ids = [item.message_id for item in store.append(REF, "a", reply("b"), "c").items]
    assert store.write(Fork(REF, CHILD, ids[1])).message_count == 2
    store.append(CHILD, "d")
    assert (store.texts(CHILD), store.turns(CHILD)) == (["a", "b", "d"], ["t1", "t1", "t2"])


def test_parent_and_fork_go_their_own_ways(store: Driver) -> None:
    store.append(REF, "a", "b")
    store.write(Fork(REF, CHILD, None))
    store.append(REF, "parent")
    store.append(CHILD, "child", user("again", message_id="m"))
    assert store.texts(REF) == ["a", "b", "parent"]
    assert store.texts(CHILD) == ["a", "b", "child", "again"]
    assert set(store.ids(REF)) & set(store.ids(CHILD)) == set(store.ids(REF)[:2])


def test_messages_before_the_fork_are_known_to_the_child_by_their_ids(store: Driver) -> None:
    store.append(REF, user("a", message_id="host"), "b", reply("c", inner_id="inner"), "late")
    ids = store.ids(REF)
    store.write(Fork(REF, CHILD, ids[2]))
    result = store.append(
        CHILD, user("-", message_id="host"), user("-", message_id=ids[1]), reply("-", inner_id="inner")
    )
    assert [(item.stored, item.position) for item in result.items] == [(False, 1), (False, 2), (False, 3)]
    assert store.run(store.store.message(CHILD, ids[3])) is None
    assert store.append(CHILD, user("own", message_id=ids[3])).items[0].stored


def test_a_message_that_the_parent_got_later_is_none_of_the_childs(store: Driver) -> None:
    store.append(REF, "a")
    store.write(Fork(REF, CHILD, None))
    late = store.append(REF, reply("late", message_id="late", inner_id="inner")).items[0]
    store.append(CHILD, "b", "c")
    assert store.run(store.store.message(CHILD, "late")) is None
    added = store.append(CHILD, reply("own", message_id=late.message_id), reply("own", inner_id="inner"))
    assert [item.stored for item in added.items] == [True, True]


def test_an_id_made_up_for_a_parent_that_is_gone_is_still_none_of_the_hosts(store: Driver) -> None:
    store.append(REF, reply("a", inner_id="inner"))
    store.write(Fork(REF, CHILD, None))
    store.write(Delete(REF))
    assert not store.append(CHILD, reply("a", message_id="m", inner_id="inner")).items[0].stored


def test_forks_of_forks_read_through_all_of_them(store: Driver) -> None:
    store.append(REF, "a", "b")
    previous = REF
    for depth in range(6):
        fork = SessionRef("host", f"fork-{depth}")
        store.write(Fork(previous, fork, None))
        store.append(fork, f"f{depth}")
        previous = fork
    assert store.texts(previous) == ["a", "b", *(f"f{depth}" for depth in range(6))]
    assert [m.body for m in store.messages(previous, 2, 4)] == [b"b", b"f0", b"f1"]
    assert store.run(store.store.turn_start(previous, 4)) == 4


def test_what_a_fork_has_outlives_truncation_of_its_parent(store: Driver) -> None:
    ids = [item.message_id for item in store.append(REF, "a", "b", "c", "d").items]
    for child, end in ((CHILD, ids[2]), (OTHER, ids[3])):
        store.write(Fork(REF, child, end))
        store.append(child, "own")
    before = (store.messages(CHILD), store.messages(OTHER))
    assert store.write(Truncate(REF, ids[0])) == 3
    store.append(REF, "new")
    assert store.texts(REF) == ["a", "new"]
    assert (store.messages(CHILD), store.messages(OTHER)) == before


def test_what_forks_have_outlives_deletion_of_their_parent(store: Driver) -> None:
    ids = [item.message_id for item in store.append(REF, "a", user("b", facts=Facts(7, 0, 0, 0)), "c").items]
    for child, end in ((CHILD, ids[0]), (OTHER, ids[2])):
        store.write(Fork(REF, child, end))
        store.append(child, "own")
    store.write(Fork(OTHER, GRANDCHILD, None))
    before = [store.messages(ref) for ref in (CHILD, OTHER, GRANDCHILD)]
    assert store.write(Delete(REF)) is True
    assert [store.messages(ref) for ref in (CHILD, OTHER, GRANDCHILD)] == before
    keyed = store.run(store.store.keyed(GRANDCHILD, 1, 9))
    assert [row.facts and row.facts.tokens for row in keyed] == [None, 7, None, None]
    assert [row.host_id for row in keyed] == [None] * 4
    for message_id in ids:
        assert store.run(store.store.message(GRANDCHILD, message_id)) is not None


def test_deleting_every_session_of_a_family_in_turn_leaves_the_rest_whole(store: Driver) -> None:
    store.append(REF, *"abcdef")
    ids = store.ids(REF)
    store.write(Fork(REF, CHILD, ids[3]))
    store.append(CHILD, "c1", "c2")
    store.write(Fork(CHILD, GRANDCHILD, ids[1]))
    store.write(Fork(CHILD, OTHER, None))
    store.append(OTHER, "o")
    left = {ref: store.messages(ref) for ref in (REF, GRANDCHILD, CHILD, OTHER)}
    for ref in (CHILD, REF, OTHER, GRANDCHILD):
        del left[ref]
        store.write(Delete(ref))
        assert {other: store.messages(other) for other in left} == left
    assert store.run(store.store.sessions(None, 10, None)) == ([], None)


def test_truncating_a_fork_into_the_shared_part_leaves_the_parent_alone(store: Driver) -> None:
    ids = [item.message_id for item in store.append(REF, "a", "b", "c").items]
    store.write(Fork(REF, CHILD, None))
    store.append(CHILD, "d")
    store.write(Fork(CHILD, GRANDCHILD, None))
    store.write(Truncate(CHILD, ids[0]))
    store.append(CHILD, "e")
    assert store.texts(REF) == ["a", "b", "c"]
    assert store.texts(CHILD) == ["a", "e"]
    assert store.texts(GRANDCHILD) == ["a", "b", "c", "d"]


def test_an_empty_session_can_be_forked(store: Driver) -> None:
    store.append(REF)
    assert store.write(Fork(REF, CHILD, None)).message_count == 0
    store.append(CHILD, "a")
    assert store.texts(REF) == []


def test_summaries_that_end_in_the_shared_part_come_along(store: Driver) -> None:
    added = store.append(REF, "a", "b", "c")
    for first, last in ((1, 2), (2, 3)):
        store.write(AddSummary(REF, node(f"n{last}", first, last), revision=added.head.revision))
    store.write(Fork(REF, CHILD, added.items[1].message_id))
    assert store.run(store.store.summaries(CHILD)) == [node("n2", 1, 2)]
    store.write(Delete(REF))
    assert store.run(store.store.summaries(CHILD)) == [node("n2", 1, 2)]


def test_state_and_settings_come_along_and_then_part(store: Driver) -> None:
    store.append(REF, "a")
    store.write(SaveState(REF, "pins", b"1"))
    store.write(Configure("host", "session", "main", engine="full", config=b"{}"))
    store.write(Configure("host", "session", "child", engine="terse"))
    store.write(Fork(REF, CHILD, None))
    store.write(SaveState(REF, "pins", b"2"))
    assert store.run(store.store.state(CHILD, "pins")) == b"1"
    assert store.run(store.store.settings("host", "session", "child")) == SessionSettings("terse", b"{}")


def test_a_fork_is_its_parents_agents(store: Driver) -> None:
    store.append(REF, "a")
    assert store.write(Fork(REF, CHILD, None, agent_id="ann")).agent_id == "ann"
    with pytest.raises(SessionMissing):
        store.write(Fork(REF, OTHER, None, agent_id="bob"))
    assert store.run(store.store.session(OTHER)) is None


def test_forks_that_cannot_be_made_are_refused(store: Driver) -> None:
    store.append(REF, "a")
    with pytest.raises(SessionExists):
        store.write(Fork(REF, REF, None))
    with pytest.raises(MessageMissing):
        store.write(Fork(REF, CHILD, "nowhere"))
    with pytest.raises(SessionMissing):
        store.write(Fork(OTHER, CHILD, None))
    assert store.run(store.store.session(CHILD)) is None
