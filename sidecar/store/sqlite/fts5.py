"""The search index of a SQLite store: a full-text table of SQLite's own, without the texts.

It has the terms of every message, its role, turn and tools and, if wanted, the parts of its words. Its rowids
are places, see `sidecar.store.search.scope`. Messages are indexed behind their commit in the order of their
row ids: those from the mark `search_from` on are not yet.

A message is taken out of the index in the transaction that erases or moves it. SQLite notes that apart from
the index: nothing finds the message any more, and `purge` rewrites the index without it.

`Preparer` reads messages and makes their terms, on any thread; `Indexer` adds them in short steps of the
writer's connection. A write waits for such a step, never for the texts.
"""

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.search import Extract
from sidecar.store.search.query import Groups, indexed_terms
from sidecar.store.search.scope import MOST_POSITION, place_of, position_of, uid_of
from sidecar.store.search.terms import written, written_part
from sidecar.store.sqlite.connection import Connection, Row
from sidecar.store.sqlite.reads import MESSAGE_COLUMNS, SESSION_COLUMNS, SQLiteReads, session_record
from sidecar.store.sqlite.schema import refuse_newer

FORMAT = 2
"""What is made of a text for the index; an index of another format is made anew."""
TABLE = "search"
_FEW_WAITING = 20_000
"""Rows that are sooner gone through than the positions of a session."""
_STEP_BYTES = 96 << 10
"""Bytes of messages that are added in one step, of several: about 20 ms."""
_LONG = 64 << 10
"""Characters from which on the index is given every term of a message once."""
_PAGES = 64
"""Pages of an index that are rewritten in one step."""
_SHARE = 100
"""An erasure waits so many times as long as the purge will take, about, before it is purged."""
_PAGES_A_SECOND = 3_000
_LATEST_S = 24 * 3600.0
_AT_ONCE_S = 0.05
_MARK = "SELECT value FROM marks WHERE name = ?"
_MARKS = "SELECT name, value FROM marks WHERE name IN ('search_format', 'search_parts', 'search_from')"
_SET_MARK = "INSERT OR REPLACE INTO marks VALUES (?, ?)"
_NEXT_SIZES = "SELECT row_id, length(body) FROM messages WHERE row_id >= ? ORDER BY row_id LIMIT ?"
_NEXT = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE row_id BETWEEN ? AND ?"
_STILL_THERE = "SELECT row_id FROM messages WHERE row_id BETWEEN ? AND ?"
_READABLE = (
    f"SELECT {SESSION_COLUMNS} FROM sessions WHERE namespace = ?1 "
    "AND (?2 IS NULL OR agent_id IS NULL OR agent_id = ?2) ORDER BY uid LIMIT ?3"
)


class FTS5Reads(SQLiteReads):
    """`SearchReads` over one connection."""

    has_parts = False
    _indexed_to = 0

    def refresh(self) -> None:
        """Look at how far the index reaches, in the state of the store that is read from now on."""
        marks = dict(self.query(_MARKS))
        current = marks.get("search_format") == FORMAT
        self.has_parts = current and marks.get("search_parts") == 1
        self._indexed_to = marks.get("search_from", 0) if current else 0

    def candidates(
        self, groups: Groups, parts: Sequence[str], low: int, high: int, limit: int, *, newest: bool
    ) -> list[int]:
        """See `SearchReads`."""
        if not self._indexed_to:
            return []
        wanted = ['("' + '" OR "'.join(map(written, group)) + '")' for group in groups]
        wanted += [f'"{written_part(part)}"' for part in parts]
        found = self.query(
            "SELECT rowid FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ? "
            f"ORDER BY rowid {'DESC' if newest else 'ASC'} LIMIT ?",
            (" AND ".join(wanted), low, high, limit),
        )
        return [place for (place,) in found]

    def not_indexed(self, low: int, high: int, limit: int) -> list[int]:
        """See `SearchReads`."""
        start = self._indexed_to
        newest = self.value("SELECT max(row_id) FROM messages") or 0
        if newest < start:
            return []
        uids = uid_of(low), uid_of(high)
        if newest - start < _FEW_WAITING:
            rows = self.query(
                "SELECT session, position FROM messages WHERE row_id >= ? AND +session BETWEEN ? AND ?",
                (start, *uids),
            )
        elif uids[0] == uids[1]:
            rows = self.query(
                "SELECT session, position FROM messages INDEXED BY message_by_position WHERE session = ? "
                "AND position BETWEEN ? AND ? AND row_id >= ? ORDER BY position DESC LIMIT ?",
                (uids[0], position_of(low), position_of(high), start, limit),
            )
        else:
            rows = self.query(
                "SELECT session, position FROM messages INDEXED BY message_by_position "
                "WHERE session BETWEEN ? AND ? AND row_id >= ? ORDER BY session DESC, position DESC LIMIT ?",
                (*uids, start, limit),
            )
        places = sorted(place_of(*row) for row in rows if row[1] <= MOST_POSITION)
        return [place for place in places if low <= place <= high][-limit:]

    def rows_at(self, places: Sequence[int]) -> list[MessageRow]:
        """See `SearchReads`."""
        return [MessageRow._make(row) for row in self._at(MESSAGE_COLUMNS, places)]

    def row_ids_at(self, places: Sequence[int]) -> dict[int, int]:
        """See `SearchReads`."""
        found = self._at("session, position, row_id", places)
        return {place_of(session, position): row_id for session, position, row_id in found}

    def mean_size(self, low: int, high: int, most: int) -> float:
        """See `SearchReads`."""
        found = self.value(
            "SELECT avg(size) FROM (SELECT length(body) AS size FROM messages "
            "WHERE (session, position) BETWEEN (?, ?) AND (?, ?) "
            "ORDER BY session DESC, position DESC LIMIT ?)",
            (uid_of(low), position_of(low), uid_of(high), position_of(high), most),
        )
        return found or 0.0

    def stamps_at(self, places: Sequence[int]) -> dict[int, int]:
        """See `SearchReads`."""
        found = self._at("session, position, timestamp_ms", places)
        return {place_of(session, position): stamp for session, position, stamp in found}

    def readable(self, namespace: str, agent_id: str | None, limit: int | None) -> list[SessionRecord]:
        """See `SearchReads`."""
        found = self.query(_READABLE, (namespace, agent_id, -1 if limit is None else limit))
        return [session_record(row) for row in found]

    def message_total(self) -> int:
        """See `SearchReads`."""
        return self.value("SELECT max(row_id) FROM messages") or 0

    def newest_session(self) -> int:
        """See `SearchReads`."""
        return self.value("SELECT max(uid) FROM sessions") or 0

    def children_of(self, uid: int) -> list[SessionRecord]:
        """See `SearchReads`."""
        found = self.query(f"SELECT {SESSION_COLUMNS} FROM sessions WHERE parent = ? ORDER BY uid", (uid,))
        return [session_record(row) for row in found]

    def owner(self, uid: int) -> SessionRecord | None:
        """See `SearchReads`."""
        found = self.query(f"SELECT {SESSION_COLUMNS} FROM sessions WHERE uid = ?", (uid,))
        return session_record(found[0]) if found else None

    def _at(self, columns: str, places: Sequence[int]) -> Iterator[Row]:
        by_session: dict[int, list[int]] = {}
        for place in places:
            by_session.setdefault(uid_of(place), []).append(position_of(place))
        for uid, positions in by_session.items():
            for start in range(0, len(positions), 500):
                some = positions[start : start + 500]
                yield from self.query(
                    f"SELECT {columns} FROM messages WHERE session = ? "
                    f"AND position IN ({', '.join('?' * len(some))})",
                    (uid, *some),
                )


def erase(reads: SQLiteReads, uid: int, first: int, last: int, now_ms: int) -> None:
    """Take messages of a session out of the index, inside the transaction that erases or moves them."""
    bounds = place_of(uid, first), place_of(uid, last)
    reads.query("DELETE FROM search WHERE rowid BETWEEN ? AND ?", bounds)
    if reads.connection.changes():
        reads.query("INSERT OR IGNORE INTO marks VALUES ('search_erased', ?)", (now_ms,))


class Prepared(NamedTuple):
    """The terms of some messages that follow each other in the order of their row ids."""

    start: int
    """The mark behind which they stand."""
    end: int
    """The first row id behind them."""
    terms: list[tuple[int, int, str]]
    """Row id, place, and what the index is given."""
    more: bool
    """Whether there may be messages behind them."""


class Unprepared(NamedTuple):
    """Some messages that follow each other in the order of their row ids, each with its session."""

    start: int
    end: int
    rows: list[tuple[MessageRow, SessionRecord]]
    more: bool


class Preparer:
    """Reads messages that are not indexed yet, and makes their terms; used on one thread."""

    def __init__(self, connection: Connection, extract: Extract, *, parts: bool) -> None:
        self._reads = SQLiteReads(connection)
        self._extract = extract
        self._parts = parts
        self._owners: dict[int, SessionRecord] = {}

    def prepare(self, start: int, most: int) -> Prepared:
        """The terms of up to `most` messages from the row id `start` on; of fewer where they are long."""
        return self.made(self.read(start, most))

    def read(self, start: int, most: int) -> Unprepared:
        """Those messages."""
        sizes = self._reads.query(_NEXT_SIZES, (start, most))
        taken = total = 0
        for _, size in sizes:
            total += size
            if taken and total > _STEP_BYTES:
                break
            taken += 1
        if not taken:
            return Unprepared(start, start, [], more=False)
        end = sizes[taken - 1][0] + 1
        found = (MessageRow._make(row) for row in self._reads.query(_NEXT, (start, end - 1)))
        rows = [(row, self._owner(row.session)) for row in found if row.position <= MOST_POSITION]
        return Unprepared(start, end, rows, more=taken < len(sizes) or len(sizes) == most)

    def made(self, unprepared: Unprepared) -> Prepared:
        """Their terms; any thread may make them."""
        start, end, rows, more = unprepared
        terms: list[tuple[int, int, str]] = []
        for row, owner in sorted(rows, key=lambda each: (each[0].session, each[0].position)):
            found = indexed_terms(row, owner, self._extract, parts=self._parts)
            if len(found) > _LONG:
                found = " ".join(set(found.split()))
            terms.append((row.row_id, place_of(row.session, row.position), found))
        return Prepared(start, end, terms, more)

    def _owner(self, uid: int) -> SessionRecord:
        if uid not in self._owners:
            if len(self._owners) > 4096:
                self._owners.clear()
            self._owners[uid] = self._reads.session_of(uid)
        return self._owners[uid]


class Indexer:
    """Adds what was prepared to the index, on the writer's connection, and purges what was erased."""

    def __init__(self, connection: Connection, *, parts: bool) -> None:
        self._reads = SQLiteReads(connection)
        self._connection = connection
        self._parts = parts
        self.indexed_to = 0
        """The first row id that is not indexed, as far as known."""
        self._waiting = True
        self._news = False
        self._purging = False
        self._failed = False
        self.adopt()

    @property
    def has_work(self) -> bool:
        """Whether messages wait to be indexed."""
        return self._waiting and not self._failed

    def note(self) -> None:
        """Say that something was committed."""
        self._waiting = self._news = True
        self._failed = False

    def adopt(self) -> None:
        """Take over the index as it is, or empty it where it is of another kind than is made now."""
        kind = (FORMAT, int(self._parts))
        with self._step():
            found = self._mark("search_format"), self._mark("search_parts")
            if found != kind:
                self._reads.query("INSERT INTO search(search) VALUES ('delete-all')")
                for name, value in zip(("search_format", "search_parts"), kind, strict=True):
                    self._reads.query(_SET_MARK, (name, value))
                self._reads.query(_SET_MARK, ("search_from", 1))

    def start(self) -> int:
        """The row id from which on messages are to be prepared now."""
        self._news = False
        return self._mark("search_from") or 0

    def add(self, prepared: Prepared) -> None:
        """Add what was prepared, but for what is gone; a fault is logged and ends the work for now."""
        try:
            with self._step():
                if self._mark("search_from") != prepared.start:
                    return  # another process was faster
                if prepared.terms:
                    self._add(prepared)
                self._reads.query(_SET_MARK, ("search_from", prepared.end))
            self.indexed_to = prepared.end
            self._waiting = prepared.more or self._news
        except Exception as error:
            self.failed(error)

    def failed(self, error: Exception) -> None:
        """Log why nothing can be indexed now; the next commit is a reason to try again."""
        _report(error)
        self._failed = True

    def _add(self, prepared: Prepared) -> None:
        # Rows that move get new ids, so a row of this id is as it was when it was read.
        there = {row_id for (row_id,) in self._reads.query(_STILL_THERE, (prepared.start, prepared.end - 1))}
        self._connection.cursor().executemany(
            "INSERT INTO search (rowid, terms) VALUES (?, ?)",
            [(place, terms) for row_id, place, terms in prepared.terms if row_id in there],
        )
        self._merge(len(prepared.terms))

    def purge_due_s(self) -> float | None:
        """Seconds until what was erased is to be purged, `None` where nothing was.

        A purge rewrites the whole index, so it waits until it is a small part of what is done.
        """
        if self._mark("search_purging") is not None:
            return 0.0
        erased_ms = self._mark("search_erased")
        if erased_ms is None:
            return None
        return max(0.0, min(_LATEST_S, self._purge_s() * _SHARE) - (time.time() - erased_ms / 1000))

    def purge(self) -> bool:
        """Rewrite a part of the index without what was erased; whether there is more to rewrite."""
        try:
            with self._step():
                return self._purge()
        except Exception as error:
            _report(error)
            return False

    def purge_at_once(self) -> None:
        """Leave nothing of what was erased, where that takes no time."""
        if self.purge_due_s() is not None and self._purge_s() <= _AT_ONCE_S:
            while self.purge():
                pass

    def purge_at_end(self) -> None:
        """Leave no word of what was erased."""
        if self.purge_due_s() is not None:
            while self.purge():
                pass

    def _purge(self) -> bool:
        if not self._purging:
            erased_ms = self._mark("search_erased")
            if erased_ms is not None:  # what is erased from now on is left to the next purge
                self._reads.query(_SET_MARK, ("search_purging", erased_ms))
                self._reads.query("DELETE FROM marks WHERE name = 'search_erased'")
            elif self._mark("search_purging") is None:
                return False
            self._purging = True
            self._merge(-_PAGES)
        elif not self._merge(_PAGES):
            self._purging = False
            self._reads.query("DELETE FROM marks WHERE name = 'search_purging'")
            return False
        return True

    def _purge_s(self) -> float:
        """How long a purge takes, about."""
        return self._reads.value("SELECT count(*) FROM search_data") / _PAGES_A_SECOND

    def _merge(self, pages: int) -> bool:
        """Whether something was merged."""
        before = self._reads.value("SELECT total_changes()")
        self._reads.query("INSERT INTO search(search, rank) VALUES ('merge', ?)", (pages,))
        return self._reads.value("SELECT total_changes()") - before >= 2

    def _mark(self, name: str) -> int | None:
        return self._reads.value(_MARK, (name,))

    @contextmanager
    def _step(self) -> Generator[None]:
        """One transaction, not waited for: what is lost with the power is indexed again."""
        connection = self._connection
        connection.execute("PRAGMA synchronous = NORMAL")
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                refuse_newer(connection)
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        finally:
            connection.execute("PRAGMA synchronous = FULL")


def _report(error: Exception) -> None:
    import logging

    logging.getLogger(__name__).error("indexing failed; searches look at the messages", exc_info=error)
