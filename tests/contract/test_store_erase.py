"""`Truncate` and `Delete`, and what they leave."""

import pytest

from sidecar.store.contract import (
    AddSummary,
    Configure,
    Delete,
    Facts,
    MessageMissing,
    RecordAdvancement,
    SaveState,
    SessionMissing,
    SessionSettings,
    SummaryNode,
    Truncate,
)
from tests.store_kit import REF, Driver, user


def summary(node_id: str, first: int, last: int) -> SummaryNode:
    return SummaryNode(
        node_id=node_id,
        first_position=first,
        last_position=last,
        text="t",
        tokens=1,
        quality="q",
        created_ms=1,
    )


def test_truncation_removes_what_is_behind_a_message(store: Driver) -> None:
    ids = [item.message_id for item in store.append(REF, "a", "b", "c").items]
    assert store.write(Truncate(REF, ids[0])) == 2
    assert store.texts(REF) == ["a"]
    assert store.run(store.store.message(REF, ids[1])) is None


def test_truncation_without_a_message_removes_all(store: Driver) -> None:
    store.append(REF, "a", "b")
    assert store.write(Truncate(REF, None)) == 2
    head = store.run(store.store.session(REF))
    assert head is not None
    assert (head.message_count, head.turn_count) == (0, 0)


def test_truncation_behind_the_last_message_changes_nothing(store: Driver) -> None:
    added = store.append(REF, "a")
    assert store.write(Truncate(REF, added.items[0].message_id)) == 0
    assert store.run(store.store.session(REF)) == added.head


def test_ids_of_removed_messages_never_come_again(store: Driver) -> None:
    store.append(REF, "a", "b", "c")
    old = store.ids(REF)
    store.write(Truncate(REF, old[0]))
    store.append(REF, "d", "e", "f")
    new = store.ids(REF)
    assert set(old) & set(new) == {old[0]}
    assert [m.body for m in (store.run(store.store.message(REF, each)) for each in new) if m] == [
        b"a",
        b"d",
        b"e",
        b"f",
    ]


def test_a_host_id_may_be_used_again_after_its_message_was_removed(store: Driver) -> None:
    store.append(REF, "a", user("b", message_id="m"))
    store.write(Truncate(REF, store.ids(REF)[0]))
    assert store.append(REF, user("c", message_id="m")).items[0].stored


def test_truncation_raises_the_revision_and_removes_summaries_that_reach_behind(store: Driver) -> None:
    added = store.append(REF, *"abcd")
    for node in (summary("low", 1, 2), summary("high", 2, 3)):
        store.write(AddSummary(REF, node, revision=added.head.revision))
    store.write(Truncate(REF, added.items[1].message_id))
    assert [node.node_id for node in store.run(store.store.summaries(REF))] == ["low"]
    assert store.write(AddSummary(REF, summary("late", 1, 2), revision=added.head.revision)) is False


def test_truncation_at_an_unknown_message_is_refused(store: Driver) -> None:
    store.append(REF, "a")
    with pytest.raises(MessageMissing):
        store.write(Truncate(REF, "nowhere"))
    with pytest.raises(SessionMissing):
        store.write(Truncate(REF._replace(session_id="nobody"), None))


def test_another_agent_can_neither_truncate_nor_delete(store: Driver) -> None:
    store.append(REF, "a", agent_id="ann")
    with pytest.raises(SessionMissing):
        store.write(Truncate(REF, None, agent_id="bob"))
    with pytest.raises(SessionMissing):
        store.write(Delete(REF, agent_id="bob"))
    assert store.texts(REF) == ["a"]


def test_a_refused_write_binds_no_agent(store: Driver) -> None:
    store.append(REF, "a")
    with pytest.raises(MessageMissing):
        store.write(Truncate(REF, "nowhere", agent_id="bob"))
    assert store.append(REF, "b", agent_id="ann").head.agent_id == "ann"


def test_deletion_erases_everything_under_the_name(store: Driver) -> None:
    added = store.append(REF, user("a", facts=Facts(1, 2, 3, 4)), session_key="key", advancement_key="turn-1")
    store.write(AddSummary(REF, summary("n", 1, 1), revision=added.head.revision))
    store.write(SaveState(REF, "pins", b"1"))
    store.write(Configure("host", "session", "main", engine="full"))
    store.write(RecordAdvancement(REF, "turn-2"))
    assert store.write(Delete(REF)) is True
    reads = store.store
    assert store.run(reads.session(REF)) is None
    assert store.run(reads.session_by_key("host", "key")) is None
    assert store.run(reads.messages(REF, 1, 9)) == []
    assert store.run(reads.summaries(REF)) == []
    assert store.run(reads.state(REF, "pins")) is None
    assert store.run(reads.settings("host", "session", "main")) == SessionSettings(None, None)
    assert not store.run(reads.advancement_known(REF, "turn-1"))
    assert not store.run(reads.advancement_known(REF, "turn-2"))


def test_deletion_of_what_is_not_there_says_so(store: Driver) -> None:
    store.write(SaveState(REF, "pins", b"1"))
    assert store.write(Delete(REF)) is False
    assert store.run(store.store.state(REF, "pins")) is None


def test_settings_of_an_agent_outlive_a_session_of_the_same_name(store: Driver) -> None:
    store.write(Configure("host", "agent", "main", engine="full"))
    store.append(REF, "a")
    store.write(Delete(REF))
    assert store.run(store.store.settings("host", "agent", "main")).engine == "full"


def test_a_session_made_anew_is_another(store: Driver) -> None:
    before = store.append(REF, "a").head
    message_id = store.ids(REF)[0]
    store.write(Delete(REF))
    after = store.append(REF, "b").head
    assert after.uid != before.uid
    assert store.ids(REF) != [message_id]
    assert store.write(AddSummary(REF, summary("n", 1, 1), revision=before.revision)) is False
