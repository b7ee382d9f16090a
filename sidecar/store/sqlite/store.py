"""The `SessionStore` in one SQLite file."""

import asyncio
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import apsw

from sidecar.store.contract import (
    KeyedMessage,
    SessionHead,
    SessionRef,
    SessionSettings,
    StoredMessage,
    StoreUnavailable,
    SummaryNode,
    Write,
)
from sidecar.store.reading import (
    read_keyed,
    read_message,
    read_messages,
    read_messages_of_role,
    read_turn_start,
)
from sidecar.store.sqlite.connection import connect
from sidecar.store.sqlite.faults import unavailable
from sidecar.store.sqlite.lookups import SQLiteLookups
from sidecar.store.sqlite.writer import Writer
from sidecar.store.submitting import Submitting, run_done

_BUSY_MS = 2_000
_CACHE_KIB = 8 * 1024
_CLOSED = "the store is not open"


class SQLiteStore(Submitting):
    """Sessions in a SQLite file: writes on a thread of their own, short reads on the loop's."""

    kind = "sqlite"

    def __init__(self, path: Path, *, vfs: str | None = None) -> None:
        self._path = path
        self._vfs = vfs
        self._writer: Writer | None = None
        self._reads: SQLiteLookups | None = None
        self._closed: asyncio.Event | None = None

    async def open(self) -> None:
        """See `SessionStore`.

        Raises:
            StoreUnavailable: it cannot be opened.
        """
        loop = self._loop = asyncio.get_running_loop()
        opened: asyncio.Future[StoreUnavailable | None] = loop.create_future()
        closed = asyncio.Event()
        try:
            _create_file(self._path)
        except OSError as error:
            raise unavailable(error) from error
        writer = Writer(
            self._path,
            self._vfs,
            opened=lambda error: self._call(opened.set_result, error),
            completed=lambda writes: self._call(run_done, writes),
            closed=lambda: self._call(closed.set),
        )
        writer.start()
        error = await opened
        if error is not None:
            raise error
        self._writer, self._closed = writer, closed
        with _faults():
            connection = connect(self._path, self._vfs, busy_ms=_BUSY_MS, cache_kib=_CACHE_KIB)
            connection.execute("PRAGMA query_only = ON")
            self._reads = SQLiteLookups(connection)

    async def close(self) -> None:
        """See `SessionStore`."""
        writer, self._writer = self._writer, None
        reads, self._reads = self._reads, None
        if reads is not None:
            reads.connection.close()
        if writer is not None:
            writer.put(None)
        if self._closed is not None:
            await self._closed.wait()

    def submit(self, write: Write, done: Callable[[Any], None]) -> None:
        """See `SessionStore`."""
        write.done = done
        writer = self._writer
        if writer is None:
            write.started = True
            write.error = StoreUnavailable(_CLOSED)
            asyncio.get_running_loop().call_soon(run_done, [write])
        else:
            writer.put(write)

    def withdraw(self, write: Write) -> bool:
        """See `SessionStore`."""
        return self._writer is not None and self._writer.withdraw(write)

    async def session(self, ref: SessionRef) -> SessionHead | None:
        """See `SessionStore`."""
        with self._reading() as reads:
            record = reads.session(ref)
            return None if record is None else record.head()

    async def session_by_key(self, namespace: str, session_key: str) -> SessionHead | None:
        """See `SessionStore`."""
        with self._reading() as reads:
            return reads.session_by_key(namespace, session_key)

    async def sessions(
        self, namespace: str | None, limit: int, cursor: str | None
    ) -> tuple[list[SessionHead], str | None]:
        """See `SessionStore`."""
        with self._reading() as reads:
            return reads.sessions(namespace, limit, cursor)

    async def messages(self, ref: SessionRef, first: int, last: int) -> list[StoredMessage]:
        """See `SessionStore`."""
        with self._reading() as reads:
            return read_messages(reads, ref, first, last)

    async def messages_of_role(self, ref: SessionRef, role: str) -> list[StoredMessage]:
        """See `SessionStore`."""
        with self._reading() as reads:
            return read_messages_of_role(reads, ref, role)

    async def message(self, ref: SessionRef, message_id: str) -> StoredMessage | None:
        """See `SessionStore`."""
        with self._reading() as reads:
            return read_message(reads, ref, message_id)

    async def keyed(self, ref: SessionRef, first: int, last: int) -> list[KeyedMessage]:
        """See `SessionStore`."""
        with self._reading() as reads:
            return read_keyed(reads, ref, first, last)

    async def turn_start(self, ref: SessionRef, turn: int) -> int | None:
        """See `SessionStore`."""
        with self._reading() as reads:
            return read_turn_start(reads, ref, turn)

    async def without_facts(self, limit: int) -> list[tuple[SessionRef, str, int, list[StoredMessage]]]:
        """See `SessionStore`."""
        while True:
            with self._reading() as reads:
                found, complete = reads.without_facts(limit)
            if found or complete:
                return found
            await asyncio.sleep(0)

    async def summaries(self, ref: SessionRef) -> list[SummaryNode]:
        """See `SessionStore`."""
        with self._reading() as reads:
            return reads.summaries(ref)

    async def settings(
        self, namespace: str, scope: Literal["session", "agent"], scope_id: str
    ) -> SessionSettings:
        """See `SessionStore`."""
        with self._reading() as reads:
            return reads.settings_of(namespace, scope, scope_id)

    async def state(self, ref: SessionRef, name: str) -> bytes | None:
        """See `SessionStore`."""
        with self._reading() as reads:
            return reads.state(ref, name)

    async def advancement_known(self, ref: SessionRef, advancement_key: str) -> bool:
        """See `SessionStore`."""
        with self._reading() as reads:
            return reads.advancement_known(ref, advancement_key)

    def _call(self, callback: Callable[..., object], *values: object) -> None:
        """Call on the loop; nothing is left to tell once the loop is closed."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *values)

    @contextmanager
    def _reading(self) -> Generator[SQLiteLookups]:
        """One consistent view for all reads inside."""
        reads = self._reads
        if reads is None:
            raise StoreUnavailable(_CLOSED)
        with _faults():
            reads.begin()
            try:
                yield reads
            finally:
                reads.end()


@contextmanager
def _faults() -> Generator[None]:
    try:
        yield
    except apsw.Error as error:
        raise unavailable(error) from error


def _create_file(path: Path) -> None:
    """Make the file readable by its owner alone, before SQLite would make it with other rights."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
