"""Truncation, deletion, and expiry of sessions."""

from __future__ import annotations

import asyncio
import os
import time

from sidecar.conformance.kit import expect, expect_equal, expect_found, expect_raises
from sidecar.conformance.store.samples import CHILD, OTHER, REF, summary, user
from sidecar.conformance.store.subject import Subject, check
from sidecar.store.erasure import Expire, Expiry
from sidecar.store.errors import MessageMissing, SessionMissing
from sidecar.store.stored import Facts, SessionHead, SessionSettings
from sidecar.store.writes import (
    AddSummary,
    AppendResult,
    Configure,
    Delete,
    Fork,
    RecordAdvancement,
    SaveState,
    Truncate,
)


@check("erase")
async def truncation_removes_the_messages_after_one(store: Subject) -> None:
    ids = [item.message_id for item in (await store.append(REF, "a", "b", "c")).items]
    expect_equal(await store.write(Truncate(REF, ids[0])), 2)
    expect_equal(await store.texts(REF), ["a"])
    expect_equal(await store.store.message(REF, ids[1]), None)


@check("erase")
async def truncation_without_a_message_removes_all(store: Subject) -> None:
    await store.append(REF, "a", "b")
    expect_equal(await store.write(Truncate(REF, None)), 2)
    head = expect_found(await store.store.session(REF))
    expect_equal((head.message_count, head.turn_count), (0, 0))


@check("erase")
async def truncation_after_the_last_message_changes_nothing(store: Subject) -> None:
    added = await store.append(REF, "a")
    expect_equal(await store.write(Truncate(REF, added.items[0].message_id)), 0)
    expect_equal(await store.store.session(REF), added.head)


@check("erase")
async def ids_of_removed_messages_never_come_again(store: Subject) -> None:
    await store.append(REF, "a", "b", "c")
    old = await store.ids(REF)
    await store.write(Truncate(REF, old[0]))
    await store.append(REF, "d", "e", "f")
    new = await store.ids(REF)
    expect_equal(set(old) & set(new), {old[0]})
    expect_equal(
        [m.body for m in [await store.store.message(REF, each) for each in new] if m],
        [b"a", b"d", b"e", b"f"],
    )


@check("erase")
async def a_host_id_may_be_used_again_after_its_message_was_removed(store: Subject) -> None:
    await store.append(REF, "a", user("b", message_id="m"))
    await store.write(Truncate(REF, (await store.ids(REF))[0]))
    expect((await store.append(REF, user("c", message_id="m"))).items[0].stored)


@check("erase")
async def truncation_raises_the_revision_and_removes_summaries_of_removed_messages(store: Subject) -> None:
    added = await store.append(REF, *"abcd")
    for node in (summary("low", 1, 2), summary("high", 2, 3)):
        await store.write(AddSummary(REF, node, revision=added.head.revision))
    await store.write(Truncate(REF, added.items[1].message_id))
    expect_equal([node.node_id for node in await store.store.summaries(REF)], ["low"])
    expect_equal(
        await store.write(AddSummary(REF, summary("late", 1, 2), revision=added.head.revision)), False
    )


@check("erase")
async def truncation_at_an_unknown_message_is_refused(store: Subject) -> None:
    await store.append(REF, "a")
    await expect_raises(
        MessageMissing, store.write(Truncate(REF, "nowhere")), "write(Truncate(REF, 'nowhere'))"
    )
    await expect_raises(
        SessionMissing,
        store.write(Truncate(REF._replace(session_id="nobody"), None)),
        "write(Truncate(REF._replace(session_id='nobody'), None))",
    )


@check("erase")
async def another_agent_can_neither_truncate_nor_delete(store: Subject) -> None:
    await store.append(REF, "a", agent_id="ann")
    await expect_raises(
        SessionMissing,
        store.write(Truncate(REF, None, agent_id="bob")),
        "write(Truncate(REF, None, agent_id='bob'))",
    )
    expect_equal(await store.write(Delete(REF, agent_id="bob")), False)
    expect_equal(await store.texts(REF), ["a"])


@check("erase")
async def a_refused_write_binds_no_agent(store: Subject) -> None:
    await store.append(REF, "a")
    await expect_raises(
        MessageMissing,
        store.write(Truncate(REF, "nowhere", agent_id="bob")),
        "write(Truncate(REF, 'nowhere', agent_id='bob'))",
    )
    expect_equal((await store.append(REF, "b", agent_id="ann")).head.agent_id, "ann")


@check("erase")
async def deletion_erases_everything_under_the_name(store: Subject) -> None:
    added = await store.append(
        REF, user("a", facts=Facts(1, 2, 3, 4)), session_key="key", advancement_key="turn-1"
    )
    await store.write(AddSummary(REF, summary("n", 1, 1), revision=added.head.revision))
    await store.write(SaveState(REF, "pins", b"1"))
    await store.write(Configure("host", "session", "main", engine="full"))
    await store.write(RecordAdvancement(REF, "turn-2"))
    expect_equal(await store.write(Delete(REF)), True)
    reads = store.store
    expect_equal(await reads.session(REF), None)
    expect_equal(await reads.session_by_key("host", "key"), None)
    expect_equal(await reads.messages(REF, 1, 9), [])
    expect_equal(await reads.summaries(REF), [])
    expect_equal(await reads.state(REF, "pins"), None)
    expect_equal(await reads.settings("host", "session", "main"), SessionSettings(None, None))
    expect(not await reads.advancement_known(REF, "turn-1"))
    expect(not await reads.advancement_known(REF, "turn-2"))


@check("erase")
async def deleting_a_missing_session_returns_false(store: Subject) -> None:
    await store.write(SaveState(REF, "pins", b"1"))
    expect_equal(await store.write(Delete(REF)), False)
    expect_equal(await store.store.state(REF, "pins"), None)


@check("erase")
async def settings_of_an_agent_outlive_a_session_of_the_same_name(store: Subject) -> None:
    await store.write(Configure("host", "agent", "main", engine="full"))
    await store.append(REF, "a")
    await store.write(Delete(REF))
    expect_equal((await store.store.settings("host", "agent", "main")).engine, "full")


@check("erase")
async def a_recreated_session_is_a_new_one(store: Subject) -> None:
    before = (await store.append(REF, "a")).head
    message_id = (await store.ids(REF))[0]
    await store.write(Delete(REF))
    after = (await store.append(REF, "b")).head
    expect(after.uid != before.uid)
    expect(await store.ids(REF) != [message_id])
    expect_equal(await store.write(AddSummary(REF, summary("n", 1, 1), revision=before.revision)), False)


FOR_EVER = 1 << 60
"""A time after every change."""


async def _until_later(result: AppendResult) -> None:
    """Wait until the clock shows another millisecond."""
    while time.time_ns() // 1_000_000 <= result.head.updated_ms:  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def _step(store: Subject, head: SessionHead) -> Expiry:
    return await store.write(Expire(head, most=10))


@check("expire")
async def a_long_session_is_gone_after_the_first_step_and_erased_in_several(store: Subject) -> None:
    head = (await store.append(REF, *map(str, range(35)), session_key="key", advancement_key="k")).head
    await store.append(OTHER, "other")
    await store.write(SaveState(REF, "pins", b"1"))
    expiry = await _step(store, head)
    expect_equal(expiry.outcome, "erased", "the outcome")
    expect_equal(await store.store.session(REF), None)
    expect_equal(await store.store.session_by_key("host", "key"), None)
    expect_equal(await store.store.state(REF, "pins"), None)
    expect(
        not await store.store.advancement_known(REF, "k"), "the advancement key of an erased session is known"
    )
    expect_equal((await store.append(REF, "anew")).items[0].position, 1, "the position in a new session")
    steps = 0
    while expiry.rest is not None:
        steps += 1
        expect(steps < 10, "the session is not erased after 10 steps")
        expiry = await _step(store, expiry.rest)
    expect(steps > 1, "35 messages were erased in one step of 10")
    idle = await store.store.idle_sessions(FOR_EVER, 10)
    expect_equal({each.ref for each in idle}, {REF, OTHER}, "the sessions that are left")


@check("expire")
async def an_unfinished_erasure_comes_first_and_can_be_resumed(store: Subject) -> None:
    await store.append(OTHER, "other")
    head = (await store.append(REF, *map(str, range(25)))).head
    await _step(store, head)
    [left, *_] = await store.store.idle_sessions(FOR_EVER, 10)
    expect_equal(left.uid, head.uid, "the session that comes first")
    expiry = Expiry("erased", left)
    while expiry.rest is not None:
        expiry = await _step(store, expiry.rest)
    idle = await store.store.idle_sessions(FOR_EVER, 10)
    expect_equal([each.ref for each in idle], [OTHER], "the sessions that are left")


@check("expire")
async def a_session_that_has_changed_stays(store: Subject) -> None:
    """A session that has changed since it was selected for expiry stays."""
    head = (await store.append(REF, "a")).head
    await store.append(REF, "b")
    expect_equal(await _step(store, head), Expiry("changed"), "the outcome for a session with a new message")
    expect_equal(await store.texts(REF), ["a", "b"])
    now = expect_found(await store.store.session(REF), "the session")
    expect_equal(await _step(store, now), Expiry("erased"), "the outcome for the session as it is")
    expect_equal(await _step(store, now), Expiry("missing"), "the outcome for a session that is not there")
    await store.append(REF, "anew")
    expect_equal(await _step(store, now), Expiry("missing"), "the outcome for another session of that name")
    expect_equal(await store.texts(REF), ["anew"])


@check("expire")
async def forks_keep_what_they_share_with_an_erased_session(store: Subject) -> None:
    items = (await store.append(REF, *[user(str(n)) for n in range(40)])).items
    await store.write(Fork(REF, CHILD, items[26].message_id))
    await store.append(CHILD, "own")
    before = await store.messages(CHILD)
    head = expect_found(await store.store.session(REF), "the session")
    expiry = await _step(store, head)
    while expiry.rest is not None:
        expect_equal(await store.messages(CHILD), before, "messages(CHILD) between two steps")
        expiry = await _step(store, expiry.rest)
    expect_equal(await store.messages(CHILD), before)


@check("expire")
async def idle_sessions_are_listed_longest_idle_first(store: Subject) -> None:
    """Idle sessions are listed in the order of their last change, oldest first."""
    await _until_later(await store.append(REF, "a"))
    await _until_later(await store.append(OTHER, "b"))
    newest = (await store.append(REF, "c")).head.updated_ms
    idle = await store.store.idle_sessions(FOR_EVER, 10)
    expect_equal([each.ref for each in idle], [OTHER, REF], "all sessions")
    expect_equal(len(await store.store.idle_sessions(FOR_EVER, 1)), 1, "number of sessions with a limit of 1")
    idle = await store.store.idle_sessions(newest, 10)
    expect_equal([each.ref for each in idle], [OTHER], "sessions last changed before the newest")


@check("expire")
async def used_bytes_follow_the_stored_data(store: Subject) -> None:
    empty = await store.store.used_bytes()
    head = (await store.append(REF, *[os.urandom(50_000).hex() for _ in range(9)])).head
    filled = await store.store.used_bytes()
    expect(filled >= empty + 800_000, f"{filled - empty} bytes more are used for 900,000 bytes of messages")
    await _step(store, head)
    left = await store.store.used_bytes()
    expect(left < empty + 450_000, f"{left - empty} bytes are used once all messages are erased")
