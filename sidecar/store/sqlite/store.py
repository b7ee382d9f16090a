"""The `SessionStore` in one SQLite file."""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import apsw

from sidecar.private_files import create
from sidecar.store.errors import StoreUnavailable
from sidecar.store.reads import ReadsOnLoop
from sidecar.store.search import Extract, SearchQuery, SearchResult, SessionsResult, plain_text
from sidecar.store.sqlite.connection import connect
from sidecar.store.sqlite.faults import damaged, unavailable
from sidecar.store.sqlite.folder import secure
from sidecar.store.sqlite.lookups import SQLiteLookups
from sidecar.store.sqlite.upkeep.replacement import settle
from sidecar.store.sqlite.writer import Writer
from sidecar.store.stored import SessionRef
from sidecar.store.submitting import Submitting, refuse
from sidecar.store.writes import Write

if TYPE_CHECKING:
    from sidecar.store.sqlite.searches import Searches

_BUSY_MS = 2_000
_CACHE_KIB = 8 * 1024
_SMALLEST = 512
"""Bytes of the smallest database."""


class SQLiteStore(ReadsOnLoop, Submitting):
    """Sessions in a SQLite file: writes on a thread of their own, short reads on the loop's."""

    kind = "sqlite"

    def __init__(
        self, path: Path, *, vfs: str | None = None, extract: Extract | None = None, parts: bool = True
    ) -> None:
        """`parts` says whether parts of words are indexed."""
        super().__init__()
        self.secrets: list[bytes] = []
        self._parts = parts
        self._path = path
        self._vfs = vfs
        self._writer: Writer | None = None
        self._current: _View | None = None
        self._closed: asyncio.Event | None = None
        self._extract = extract or plain_text
        self._search: Searches | None = None

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
            opened=lambda error: self._call(_settle, opened, error),
            completed=lambda writes: self._call(self.tell, writes),
            closed=lambda: self._call(closed.set),
            extract=self._extract,
            parts=self._parts,
            hold=self._is_searching,
        )
        writer.start()
        error = await opened
        if error is not None:
            raise error
        self._writer, self._closed = writer, closed
        try:
            connection = connect(self._path, self._vfs, busy_ms=_BUSY_MS, cache_kib=_CACHE_KIB)
            connection.execute("PRAGMA query_only = ON")
            found = connection.execute("SELECT secret FROM secrets ORDER BY number DESC").fetchall()
        except apsw.Error as error:
            await self.close()
            raise unavailable(error) from error
        self.secrets = [secret for (secret,) in found]
        self._current = _View(SQLiteLookups(connection))
        self.erase_rest()

    async def close(self) -> None:
        """See `SessionStore`; what was erased leaves the file before."""
        await self.erased()
        writer, self._writer = self._writer, None
        view, self._current = self._current, None
        search, self._search = self._search, None
        if view is not None:
            view.reads.connection.close()
        if search is not None:
            await search.close()
        if writer is not None:
            writer.put(None)
        if self._closed is not None:
            await self._closed.wait()

    def submit(self, write: Write, done: Callable[[Any], None]) -> None:
        """See `SessionStore`."""
        write.done = done
        if self._writer is None:
            refuse(write)
        else:
            self._writer.put(write)

    def withdraw(self, write: Write) -> bool:
        """See `SessionStore`."""
        return self._writer is not None and self._writer.withdraw(write)

    async def search(self, ref: SessionRef, query: SearchQuery) -> SearchResult:
        """See `SessionSearch`."""
        from sidecar.store.search.answer import search_session

        searches = self._searching()
        return await searches.run(
            ref, query, lambda reads: search_session(reads, ref, query, searches.contents)
        )

    async def search_sessions(
        self, namespace: str, query: SearchQuery, *, without: Collection[SessionRef] = ()
    ) -> SessionsResult:
        """See `SessionSearch`."""
        from sidecar.store.search.answer import search_sessions

        searches = self._searching()
        return await searches.run(
            (namespace, query.agent_id),
            query,
            lambda reads: search_sessions(reads, namespace, query, without, searches.contents),
        )

    @property
    def indexing(self) -> bool:
        """Whether messages wait to be indexed, or are being indexed now."""
        return self._writer is not None and self._writer.indexing

    def _is_searching(self) -> bool:
        search = self._search  # the writer's thread asks, while the store may be closing
        return search is not None and search.is_busy

    def _searching(self) -> "Searches":
        """Made when it is asked for first."""
        self._view()
        if self._search is None:
            from sidecar.store.sqlite.searches import Searches

            self._search = Searches(self._path, self._vfs, self._extract)
        return self._search

    def _view(self) -> "_View":
        if self._current is None:
            raise StoreUnavailable("the store is not open")
        return self._current

    def _call(self, callback: Callable[..., object], *values: object) -> None:
        """Call on the loop; nothing is left to tell once the loop is closed."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *values)


class _View:
    """A read transaction: later commits do not change what is read inside."""

    def __init__(self, reads: SQLiteLookups) -> None:
        self.reads = reads

    def __enter__(self) -> SQLiteLookups:
        try:
            self.reads.begin()
        except apsw.Error as error:
            raise unavailable(error) from error
        return self.reads

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            self.reads.end()
        except apsw.Error as failed:
            error = error or failed
        if isinstance(error, apsw.Error):
            raise unavailable(error) from error


def _settle(opened: asyncio.Future[StoreUnavailable | None], error: StoreUnavailable | None) -> None:
    if not opened.done():
        opened.set_result(error)


def _create_file(path: Path) -> None:
    """Make the file, readable by its owner alone, before SQLite would make it with other rights.

    SQLite takes a file of a few bytes for an empty database, so that is refused here. A file that is there is
    not opened: closing it would drop the locks that other connections of this process have on it.
    """
    settle(path)
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        with suppress(FileExistsError):  # another process was faster
            create(path.resolve()).close()
    else:
        if 0 < size < _SMALLEST:
            raise damaged()
    secure(path)
