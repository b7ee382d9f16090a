"""Stores that share a PostgreSQL wait for each other only where they write to the same sessions."""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sidecar.store.errors import MessageMissing, SessionExists, SessionMissing, StoreUnavailable
from sidecar.store.postgres import tables as postgres_tables
from sidecar.store.postgres.store import PostgresStore
from sidecar.store.postgres.upkeep import check
from sidecar.store.spawn import BeginSpawn, EndSpawn, PrepareSpawn, Spawn, SweepSpawns
from sidecar.store.stored import NewMessage, SessionRef
from sidecar.store.writes import Append, Delete, Fork, Truncate, Write
from tests.postgres_server import shared_server
from tests.store_kit import LIMIT_S, user


def ref(name: str) -> SessionRef:
    return SessionRef("host", name)


def append(name: str, *texts: str | NewMessage) -> Append:
    messages = [text if isinstance(text, NewMessage) else user(text) for text in texts]
    return Append(ref(name), messages, message_format="openai")


class Held:
    """Keeps the next commit of one store waiting."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.released = threading.Event()
        self.of: PostgresStore | None = None


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """A store that stands still inside of a transaction, as a process that was stopped would."""
    gate = Held()
    commit = postgres_tables.PostgresTables.commit

    def waiting(self: postgres_tables.PostgresTables) -> None:
        writer = gate.of and gate.of._writer  # pyright: ignore[reportPrivateUsage]
        if writer and self is writer._tables and not gate.released.is_set():  # pyright: ignore[reportPrivateUsage]
            self._send()  # pyright: ignore[reportPrivateUsage]
            gate.begun.set()
            assert gate.released.wait(LIMIT_S)
        commit(self)

    monkeypatch.setattr(postgres_tables.PostgresTables, "commit", waiting)
    yield gate
    gate.released.set()


def run(play: Callable[[PostgresStore, PostgresStore], Any]) -> None:
    """Two stores on one empty database."""
    url = shared_server().fresh()

    async def both() -> None:
        one, two = PostgresStore(url), PostgresStore(url)
        await asyncio.gather(one.open(), two.open())
        try:
            await play(one, two)
        finally:
            await asyncio.gather(one.close(), two.close())

    asyncio.run(asyncio.wait_for(both(), 2 * LIMIT_S))


def spawn(number: int, parent: str) -> Spawn:
    return Spawn("host", f"p{number}", parent, parent, f"key {number}", None, "fork", 0, 1, None)


REACHING: dict[str, list[Write]] = {
    "a fork": [Fork(ref("b"), ref("fork"), None)],
    "a truncation": [Truncate(ref("b"), None)],
    "a deletion": [Delete(ref("b"))],
    "an insertion": [append("b", user("between", after=1))],
    "a spawn": [
        PrepareSpawn(spawn(1, "b")),
        BeginSpawn(ref("child"), "key 1"),
        EndSpawn("host", "key 1", erase=True),
    ],
    "a sweep": [SweepSpawns()],
}


@pytest.mark.parametrize("what", list(REACHING))
def test_a_store_that_stands_still_keeps_nobody_waiting_in_other_sessions(what: str, held: Held) -> None:
    async def play(one: PostgresStore, two: PostgresStore) -> None:
        for name in ("a", "b", "c"):
            await one.write(append(name, "first", "second"))
        held.of = one
        stuck = asyncio.ensure_future(one.write(append("a", "third")))
        assert await asyncio.to_thread(held.begun.wait, LIMIT_S)
        for write in REACHING[what]:
            await two.write(write)
        await two.write(append("c", "third"))
        assert not stuck.done()
        held.released.set()
        await stuck

    run(play)


def test_of_a_batch_only_what_a_stopped_store_holds_is_refused(held: Held) -> None:
    async def play(one: PostgresStore, two: PostgresStore) -> None:
        await one.write(append("a", "first"))
        held.of = one
        stuck = asyncio.ensure_future(one.write(append("a", "second")))
        assert await asyncio.to_thread(held.begun.wait, LIMIT_S)
        names = ["a", *(f"s{number}" for number in range(40))]
        answers = await asyncio.gather(
            *(two.write(append(name, "text")) for name in names), return_exceptions=True
        )
        assert isinstance(answers[0], StoreUnavailable) and answers[0].retryable
        assert not any(isinstance(answer, BaseException) for answer in answers[1:])
        held.released.set()
        await stuck
        await two.write(append("a", "third"))
        assert [message.body for message in await two.messages(ref("a"), 1, 9)] == [
            b"first",
            b"second",
            b"third",
        ]

    run(play)


def test_a_fork_waits_for_what_is_written_to_its_parent(held: Held) -> None:
    async def play(one: PostgresStore, two: PostgresStore) -> None:
        await one.write(append("a", "first"))
        held.of = one
        stuck = asyncio.ensure_future(one.write(append("a", "second")))
        assert await asyncio.to_thread(held.begun.wait, LIMIT_S)
        fork = asyncio.ensure_future(two.write(Fork(ref("a"), ref("fork"), None)))
        await asyncio.wait([fork], timeout=0.2)
        assert not fork.done()
        held.released.set()
        await stuck
        assert (await fork).message_count == 2

    run(play)


def test_a_store_goes_on_as_before_after_it_has_waited_for_a_lock_in_vain(held: Held) -> None:
    async def play(one: PostgresStore, two: PostgresStore) -> None:
        await one.write(append("a", "first"))
        held.of = one
        stuck = asyncio.ensure_future(one.write(append("a", "second")))
        assert await asyncio.to_thread(held.begun.wait, LIMIT_S)
        # Statements are prepared with the fifth time that they are run, which is among these.
        for number in range(8):
            await two.write(append("b", str(number)))
            if number > 2:
                both = append("a", "refused"), append("c", str(number))
                answers = await asyncio.gather(*map(two.write, both), return_exceptions=True)
                assert isinstance(answers[0], StoreUnavailable) and answers[0].retryable
                assert "another process" in str(answers[0])
                assert not isinstance(answers[1], BaseException)
        held.released.set()
        await stuck

    run(play)


@pytest.mark.parametrize("write", [Truncate(ref("a"), None), Delete(ref("a"))], ids=lambda write: write.verb)
def test_a_session_that_gives_way_waits_for_what_is_written_to_its_forks(write: Write, held: Held) -> None:
    async def play(one: PostgresStore, two: PostgresStore) -> None:
        await one.write(append("a", "first", "second"))
        await one.write(Fork(ref("a"), ref("fork"), None))
        held.of = one
        stuck = asyncio.ensure_future(one.write(append("fork", "third")))
        assert await asyncio.to_thread(held.begun.wait, LIMIT_S)
        giving_way = asyncio.ensure_future(two.write(write))
        await asyncio.wait([giving_way], timeout=0.3)
        assert not giving_way.done()
        held.released.set()
        await asyncio.gather(stuck, giving_way)
        assert [message.body for message in await two.messages(ref("fork"), 1, 9)] == [
            b"first",
            b"second",
            b"third",
        ]

    run(play)


def random_write(chance: random.Random, number: int) -> Write:
    """Any write that passes messages from one session to another, or meets one that does."""
    name, other = (f"s{chance.randrange(6)}" for _ in range(2))
    match chance.randrange(8):
        case 0:
            return Fork(ref(name), ref(other), None)
        case 1:
            return Delete(ref(name))
        case 2:
            return Truncate(ref(name), f"m{chance.randrange(number + 1)}")
        case 3:
            return append(name, user(f"in {number}", message_id=f"m{number}", after=0))
        case 4:
            return PrepareSpawn(spawn(chance.randrange(3), name))
        case 5:
            return BeginSpawn(ref(other), f"key {chance.randrange(3)}")
        case _:
            return append(name, *(user(f"{number}-{n}", message_id=f"m{number}-{n}") for n in range(3)))


def wander(writes: int, seed: int) -> None:
    """Three stores write at random to sessions that fork from each other; then the tables are checked."""
    url = shared_server().fresh()
    refused = 0

    async def write(store: PostgresStore, chance: random.Random, number: int) -> None:
        nonlocal refused
        try:
            await store.write(random_write(chance, number))
        except (MessageMissing, SessionExists, SessionMissing):
            refused += 1
        except StoreUnavailable as error:
            assert error.retryable, error

    async def serve(index: int) -> None:
        store = PostgresStore(url)
        await store.open()
        chance = random.Random(seed * 100 + index)
        for first in range(0, writes, 10):
            numbers = [index * 1_000_000 + first + n for n in range(10)]
            await asyncio.gather(*(write(store, chance, number) for number in numbers))
        await store.close()

    async def serve_all() -> None:
        await asyncio.gather(*(serve(index) for index in range(3)))

    asyncio.run(asyncio.wait_for(serve_all(), 600))
    assert refused < 3 * writes
    assert [finding for finding in check(url, lambda *_: None) if not finding.ok] == []

    async def look() -> None:
        store = PostgresStore(url)
        await store.open()
        heads, _ = await store.sessions(None, 1000, None)
        for head in heads:
            found = await store.messages(head.ref, 1, 1 << 30)
            assert [message.position for message in found] == list(range(1, head.message_count + 1))
            assert len({message.message_id for message in found}) == len(found)
        await store.close()

    asyncio.run(look())


def test_sessions_stay_whole_while_three_stores_fork_cut_and_erase_them() -> None:
    wander(100, 1)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_sessions_stay_whole_for_long_while_three_stores_fork_cut_and_erase_them() -> None:
    for seed in range(2, 12):
        wander(1000, seed)
