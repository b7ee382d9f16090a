"""The courier delivers buffered episodes, even those that arrive while it is about to stop."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from sidecar.episodes.contract import Delivered, Remembered
from sidecar.episodes.courier import Courier
from sidecar.store import open_buffer
from sidecar.store.buffer import BufferStore, Episode
from sidecar.store.sqlite.memory import MemoryStore

LIMIT_S = 30


class _Shelf:
    """A back end that records its deliveries."""

    name = "the shelf"
    batch = 2
    limit_s = 0.05

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.came = asyncio.Event()
        self.broken = 0

    async def deliver(self, episodes: Sequence[Episode]) -> Delivered:
        await asyncio.sleep(0)
        if self.broken:
            self.broken -= 1
            return Delivered((), problem="broken")
        self.taken += [episode.payload for episode in episodes]
        self.came.set()
        return Delivered([episode.rowid for episode in episodes])

    async def forget(self, namespace: str, session_id: str) -> None: ...

    async def search(self, namespace: str, agent_id: str, query: str, limit: int) -> list[Remembered]:
        return []

    async def close(self) -> None: ...


def _run(work: Callable[[BufferStore, Courier, _Shelf], Awaitable[None]]) -> None:
    async def live() -> None:
        store = MemoryStore()
        await store.open()
        shelf, buffer = _Shelf(), open_buffer(store, "n", "episodes")
        courier = Courier(open_buffer(store, "n", "episodes"), shelf)
        try:
            await work(buffer, courier, shelf)
        finally:
            await courier.close()
            await store.close()

    asyncio.run(asyncio.wait_for(live(), LIMIT_S))


def test_everything_is_brought_in_order() -> None:
    async def work(buffer: BufferStore, courier: Courier, shelf: _Shelf) -> None:
        for number in range(7):
            await buffer.push(b"%d" % number, "s")
        courier.start()
        await courier.wait(LIMIT_S)
        assert shelf.taken == [b"%d" % number for number in range(7)]
        assert await buffer.count() == 0

    _run(work)


def test_episodes_that_arrive_while_the_courier_stops_are_delivered_too() -> None:
    async def work(buffer: BufferStore, courier: Courier, shelf: _Shelf) -> None:
        shelf.limit_s = 3600  # nobody waits so long for a lease
        for steps in range(40):
            shelf.came.clear()
            courier.start()
            for _ in range(steps):
                await asyncio.sleep(0)
            await buffer.push(b"%d" % steps, "s")
            courier.start()
            await shelf.came.wait()
            assert shelf.taken[-1] == b"%d" % steps
            await courier.wait(LIMIT_S)

    _run(work)


def test_episodes_not_taken_stay_buffered_and_are_delivered_later() -> None:
    async def work(buffer: BufferStore, courier: Courier, shelf: _Shelf) -> None:
        shelf.broken = 1
        await buffer.push(b"0", "s")
        courier.start()
        await courier.wait(LIMIT_S)
        assert (await buffer.count(), courier.problem) == (1, "broken")
        await shelf.came.wait()
        assert shelf.taken == [b"0"]

    _run(work)
