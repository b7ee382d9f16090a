"""Buffers: episodes, and the ids of injected items."""

from __future__ import annotations

import asyncio
import time

from sidecar.conformance.kit import expect, expect_equal, expect_raises
from sidecar.conformance.store.samples import REF
from sidecar.conformance.store.subject import Subject, check
from sidecar.store.buffer import BufferStore, Episode
from sidecar.store.errors import StoreUnavailable
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Delete, Fork

HOUR_MS = 3_600_000
LEASE_LIMIT_S = 20


def payloads(episodes: list[Episode]) -> list[bytes]:
    return [episode.payload for episode in episodes]


async def push(buffer: BufferStore, *texts: str) -> list[int]:
    return [await buffer.push(text.encode(), "main", "key") for text in texts]


async def claimed_again(buffer: BufferStore) -> list[Episode]:
    """The episodes claimed once a lease has expired."""
    deadline = time.monotonic() + LEASE_LIMIT_S
    while not (found := (await buffer.claim(9, HOUR_MS))):
        expect(time.monotonic() < deadline)
    return found


@check("episodes", needs=("buffer",))
async def episodes_come_back_in_the_order_of_pushing_with_all_that_was_given(store: Subject) -> None:
    buffer = store.buffer()
    first = await buffer.push(b'{"a": "\xff\x00"}', "main", "key")
    second = await buffer.push(b"", "side")
    found = await buffer.get_all()
    expect_equal(
        [episode[:4] for episode in found],
        [(first, b'{"a": "\xff\x00"}', "main", "key"), (second, b"", "side", None)],
    )
    expect(first < second)
    expect(abs(found[0].pushed_ms - time.time() * 1000) < 60000)
    expect_equal(await buffer.count(), 2)


@check("episodes", needs=("buffer",))
async def buffers_of_other_engines_and_namespaces_stay_apart(store: Subject) -> None:
    await push(store.buffer(), "a")
    for other in (store.buffer(engine="lossless"), store.buffer(namespace="elsewhere")):
        expect_equal(await other.get_all(), [])
        expect_equal(await other.clear(), 0)
        expect_equal(await other.claim(9, HOUR_MS), [])
    expect_equal(await store.buffer().count(), 1)


@check("episodes", needs=("buffer",))
async def clearing_removes_everything(store: Subject) -> None:
    buffer = store.buffer()
    await push(buffer, "a", "b")
    expect_equal(await buffer.clear(), 2)
    expect_equal(await buffer.get_all(), [])


@check("episodes", needs=("buffer",))
async def deletion_removes_the_named_episodes_alone_and_counts_them(store: Subject) -> None:
    buffer = store.buffer()
    first, _, third = await push(buffer, "a", "b", "c")
    expect_equal(await buffer.delete_by_rowids([first, third, third, 1 << 40]), 2)
    expect_equal(payloads(await buffer.get_all()), [b"b"])
    expect_equal(await buffer.delete_by_rowids([]), 0)


@check("episodes", needs=("buffer",))
async def row_ids_of_another_buffer_delete_nothing(store: Subject) -> None:
    rowids = await push(store.buffer(), "a")
    expect_equal(await store.buffer(engine="lossless").delete_by_rowids(rowids), 0)
    expect_equal(await store.buffer().count(), 1)


@check("episodes", needs=("buffer",))
async def row_ids_are_never_used_again(store: Subject) -> None:
    buffer = store.buffer()
    before = await push(buffer, "a", "b")
    await buffer.clear()
    expect(min(await push(buffer, "c")) > max(before))


@check("episodes", needs=("buffer",))
async def a_claimed_episode_is_claimed_by_nobody_else(store: Subject) -> None:
    one, two = (store.buffer(), store.buffer())
    await push(one, *"abcde")
    expect_equal(payloads(await one.claim(2, HOUR_MS)), [b"a", b"b"])
    expect_equal(payloads(await two.claim(9, HOUR_MS)), [b"c", b"d", b"e"])
    expect_equal(await one.claim(9, HOUR_MS), [])
    expect_equal(await one.count(), 5)


@check("episodes", needs=("buffer",))
async def another_claimants_episode_is_neither_deleted_nor_cleared(store: Subject) -> None:
    one, two = (store.buffer(), store.buffer())
    rowids = await push(one, "a", "b")
    await one.claim(1, HOUR_MS)
    expect_equal(await two.delete_by_rowids(rowids[:1]), 0)
    expect_equal(await two.clear(), 1)
    expect_equal(await one.delete_by_rowids(rowids), 1)


@check("episodes", needs=("buffer",))
async def an_expired_lease_frees_its_episodes(store: Subject) -> None:
    one, two = (store.buffer(), store.buffer())
    rowids = await push(one, "a", "b")
    expect_equal(len(await one.claim(2, 1)), 2)
    expect_equal(payloads(await claimed_again(two)), [b"a", b"b"])
    expect_equal(await one.delete_by_rowids(rowids), 0)
    expect_equal(await two.delete_by_rowids(rowids), 2)


@check("episodes", needs=("buffer",))
async def a_claim_of_nothing_is_refused(store: Subject) -> None:
    for limit, lease_ms in ((0, 1), (1, 0), (-1, 1)):
        await expect_raises(
            ValueError, store.buffer().claim(limit, lease_ms), "buffer().claim(limit, lease_ms)"
        )


@check("episodes", needs=("buffer",))
async def concurrent_claims_divide_the_episodes(store: Subject) -> None:
    buffers = [store.buffer() for _ in range(8)]
    await push(buffers[0], *map(str, range(40)))

    async def claim_all() -> list[bytes]:
        found = await asyncio.gather(*(buffer.claim(5, HOUR_MS) for buffer in buffers))
        expect_equal([len(each) for each in found], [5] * 8)
        return [episode.payload for each in found for episode in each]

    expect_equal(sorted(await claim_all(), key=int), [str(number).encode() for number in range(40)])


@check("episodes", needs=("buffer",))
async def deleting_a_session_erases_its_episodes(store: Subject) -> None:
    buffer = store.buffer()
    await push(buffer, "a")
    await buffer.push(b"b", "side")
    await store.write(Delete(SessionRef("host", "main")))
    expect_equal(payloads(await buffer.get_all()), [b"b"])


@check("episodes", needs=("buffer",))
async def a_closed_buffer_refuses_calls(store: Subject) -> None:
    buffer = store.buffer()
    await push(buffer, "a")
    await buffer.close()
    await buffer.close()
    await expect_raises(StoreUnavailable, buffer.count(), "buffer.count()")
    expect_equal(await store.buffer().count(), 1)


@check("episodes", needs=("buffer", "durable"))
async def episodes_and_leases_outlast_the_store(store: Subject) -> None:
    buffer = store.buffer()
    await push(buffer, "a", "b")
    await buffer.claim(1, HOUR_MS)
    await store.reopen()
    buffer = store.buffer()
    expect_equal(payloads(await buffer.get_all()), [b"a", b"b"])
    expect_equal(payloads(await buffer.claim(9, HOUR_MS)), [b"b"])


@check("injected", needs=("buffer",))
async def an_id_is_new_once(store: Subject) -> None:
    buffer = store.buffer()
    expect(not await buffer.has_injected_id("main", "item"))
    expect(await buffer.add_injected_id("main", "item"))
    expect(not await buffer.add_injected_id("main", "item"))
    expect(await buffer.has_injected_id("main", "item"))


@check("injected", needs=("buffer",))
async def ids_belong_to_a_session_an_engine_and_a_namespace(store: Subject) -> None:
    await store.buffer().add_injected_id("main", "item")
    expect(not await store.buffer().has_injected_id("side", "item"))
    expect(not await store.buffer(engine="lossless").has_injected_id("main", "item"))
    expect(not await store.buffer(namespace="elsewhere").has_injected_id("main", "item"))


@check("injected", needs=("buffer",))
async def clearing_forgets_the_ids_of_one_session(store: Subject) -> None:
    buffer = store.buffer()
    for session in ("main", "side"):
        await buffer.add_injected_id(session, "item")
    await buffer.clear_injected_ids("main")
    expect(not await buffer.has_injected_id("main", "item"))
    expect(await buffer.has_injected_id("side", "item"))


@check("injected", needs=("buffer",))
async def single_ids_can_be_forgotten(store: Subject) -> None:
    buffer = store.buffer()
    ids = ("first", "second", "x" * 5000)
    for item_id in ids:
        await buffer.add_injected_id("main", item_id)
    await buffer.clear_injected_ids("main", ["first", "x" * 5000, "never there"])
    await buffer.clear_injected_ids("main", [])
    await buffer.clear_injected_ids("side", ["second"])
    kept = [item_id for item_id in ids if await buffer.has_injected_id("main", item_id)]
    expect(kept == ["second"], f"of three ids, the one that was not cleared should be left, not {kept}")


@check("injected", needs=("buffer",))
async def any_text_can_be_an_id(store: Subject) -> None:
    buffer = store.buffer()
    ids = ["", " ", "nul\x00", "\x1a", "\x1a0000", "😀", "é", "e\u0301", "x" * 5000, "x" * 4999 + "y"]
    for item_id in ids:
        expect(await buffer.add_injected_id("main", item_id))
    expect(all([await buffer.has_injected_id("main", item_id) for item_id in ids]))


@check("injected", needs=("buffer",))
async def a_fork_knows_what_was_injected_before_it(store: Subject) -> None:
    buffer = store.buffer()
    await store.append(REF, "a")
    await buffer.add_injected_id(REF.session_id, "item")
    await store.write(Fork(REF, SessionRef("host", "child"), None))
    expect(await buffer.has_injected_id("child", "item"))
    await buffer.clear_injected_ids("child")
    expect(await buffer.has_injected_id(REF.session_id, "item"))


@check("injected", needs=("buffer",))
async def deleting_a_session_forgets_its_ids(store: Subject) -> None:
    buffer = store.buffer()
    for session in ("main", "side"):
        await buffer.add_injected_id(session, "item")
    await store.write(Delete(REF))
    expect(not await buffer.has_injected_id("main", "item"))
    expect(await buffer.has_injected_id("side", "item"))


@check("injected", needs=("buffer", "durable"))
async def ids_outlast_the_store(store: Subject) -> None:
    await store.buffer().add_injected_id("main", "item")
    await store.reopen()
    expect(await store.buffer().has_injected_id("main", "item"))
