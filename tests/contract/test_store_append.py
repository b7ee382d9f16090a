"""What `Append` stores, and what it does not store again."""

import pytest

from sidecar.store.contract import (
    Append,
    FormatMismatch,
    NewMessage,
    RecordAdvancement,
    SessionMissing,
    SessionRef,
)
from tests.store_kit import REF, Driver, reply, user


def test_messages_come_back_byte_for_byte_in_order(store: Driver) -> None:
    bodies = [b'{"role": "user",\t"content":"\\ud83d"}', b'{"b":1.0,"a":1e3}', '{"x":"ü\0"}'.encode()]
    messages = [NewMessage(body=body, role="user", opens_turn=True) for body in bodies]
    store.append(REF, *messages)
    assert [message.body for message in store.messages(REF)] == bodies


def test_positions_run_from_one_without_gaps_over_several_writes(store: Driver) -> None:
    first = store.append(REF, "a", "b")
    second = store.append(REF, "c")
    assert [item.position for item in first.items + second.items] == [1, 2, 3]
    assert second.head.message_count == 3


def test_every_made_up_id_is_different_and_leads_to_its_message(store: Driver) -> None:
    store.append(REF, "a", "b", "c")
    ids = store.ids(REF)
    assert len(set(ids)) == 3
    found = [store.run(store.store.message(REF, message_id)) for message_id in ids]
    assert [message.body for message in found if message] == [b"a", b"b", b"c"]


def test_ids_of_the_host_are_kept(store: Driver) -> None:
    result = store.append(REF, user("a", message_id="host-1"), "b")
    assert result.items[0].message_id == "host-1"
    found = store.run(store.store.message(REF, "host-1"))
    assert found is not None
    assert found.position == 1


def test_a_message_id_that_is_there_is_not_stored_again(store: Driver) -> None:
    store.append(REF, user("first", message_id="x"), "b")
    result = store.append(REF, user("other", message_id="x"), user("c", message_id="y"))
    repeated, new = result.items
    assert (repeated.stored, repeated.position, repeated.existing) == (False, 1, b"first")
    assert (new.stored, new.position, new.existing) == (True, 3, None)
    assert store.texts(REF) == ["first", "b", "c"]


def test_a_message_id_repeated_within_one_write_is_stored_once(store: Driver) -> None:
    result = store.append(REF, user("one", message_id="x"), user("two", message_id="x"))
    assert [item.stored for item in result.items] == [True, False]
    assert result.items[1].existing == b"one"
    assert store.texts(REF) == ["one"]


def test_an_inner_id_that_is_there_is_not_stored_again(store: Driver) -> None:
    stored = store.append(REF, reply("a", inner_id="item-1")).items[0]
    again = store.append(REF, reply("b", inner_id="item-1", message_id="new")).items[0]
    assert (again.stored, again.message_id) == (False, stored.message_id)


def test_the_message_id_counts_before_the_inner_id(store: Driver) -> None:
    store.append(REF, reply("a", inner_id="i1"), reply("b", message_id="m2", inner_id="i2"))
    again = store.append(REF, reply("c", message_id="m2", inner_id="i1")).items[0]
    assert (again.stored, again.existing) == (False, b"b")


def test_an_inner_id_does_not_make_doubles_of_messages_that_the_host_names_differently(store: Driver) -> None:
    store.append(REF, reply("a", message_id="m1", inner_id="i"))
    named = store.append(REF, reply("b", message_id="m2", inner_id="i")).items[0]
    unnamed = store.append(REF, reply("c", inner_id="i")).items[0]
    assert (named.stored, unnamed.stored, unnamed.message_id) == (True, False, "m1")


def test_a_made_up_id_handed_back_by_the_host_is_recognised(store: Driver) -> None:
    message_id = store.append(REF, "a").items[0].message_id
    again = store.append(REF, user("a", message_id=message_id)).items[0]
    assert (again.stored, again.message_id) == (False, message_id)


def test_a_host_id_that_looks_like_a_coming_made_up_id_is_never_made_up(store: Driver) -> None:
    tag, _, _ = store.append(REF, "a").items[0].message_id.rpartition("-")
    store.append(REF, user("b", message_id=f"{tag}-4"))
    store.append(REF, *"cdef")
    ids = store.ids(REF)
    assert len(set(ids)) == len(ids) == 6
    found = store.run(store.store.message(REF, f"{tag}-4"))
    assert found is not None
    assert found.body == b"b"


@pytest.mark.parametrize("ending", ["0", "01", "-1", "", "1x", "٣", str(1 << 70)])
def test_host_ids_that_only_resemble_made_up_ids_are_ordinary(store: Driver, ending: str) -> None:
    tag, _, _ = store.append(REF, "a").items[0].message_id.rpartition("-")
    assert store.append(REF, user("b", message_id=f"{tag}-{ending}")).items[0].stored
    assert not store.append(REF, user("c", message_id=f"{tag}-{ending}")).items[0].stored
    assert store.append(REF, "d").items[0].position == 3


def test_a_time_stamp_of_the_host_is_kept_and_the_time_of_receipt_stands_in(store: Driver) -> None:
    result = store.append(REF, user("a", timestamp_ms=1234), "b")
    given, received = store.messages(REF)
    assert given.timestamp_ms == 1234
    assert received.timestamp_ms == result.head.updated_ms


def test_roles_and_heartbeats_come_back(store: Driver) -> None:
    store.append(REF, reply("a", role="critic"), reply("b", role="tool"), user("c", heartbeat=True))
    assert [(m.role, m.heartbeat) for m in store.messages(REF)] == [
        ("critic", False),
        ("tool", False),
        ("user", True),
    ]


def test_an_advancement_key_takes_effect_once(store: Driver) -> None:
    first = store.append(REF, "a", advancement_key="turn-1")
    second = store.append(REF, "a", advancement_key="turn-1")
    assert (first.duplicate, second.duplicate, second.items) == (False, True, [])
    assert store.texts(REF) == ["a"]


def test_a_refused_append_does_not_use_up_its_key(store: Driver) -> None:
    store.append(REF, "a")
    with pytest.raises(FormatMismatch):
        store.append(REF, "b", message_format="anthropic", advancement_key="turn-1")
    assert not store.run(store.store.advancement_known(REF, "turn-1"))
    assert not store.append(REF, "b", advancement_key="turn-1").duplicate


def test_a_key_recorded_without_messages_counts_for_a_later_append(store: Driver) -> None:
    assert store.write(RecordAdvancement(REF, "turn-1")) is True
    assert store.write(RecordAdvancement(REF, "turn-1")) is False
    assert store.append(REF, "a", advancement_key="turn-1").duplicate


def test_a_session_of_another_dialect_is_refused(store: Driver) -> None:
    store.append(REF, "a")
    with pytest.raises(FormatMismatch) as caught:
        store.append(REF, "b", message_format="anthropic")
    assert caught.value.message_format == "openai"
    assert store.texts(REF) == ["a"]


def test_a_session_is_not_made_where_that_is_not_wanted(store: Driver) -> None:
    with pytest.raises(SessionMissing):
        store.append(REF, "a", create=False)
    assert store.run(store.store.session(REF)) is None


def test_an_append_without_messages_makes_an_empty_session(store: Driver) -> None:
    head = store.append(REF, session_key="key").head
    assert (head.message_count, head.turn_count, head.session_key) == (0, 0, "key")
    assert store.run(store.store.session_by_key("host", "key")) == head


def test_a_session_belongs_to_the_first_agent_that_uses_it(store: Driver) -> None:
    store.append(REF, "a")
    assert store.append(REF, "b", agent_id="ann").head.agent_id == "ann"
    with pytest.raises(SessionMissing):
        store.append(REF, "c", agent_id="bob")
    assert store.append(REF, "d").head.agent_id == "ann"
    assert store.texts(REF) == ["a", "b", "d"]


def test_namespaces_keep_sessions_of_one_name_apart(store: Driver) -> None:
    other = SessionRef("elsewhere", REF.session_id)
    store.append(REF, "a")
    store.append(other, "b")
    assert (store.texts(REF), store.texts(other)) == (["a"], ["b"])


def test_the_latest_binding_of_a_session_key_wins(store: Driver) -> None:
    other = SessionRef("host", "other")
    store.append(REF, "a", session_key="key")
    store.append(other, "b", session_key="key")
    head = store.run(store.store.session_by_key("host", "key"))
    assert head is not None
    assert head.ref == other
    store.append(REF, "c", session_key="key")
    head = store.run(store.store.session_by_key("host", "key"))
    assert head is not None
    assert head.ref == REF
    assert store.run(store.store.session_by_key("elsewhere", "key")) is None


def test_writes_that_are_refused_leave_those_around_them_alone(store: Driver) -> None:
    async def mixed() -> list[object]:
        writes = [
            Append(REF, [user("a")], message_format="openai"),
            Append(REF, [user("b")], message_format="anthropic"),
            Append(REF, [user("c")], message_format="openai"),
        ]
        done: list[object] = []
        for write in writes[:2]:
            store.store.submit(write, done.append)
        await store.store.write(writes[2])
        return [write.error.__class__ for write in writes]

    assert store.run(mixed()) == [type(None), FormatMismatch, type(None)]
    assert store.texts(REF) == ["a", "c"]
