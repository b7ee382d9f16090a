"""The stores that are measured, and plain SQLite tables as the floor beside them."""

import asyncio
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import apsw

from sidecar.messages.dialects import dialect
from sidecar.messages.text import searchable
from sidecar.store import open_store
from sidecar.store.postgres import writer as postgres_writer
from sidecar.store.records import SessionRecord
from sidecar.store.search import Searchable, SearchQuery
from sidecar.store.sqlite import writer as sqlite_writer
from sidecar.store.stored import NewMessage, SessionRef
from sidecar.store.writes import Append, Write
from tests.bench.store_corpus import Sample
from tests.postgres_server import PostgresServer

IN_FLIGHT = 256
_CHUNK = 100
"""Messages in one append while a store is filled."""
_FILLING = 8
"""Appends in flight meanwhile."""
_REST_S = 3600.0


class Subject(Protocol):
    """What is measured; all times are processor time of everything that takes part, in microseconds."""

    name: str

    def fill(self, samples: Iterator[Sample], count: int, sessions: int) -> None:
        """Store so many messages, spread over the sessions one behind the other."""
        ...

    def rest(self) -> None:
        """Wait until nothing is left to index."""
        ...

    def ingest(self, samples: Sequence[Sample], session: int) -> float:
        """Time a message, each answered after its commit, 256 in flight."""
        ...

    def last(self, count: int, session: int, messages: int, times: int) -> float:
        """Time of reading the newest messages of a session that has so many."""
        ...

    def search(self, text: str, kind: str, session: int | None) -> float:
        """Time of finding the best ten in one session, or in all."""
        ...

    def size(self) -> int:
        """Bytes on the disk."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class StoreSubject:
    """One of the stores, in this process."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.name = kind
        self._server = PostgresServer(durable=True) if kind == "postgres" else None
        self._empty_size = 0 if self._server is None else self._server.database_size()
        self._path = folder / "store.db"
        self._runner = asyncio.Runner()
        self._open()

    def fill(self, samples: Iterator[Sample], count: int, sessions: int) -> None:
        """See `Subject`."""
        self._runner.run(self._fill(samples, count, sessions))

    def _open(self) -> None:
        url = None if self._server is None else self._server.url
        self._store: Any = open_store(self.name, self._path, url=url, extract=_extract)
        self._runner.run(self._store.open())

    def _reopen(self) -> None:
        self._runner.run(self._store.close())
        self._open()

    async def _fill(self, samples: Iterator[Sample], count: int, sessions: int) -> None:
        each = count // sessions
        chunks = iter(
            [
                (session, min(_CHUNK, each - start))
                for session in range(sessions)
                for start in range(0, each, _CHUNK)
            ]
        )

        async def some() -> None:
            for session, size in chunks:
                await self._store.write(_append(session, list(islice(samples, size))))

        await asyncio.gather(*(some() for _ in range(_FILLING if sessions > 1 else 1)))

    def rest(self) -> None:
        """See `Subject`."""
        deadline = time.monotonic() + _REST_S
        while self._store.indexing:
            if time.monotonic() > deadline:
                raise TimeoutError("indexing does not come to an end")
            time.sleep(0.05)

    def ingest(self, samples: Sequence[Sample], session: int) -> float:
        """See `Subject`."""
        begin = self._cpu_us()
        self._runner.run(self._ingest([_append(session, [sample]) for sample in samples]))
        return (self._cpu_us() - begin) / len(samples)

    async def _ingest(self, writes: list[Append]) -> None:
        done = asyncio.get_running_loop().create_future()
        waiting = iter(writes)
        left = len(writes)

        def answered(write: Write) -> None:
            nonlocal left
            if write.error is not None and not done.done():
                done.set_exception(write.error)
            left -= 1
            following = next(waiting, None)
            if following is not None:
                self._store.submit(following, answered)
            elif left == 0:
                done.set_result(None)

        for write in islice(waiting, IN_FLIGHT):
            self._store.submit(write, answered)
        await done

    def last(self, count: int, session: int, messages: int, times: int) -> float:
        """See `Subject`."""

        async def read() -> None:
            for _ in range(times):
                found = await self._store.messages(_ref(session), messages - count + 1, messages)
                assert len(found) == count

        begin = self._cpu_us()
        self._runner.run(read())
        return (self._cpu_us() - begin) / times

    def search(self, text: str, kind: str, session: int | None) -> float:
        """See `Subject`."""
        query: Any = SearchQuery(text=text, kind=kind, newest_first=True)  # pyright: ignore
        begin = self._cpu_us()
        if session is None:
            self._runner.run(self._store.search_sessions("bench", query))
        else:
            self._runner.run(self._store.search(_ref(session), query))
        return self._cpu_us() - begin

    def size(self) -> int:
        """See `Subject`; of SQLite with what was in the log."""
        if self._server is not None:
            return self._server.database_size() - self._empty_size
        self._reopen()
        self.rest()
        return self._path.stat().st_size

    def close(self) -> None:
        """See `Subject`."""
        self._runner.run(self._store.close())
        self._runner.close()
        if self._server is not None:
            self._server.remove()

    def _cpu_us(self) -> float:
        server = 0.0 if self._server is None else self._server.cpu_us()
        return time.process_time() * 1e6 + server


@contextmanager
def never_indexing() -> Generator[None]:
    """Stores that are opened meanwhile do not begin to index."""
    before = sqlite_writer._PAUSE_S, postgres_writer._INDEX_FROM_S
    sqlite_writer._PAUSE_S = postgres_writer._INDEX_FROM_S = _REST_S
    try:
        yield
    finally:
        sqlite_writer._PAUSE_S, postgres_writer._INDEX_FROM_S = before


class FloorSubject:
    """A table with an index and SQLite's own full-text index, without anything around them."""

    name = "plain tables"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "floor.db"
        self._connection = apsw.Connection(str(self._path))
        for statement in (
            "PRAGMA page_size = 8192",
            "PRAGMA journal_mode = wal",
            "PRAGMA synchronous = FULL",
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session INTEGER, position INTEGER, body BLOB)",
            "CREATE UNIQUE INDEX by_position ON messages (session, position)",
            "CREATE VIRTUAL TABLE words USING fts5 (text, content='', tokenize='porter unicode61')",
        ):
            self._connection.execute(statement)
        self._counts: dict[int, int] = {}

    def fill(self, samples: Iterator[Sample], count: int, sessions: int) -> None:
        """See `Subject`."""
        for session in range(sessions):
            left = count // sessions
            while left > 0:
                some = list(islice(samples, min(1000, left)))
                rows = self._store(some, session)
                with self._connection:
                    texts = [
                        (row, searchable(dialect("openai"), sample.body).text)
                        for row, sample in zip(rows, some, strict=True)
                    ]
                    self._connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", texts)
                left -= len(some)

    def _store(self, samples: Sequence[Sample], session: int) -> range:
        position = self._counts.get(session, 0)
        total = sum(self._counts.values())
        self._counts[session] = position + len(samples)
        rows = [
            (total + number, session, position + number, sample.body)
            for number, sample in enumerate(samples, start=1)
        ]
        with self._connection:
            self._connection.executemany("INSERT INTO messages VALUES (?, ?, ?, ?)", rows)
        return range(total + 1, total + len(samples) + 1)

    def rest(self) -> None:
        """See `Subject`."""

    def ingest(self, samples: Sequence[Sample], session: int) -> float:
        """See `Subject`."""
        begin = time.process_time()
        for start in range(0, len(samples), IN_FLIGHT):
            self._store(samples[start : start + IN_FLIGHT], session)
        return (time.process_time() - begin) * 1e6 / len(samples)

    def last(self, count: int, session: int, messages: int, times: int) -> float:
        """See `Subject`."""
        statement = "SELECT id, position, body FROM messages WHERE session = ? AND position BETWEEN ? AND ?"
        begin = time.process_time()
        for _ in range(times):
            found = self._connection.execute(statement, (session, messages - count + 1, messages)).fetchall()
            assert len(found) == count
        return (time.process_time() - begin) * 1e6 / times

    def search(self, text: str, kind: str, session: int | None) -> float:
        """See `Subject`: by BM25 over everything, with what is no word as a phrase."""
        asked = text if kind == "words" else f'"{text}"'
        statement = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT 10"
        begin = time.process_time()
        self._connection.execute(statement, (asked,)).fetchall()
        return (time.process_time() - begin) * 1e6

    def size(self) -> int:
        """See `Subject`."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return self._path.stat().st_size

    def close(self) -> None:
        """See `Subject`."""
        self._connection.close()


def _extract(session: SessionRecord, body: bytes) -> Searchable:
    return Searchable(*searchable(dialect(session.message_format), body))


def _ref(session: int) -> SessionRef:
    return SessionRef("bench", f"session-{session}")


def _append(session: int, samples: Sequence[Sample]) -> Append:
    messages = [
        NewMessage(body=sample.body, role=sample.role, opens_turn=sample.role == "user") for sample in samples
    ]
    return Append(_ref(session), messages, message_format="openai", agent_id="main")
