"""Appending messages, and the turns that they open."""

from __future__ import annotations

from sidecar.conformance.kit import expect, expect_equal, expect_found, expect_raises
from sidecar.conformance.store.samples import REF, reply, user
from sidecar.conformance.store.subject import Subject, check
from sidecar.store.errors import FormatMismatch, SessionMissing
from sidecar.store.stored import NewMessage, SessionRef
from sidecar.store.writes import Append, RecordAdvancement, Truncate


@check("append")
async def messages_come_back_byte_for_byte_in_order(store: Subject) -> None:
    bodies = [b'{"role": "user",\t"content":"\\ud83d"}', b'{"b":1.0,"a":1e3}', '{"x":"ü\x00"}'.encode()]
    messages = [NewMessage(body=body, role="user", opens_turn=True) for body in bodies]
    await store.append(REF, *messages)
    expect_equal([message.body for message in await store.messages(REF)], bodies)


@check("append")
async def positions_run_from_one_without_gaps_over_several_writes(store: Subject) -> None:
    first = await store.append(REF, "a", "b")
    second = await store.append(REF, "c")
    expect_equal([item.position for item in first.items + second.items], [1, 2, 3])
    expect_equal(second.head.message_count, 3)


@check("append")
async def every_generated_id_is_unique_and_finds_its_message(store: Subject) -> None:
    await store.append(REF, "a", "b", "c")
    ids = await store.ids(REF)
    expect_equal(len(set(ids)), 3)
    found = [await store.store.message(REF, message_id) for message_id in ids]
    expect_equal([message.body for message in found if message], [b"a", b"b", b"c"])


@check("append")
async def ids_of_the_host_are_kept(store: Subject) -> None:
    result = await store.append(REF, user("a", message_id="host-1"), "b")
    expect_equal(result.items[0].message_id, "host-1")
    found = expect_found(await store.store.message(REF, "host-1"))
    expect_equal(found.position, 1)


@check("append")
async def a_known_message_id_is_not_stored_again(store: Subject) -> None:
    await store.append(REF, user("first", message_id="x"), "b")
    result = await store.append(REF, user("other", message_id="x"), user("c", message_id="y"))
    repeated, new = result.items
    expect_equal((repeated.stored, repeated.position, repeated.existing), (False, 1, b"first"))
    expect_equal((new.stored, new.position, new.existing), (True, 3, None))
    expect_equal(await store.texts(REF), ["first", "b", "c"])


@check("append")
async def a_message_id_repeated_within_one_write_is_stored_once(store: Subject) -> None:
    result = await store.append(REF, user("one", message_id="x"), user("two", message_id="x"))
    expect_equal([item.stored for item in result.items], [True, False])
    expect_equal(result.items[1].existing, b"one")
    expect_equal(await store.texts(REF), ["one"])


@check("append")
async def a_known_inner_id_is_not_stored_again(store: Subject) -> None:
    stored = (await store.append(REF, reply("a", inner_id="item-1"))).items[0]
    again = (await store.append(REF, reply("b", inner_id="item-1", message_id="new"))).items[0]
    expect_equal((again.stored, again.message_id), (False, stored.message_id))


@check("append")
async def the_message_id_counts_before_the_inner_id(store: Subject) -> None:
    await store.append(REF, reply("a", inner_id="i1"), reply("b", message_id="m2", inner_id="i2"))
    again = (await store.append(REF, reply("c", message_id="m2", inner_id="i1"))).items[0]
    expect_equal((again.stored, again.existing), (False, b"b"))


@check("append")
async def messages_with_different_host_ids_are_no_duplicates_despite_one_inner_id(
    store: Subject,
) -> None:
    await store.append(REF, reply("a", message_id="m1", inner_id="i"))
    named = (await store.append(REF, reply("b", message_id="m2", inner_id="i"))).items[0]
    unnamed = (await store.append(REF, reply("c", inner_id="i"))).items[0]
    expect_equal((named.stored, unnamed.stored, unnamed.message_id), (True, False, "m1"))


@check("append")
async def a_generated_id_sent_back_by_the_host_is_recognised(store: Subject) -> None:
    message_id = (await store.append(REF, "a")).items[0].message_id
    again = (await store.append(REF, user("a", message_id=message_id))).items[0]
    expect_equal((again.stored, again.message_id), (False, message_id))


@check("append")
async def a_host_id_that_looks_like_a_future_generated_id_is_never_generated(store: Subject) -> None:
    tag, _, _ = (await store.append(REF, "a")).items[0].message_id.rpartition("-")
    await store.append(REF, user("b", message_id=f"{tag}-4"))
    await store.append(REF, *"cdef")
    ids = await store.ids(REF)
    expect(len(set(ids)) == len(ids) == 6)
    found = expect_found(await store.store.message(REF, f"{tag}-4"))
    expect_equal(found.body, b"b")


@check("append")
async def host_ids_that_resemble_generated_ids_are_ordinary(store: Subject) -> None:
    for number, ending in enumerate(("0", "01", "-1", "", "1x", "٣", str(1 << 70))):
        ref = SessionRef("host", f"s{number}")
        tag, _, _ = (await store.append(ref, "a")).items[0].message_id.rpartition("-")
        expect((await store.append(ref, user("b", message_id=f"{tag}-{ending}"))).items[0].stored)
        expect(not (await store.append(ref, user("c", message_id=f"{tag}-{ending}"))).items[0].stored)
        expect_equal((await store.append(ref, "d")).items[0].position, 3)


@check("append")
async def a_time_stamp_of_the_host_is_kept_and_the_time_of_receipt_stands_in(store: Subject) -> None:
    result = await store.append(REF, user("a", timestamp_ms=1234), "b")
    given, received = await store.messages(REF)
    expect_equal(given.timestamp_ms, 1234)
    expect_equal(received.timestamp_ms, result.head.updated_ms)


@check("append")
async def roles_and_heartbeats_come_back(store: Subject) -> None:
    await store.append(REF, reply("a", role="critic"), reply("b", role="tool"), user("c", heartbeat=True))
    expect_equal(
        [(m.role, m.heartbeat) for m in await store.messages(REF)],
        [("critic", False), ("tool", False), ("user", True)],
    )


@check("append")
async def an_advancement_key_takes_effect_once(store: Subject) -> None:
    first = await store.append(REF, "a", advancement_key="turn-1")
    second = await store.append(REF, "a", advancement_key="turn-1")
    expect_equal((first.duplicate, second.duplicate, len(second.items)), (False, True, 0))
    expect_equal(await store.texts(REF), ["a"])


@check("append")
async def a_refused_append_does_not_use_up_its_key(store: Subject) -> None:
    await store.append(REF, "a")
    await expect_raises(
        FormatMismatch,
        store.append(REF, "b", message_format="anthropic", advancement_key="turn-1"),
        "append(REF, 'b', message_format='anthropic', advancement_key='turn-1')",
    )
    expect(not await store.store.advancement_known(REF, "turn-1"))
    expect(not (await store.append(REF, "b", advancement_key="turn-1")).duplicate)


@check("append")
async def a_key_recorded_without_messages_counts_for_a_later_append(store: Subject) -> None:
    expect_equal(await store.write(RecordAdvancement(REF, "turn-1")), True)
    expect_equal(await store.write(RecordAdvancement(REF, "turn-1")), False)
    expect((await store.append(REF, "a", advancement_key="turn-1")).duplicate)


@check("append")
async def a_session_of_another_dialect_is_refused(store: Subject) -> None:
    await store.append(REF, "a")
    caught = await expect_raises(
        FormatMismatch,
        store.append(REF, "b", message_format="anthropic"),
        "append(REF, 'b', message_format='anthropic')",
    )
    expect_equal(caught.message_format, "openai")
    expect_equal(await store.texts(REF), ["a"])


@check("append")
async def no_session_is_created_unless_wanted(store: Subject) -> None:
    await expect_raises(
        SessionMissing, store.append(REF, "a", create=False), "append(REF, 'a', create=False)"
    )
    expect_equal(await store.store.session(REF), None)


@check("append")
async def an_append_without_messages_creates_an_empty_session(store: Subject) -> None:
    head = (await store.append(REF, session_key="key")).head
    expect_equal((head.message_count, head.turn_count, head.session_key), (0, 0, "key"))
    expect_equal(await store.store.session_by_key("host", "key"), head)


@check("append")
async def a_session_belongs_to_the_first_agent_that_uses_it(store: Subject) -> None:
    await store.append(REF, "a")
    expect_equal((await store.append(REF, "b", agent_id="ann")).head.agent_id, "ann")
    await expect_raises(
        SessionMissing, store.append(REF, "c", agent_id="bob"), "append(REF, 'c', agent_id='bob')"
    )
    expect_equal((await store.append(REF, "d")).head.agent_id, "ann")
    expect_equal(await store.texts(REF), ["a", "b", "d"])


@check("append")
async def namespaces_keep_sessions_of_one_name_apart(store: Subject) -> None:
    other = SessionRef("elsewhere", REF.session_id)
    await store.append(REF, "a")
    await store.append(other, "b")
    expect_equal((await store.texts(REF), await store.texts(other)), (["a"], ["b"]))


@check("append")
async def the_latest_binding_of_a_session_key_wins(store: Subject) -> None:
    other = SessionRef("host", "other")
    await store.append(REF, "a", session_key="key")
    await store.append(other, "b", session_key="key")
    head = expect_found(await store.store.session_by_key("host", "key"))
    expect_equal(head.ref, other)
    await store.append(REF, "c", session_key="key")
    head = expect_found(await store.store.session_by_key("host", "key"))
    expect_equal(head.ref, REF)
    expect_equal(await store.store.session_by_key("elsewhere", "key"), None)


@check("append")
async def writes_that_are_refused_leave_those_around_them_alone(store: Subject) -> None:

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

    expect_equal(await mixed(), [type(None), FormatMismatch, type(None)])
    expect_equal(await store.texts(REF), ["a", "c"])


@check("turns")
async def messages_before_the_first_user_message_are_in_turn_one(store: Subject) -> None:
    await store.append(REF, reply("system", role="system"), "a", reply("b"), "c", reply("d"))
    expect_equal(await store.turns(REF), ["t1", "t1", "t1", "t2", "t2"])


@check("turns")
async def turns_go_on_over_several_writes(store: Subject) -> None:
    await store.append(REF, "a")
    await store.append(REF, reply("b"))
    result = await store.append(REF, "c")
    expect_equal(result.items[0].turn_id, "t2")
    expect_equal(result.head.turn_count, 2)


@check("turns")
async def a_heartbeat_opens_no_turn(store: Subject) -> None:
    await store.append(REF, user("beat", heartbeat=True), "a", user("beat", heartbeat=True), reply("ok"), "b")
    expect_equal(await store.turns(REF), ["t1", "t1", "t1", "t1", "t2"])


@check("turns")
async def a_name_given_by_the_host_is_the_turns_id(store: Subject) -> None:
    await store.append(REF, user("a", turn_id="morning"), reply("b", turn_id="morning"), reply("c"))
    expect_equal(await store.turns(REF), ["morning"] * 3)
    expect_equal((await store.messages(REF))[2].turn, 1)


@check("turns")
async def another_name_opens_a_turn_even_without_a_user_message(store: Subject) -> None:
    await store.append(REF, user("a", turn_id="x"), reply("b", turn_id="y"), user("c", turn_id="y"), "d")
    expect_equal(
        [(m.turn, m.turn_id) for m in await store.messages(REF)], [(1, "x"), (2, "y"), (2, "y"), (3, "t3")]
    )


@check("turns")
async def a_host_may_use_our_own_names(store: Subject) -> None:
    await store.append(REF, user("a", turn_id="t1"), reply("b", turn_id="t1"), user("c", turn_id="t2"), "d")
    expect_equal(await store.turns(REF), ["t1", "t1", "t2", "t3"])


@check("turns")
async def a_name_on_a_heartbeat_opens_no_turn(store: Subject) -> None:
    await store.append(REF, "a", user("beat", heartbeat=True, turn_id="beat-1"))
    expect_equal(await store.turns(REF), ["t1", "t1"])


@check("turns")
async def turn_numbers_are_reused_after_truncation(store: Subject) -> None:
    ids = [item.message_id for item in (await store.append(REF, "a", reply("b"), "c", "d")).items]
    await store.write(Truncate(REF, ids[1]))
    head = (await store.append(REF, "e")).head
    expect_equal((await store.turns(REF), head.turn_count), (["t1", "t1", "t2"], 2))


@check("turns")
async def truncation_to_before_the_first_user_message_lets_the_next_be_turn_one(store: Subject) -> None:
    ids = [item.message_id for item in (await store.append(REF, reply("sys", role="system"), "a", "b")).items]
    await store.write(Truncate(REF, ids[0]))
    await store.append(REF, "c", "d")
    expect_equal(await store.turns(REF), ["t1", "t1", "t2"])


@check("turns")
async def truncation_within_turn_one_remembers_that_it_was_opened(store: Subject) -> None:
    ids = [item.message_id for item in (await store.append(REF, "a", reply("b"), "c")).items]
    await store.write(Truncate(REF, ids[1]))
    await store.append(REF, "d")
    expect_equal(await store.turns(REF), ["t1", "t1", "t2"])


@check("turns")
async def truncation_brings_the_name_of_the_newest_turn_back(store: Subject) -> None:
    ids = [item.message_id for item in (await store.append(REF, user("a", turn_id="x"), "b")).items]
    await store.write(Truncate(REF, ids[0]))
    await store.append(REF, reply("c"))
    expect_equal(await store.turns(REF), ["x", "x"])


@check("turns")
async def the_start_of_a_turn_is_found(store: Subject) -> None:
    for index in range(20):
        await store.append(REF, f"u{index}", *[reply("r")] * (index % 4))
    starts = [await store.store.turn_start(REF, turn) for turn in range(22)]
    texts = await store.texts(REF)
    expect_equal(starts[0], None)
    expect_equal(starts[21], None)
    expect_equal([texts[start - 1] for start in starts[1:21] if start], [f"u{index}" for index in range(20)])
