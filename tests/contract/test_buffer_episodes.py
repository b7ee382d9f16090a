"""Episodes that wait in a buffer to be flushed."""

import asyncio
import time

import pytest

from sidecar.store import open_buffer
from sidecar.store.buffer import BufferStore, Episode
from sidecar.store.contract import Delete, SessionRef, StoreUnavailable
from tests.store_kit import LIMIT_S, Driver

HOUR_MS = 3_600_000


def payloads(episodes: list[Episode]) -> list[bytes]:
    return [episode.payload for episode in episodes]


def buffer_of(store: Driver, namespace: str = "host", engine: str = "recall") -> BufferStore:
    return open_buffer(store.store, namespace, engine)


def push(store: Driver, buffer: BufferStore, *texts: str) -> list[int]:
    return [store.run(buffer.push(text.encode(), "main", "key")) for text in texts]


def claimed_again(store: Driver, buffer: BufferStore) -> list[Episode]:
    """What is claimed as soon as a lease has run out."""
    deadline = time.monotonic() + LIMIT_S
    while not (found := store.run(buffer.claim(9, HOUR_MS))):
        assert time.monotonic() < deadline
    return found


def test_episodes_come_back_in_the_order_of_pushing_with_all_that_was_given(store: Driver) -> None:
    buffer = buffer_of(store)
    first = store.run(buffer.push(b'{"a": "\xff\0"}', "main", "key"))
    second = store.run(buffer.push(b"", "side"))
    found = store.run(buffer.get_all())
    assert [episode[:4] for episode in found] == [
        (first, b'{"a": "\xff\0"}', "main", "key"),
        (second, b"", "side", None),
    ]
    assert first < second
    assert abs(found[0].pushed_ms - time.time() * 1000) < 60_000
    assert store.run(buffer.count()) == 2


def test_buffers_of_other_engines_and_namespaces_stay_apart(store: Driver) -> None:
    push(store, buffer_of(store), "a")
    for other in (buffer_of(store, engine="lossless"), buffer_of(store, namespace="elsewhere")):
        assert store.run(other.get_all()) == []
        assert store.run(other.clear()) == 0
        assert store.run(other.claim(9, HOUR_MS)) == []
    assert store.run(buffer_of(store).count()) == 1


def test_clearing_removes_everything(store: Driver) -> None:
    buffer = buffer_of(store)
    push(store, buffer, "a", "b")
    assert store.run(buffer.clear()) == 2
    assert store.run(buffer.get_all()) == []


def test_deletion_removes_the_named_episodes_alone_and_counts_them(store: Driver) -> None:
    buffer = buffer_of(store)
    first, _, third = push(store, buffer, "a", "b", "c")
    assert store.run(buffer.delete_by_rowids([first, third, third, 1 << 40])) == 2
    assert payloads(store.run(buffer.get_all())) == [b"b"]
    assert store.run(buffer.delete_by_rowids([])) == 0


def test_row_ids_of_another_buffer_delete_nothing(store: Driver) -> None:
    rowids = push(store, buffer_of(store), "a")
    assert store.run(buffer_of(store, engine="lossless").delete_by_rowids(rowids)) == 0
    assert store.run(buffer_of(store).count()) == 1


def test_row_ids_are_never_used_again(store: Driver) -> None:
    buffer = buffer_of(store)
    before = push(store, buffer, "a", "b")
    store.run(buffer.clear())
    assert min(push(store, buffer, "c")) > max(before)


def test_what_is_claimed_is_claimed_by_nobody_else(store: Driver) -> None:
    one, two = buffer_of(store), buffer_of(store)
    push(store, one, *"abcde")
    assert payloads(store.run(one.claim(2, HOUR_MS))) == [b"a", b"b"]
    assert payloads(store.run(two.claim(9, HOUR_MS))) == [b"c", b"d", b"e"]
    assert store.run(one.claim(9, HOUR_MS)) == []
    assert store.run(one.count()) == 5


def test_what_another_has_leased_is_neither_deleted_nor_cleared(store: Driver) -> None:
    one, two = buffer_of(store), buffer_of(store)
    rowids = push(store, one, "a", "b")
    store.run(one.claim(1, HOUR_MS))
    assert store.run(two.delete_by_rowids(rowids[:1])) == 0
    assert store.run(two.clear()) == 1
    assert store.run(one.delete_by_rowids(rowids)) == 1


def test_a_lease_that_has_run_out_frees_its_episodes(store: Driver) -> None:
    one, two = buffer_of(store), buffer_of(store)
    rowids = push(store, one, "a", "b")
    assert len(store.run(one.claim(2, 1))) == 2
    assert payloads(claimed_again(store, two)) == [b"a", b"b"]
    assert store.run(one.delete_by_rowids(rowids)) == 0
    assert store.run(two.delete_by_rowids(rowids)) == 2


@pytest.mark.parametrize(("limit", "lease_ms"), [(0, 1), (1, 0), (-1, 1)])
def test_a_claim_of_nothing_is_refused(store: Driver, limit: int, lease_ms: int) -> None:
    with pytest.raises(ValueError, match="claim"):
        store.run(buffer_of(store).claim(limit, lease_ms))


def test_many_claims_at_once_share_the_episodes_out(store: Driver) -> None:
    buffers = [buffer_of(store) for _ in range(8)]
    push(store, buffers[0], *map(str, range(40)))

    async def claim_all() -> list[bytes]:
        found = await asyncio.gather(*(buffer.claim(5, HOUR_MS) for buffer in buffers))
        assert [len(each) for each in found] == [5] * 8
        return [episode.payload for each in found for episode in each]

    assert sorted(store.run(claim_all()), key=int) == [str(number).encode() for number in range(40)]


def test_deleting_a_session_erases_its_episodes(store: Driver) -> None:
    buffer = buffer_of(store)
    push(store, buffer, "a")
    store.run(buffer.push(b"b", "side"))
    store.write(Delete(SessionRef("host", "main")))
    assert payloads(store.run(buffer.get_all())) == [b"b"]


def test_a_closed_buffer_is_of_no_more_use(store: Driver) -> None:
    buffer = buffer_of(store)
    push(store, buffer, "a")
    store.run(buffer.close())
    store.run(buffer.close())
    with pytest.raises(StoreUnavailable):
        store.run(buffer.count())
    assert store.run(buffer_of(store).count()) == 1


def test_episodes_and_leases_outlast_the_store(store: Driver) -> None:
    if store.store.kind == "memory":
        return
    buffer = buffer_of(store)
    push(store, buffer, "a", "b")
    store.run(buffer.claim(1, HOUR_MS))
    store.reopen()
    buffer = buffer_of(store)
    assert payloads(store.run(buffer.get_all())) == [b"a", b"b"]
    assert payloads(store.run(buffer.claim(9, HOUR_MS))) == [b"b"]
