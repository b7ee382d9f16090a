"""`Expire`, with the reads that choose what is erased."""

import asyncio
import os
import time

from sidecar.conformance.expecting import expect, expect_equal, expect_found
from sidecar.conformance.store.samples import CHILD, OTHER, REF, user
from sidecar.conformance.store.subject import Subject
from sidecar.conformance.store.suite import SUITE
from sidecar.store.expiring import Expire, Expiry
from sidecar.store.stored import SessionHead
from sidecar.store.writes import AppendResult, Fork, SaveState

AREA = SUITE.area("expire")

FOR_EVER = 1 << 60
"""A time that no session is changed after."""


async def _until_later(result: AppendResult) -> None:
    """Wait until the clock shows another millisecond."""
    while time.time_ns() // 1_000_000 <= result.head.updated_ms:  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def _step(store: Subject, head: SessionHead) -> Expiry:
    return await store.write(Expire(head, most=10))


@AREA.check()
async def a_long_session_is_gone_after_the_first_step_and_erased_in_several(store: Subject) -> None:
    """A long session is gone after the first step, and erased in several."""
    head = (await store.append(REF, *map(str, range(35)), session_key="key", advancement_key="k")).head
    await store.append(OTHER, "other")
    await store.write(SaveState(REF, "pins", b"1"))
    expiry = await _step(store, head)
    expect_equal(expiry.outcome, "erased", "the outcome")
    expect_equal(await store.store.session(REF), None, "session(REF)")
    expect_equal(await store.store.session_by_key("host", "key"), None, "session_by_key('host', 'key')")
    expect_equal(await store.store.state(REF, "pins"), None, "state(REF, 'pins')")
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


@AREA.check()
async def what_is_being_erased_comes_first_and_can_be_gone_on_with(store: Subject) -> None:
    """What is being erased comes first, and can be gone on with."""
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


@AREA.check()
async def a_session_that_has_changed_stays(store: Subject) -> None:
    """A session that has changed since it was chosen stays."""
    head = (await store.append(REF, "a")).head
    await store.append(REF, "b")
    expect_equal(await _step(store, head), Expiry("changed"), "the outcome for a session with a new message")
    expect_equal(await store.texts(REF), ["a", "b"], "texts(REF)")
    now = expect_found(await store.store.session(REF), "the session")
    expect_equal(await _step(store, now), Expiry("erased"), "the outcome for the session as it is")
    expect_equal(await _step(store, now), Expiry("missing"), "the outcome for a session that is not there")
    await store.append(REF, "anew")
    expect_equal(await _step(store, now), Expiry("missing"), "the outcome for another session of that name")
    expect_equal(await store.texts(REF), ["anew"], "texts(REF)")


@AREA.check()
async def forks_keep_what_they_share_with_an_erased_session(store: Subject) -> None:
    """Forks keep what they share with an erased session."""
    items = (await store.append(REF, *[user(str(n)) for n in range(40)])).items
    await store.write(Fork(REF, CHILD, items[26].message_id))
    await store.append(CHILD, "own")
    before = await store.messages(CHILD)
    head = expect_found(await store.store.session(REF), "the session")
    expiry = await _step(store, head)
    while expiry.rest is not None:
        expect_equal(await store.messages(CHILD), before, "messages(CHILD) between two steps")
        expiry = await _step(store, expiry.rest)
    expect_equal(await store.messages(CHILD), before, "messages(CHILD)")


@AREA.check()
async def idle_sessions_are_told_longest_idle_first(store: Subject) -> None:
    """Idle sessions are told, those first that were not changed for longest."""
    await _until_later(await store.append(REF, "a"))
    await _until_later(await store.append(OTHER, "b"))
    newest = (await store.append(REF, "c")).head.updated_ms
    idle = await store.store.idle_sessions(FOR_EVER, 10)
    expect_equal([each.ref for each in idle], [OTHER, REF], "all sessions")
    expect_equal(len(await store.store.idle_sessions(FOR_EVER, 1)), 1, "how many are told with a limit of 1")
    idle = await store.store.idle_sessions(newest, 10)
    expect_equal([each.ref for each in idle], [OTHER], "sessions that were changed before the newest")


@AREA.check()
async def the_used_bytes_follow_what_is_kept(store: Subject) -> None:
    """The used bytes follow what is kept."""
    empty = await store.store.used_bytes()
    head = (await store.append(REF, *[os.urandom(50_000).hex() for _ in range(9)])).head
    filled = await store.store.used_bytes()
    expect(filled >= empty + 800_000, f"{filled - empty} bytes more are used for 900,000 bytes of messages")
    await _step(store, head)
    left = await store.store.used_bytes()
    expect(left < empty + 450_000, f"{left - empty} bytes are used once all messages are erased")
