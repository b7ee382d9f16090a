"""Changes of the search index in SQLite, made by the writer thread inside a transaction."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from sidecar.store.indexing.bundles import LooseSegment
from sidecar.store.indexing.segments import FORMAT, QUALIFIED_COLUMNS, SEGMENT_COLUMNS, Blocks, Segment
from sidecar.store.records import SessionRecord
from sidecar.store.sqlite.connection import Connection, Row
from sidecar.store.sqlite.index_reads import IndexReads, block_id
from sidecar.store.sqlite.reads import SESSION_COLUMNS, session_record

_SESSION_NOW = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE uid = ?"
_ADD_SEGMENT = (
    "INSERT INTO search_segments (session, first, size, term_bits, total, earliest_ms, latest_ms, "
    "bundle, start, live) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ADD_BLOCK = "INSERT INTO search_blocks (block, content) VALUES (?, ?)"
_DROP_BLOCKS = "DELETE FROM search_blocks WHERE block BETWEEN ? AND ?"
_DROP_SEGMENT = "DELETE FROM search_segments WHERE segment = ?"
_BEHIND = "SELECT segment FROM search_segments WHERE session = ? AND first + size > ?"
_ACROSS = (
    "SELECT segment FROM search_segments WHERE session = ? "
    "AND (first < ?2 AND first + size > ?2 OR first <= ?3 AND first + size > ?3 + 1 OR NOT live)"
)


_LOOSE = (
    f"SELECT {QUALIFIED_COLUMNS}, namespace, agent_id "
    "FROM search_segments JOIN sessions ON session = uid "
    "WHERE live AND bundle = 0 AND size < ?2 AND updated_ms < ?1 ORDER BY namespace, agent_id, uid, first"
)
_BUNDLE_OF = "SELECT bundle FROM search_segments WHERE segment = ?"
_HELD = "SELECT segment, session FROM search_segments WHERE bundle = ?"
_RELEASE = "UPDATE search_segments SET bundle = 0 WHERE bundle = ?"
_SIZE = "SELECT sum(length(body)) FROM messages WHERE session = ? AND position BETWEEN ? AND ?"


def _nothing() -> None:
    """Where nobody wants to know."""


class IndexTables(IndexReads):
    """`IndexStore`, with what happens to the index when messages move or go."""

    def __init__(self, connection: Connection, note_rewriting: Callable[[], None] = _nothing) -> None:
        super().__init__(connection)
        self._note_rewriting = note_rewriting
        self.bared: set[int] = set()
        """Sessions of which something is no longer indexed, because a neighbour was erased."""

    @contextmanager
    def step(self, session: SessionRecord | None) -> Generator[None, None, None]:
        """See `IndexStore`; not waited for: what is lost with the power is indexed anew."""
        del session
        connection = self.connection
        connection.execute("PRAGMA synchronous = NORMAL")
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        finally:
            connection.execute("PRAGMA synchronous = FULL")
        self._note_rewriting()

    def session_now(self, uid: int) -> SessionRecord | None:
        """See `IndexStore`."""
        found = self.query(_SESSION_NOW, (uid,))
        return session_record(found[0]) if found else None

    def size(self, uid: int, first: int, last: int) -> int:
        """See `IndexStore`."""
        return self.value(_SIZE, (uid, first, last)) or 0

    def drop_behind(self, uid: int, first: int) -> bool:
        """Erase what is indexed of messages from this position on; with it goes their neighbours' on a shelf.

        Whether there was anything.
        """
        return self._drop(self.query(_BEHIND, (uid, first)))

    def shift(self, uid: int, first: int, by: int) -> bool:
        """Follow messages that move up from a position on. Whether anything was erased for it."""
        dropped = self._drop(self.query(_ACROSS, (uid, first, first - 1)))
        self._cursor.execute(
            "UPDATE search_segments SET first = first + ? WHERE session = ? AND first >= ?", (by, uid, first)
        )
        return dropped

    def move(self, source: int, uid: int, first: int, last: int) -> bool:
        """Follow messages that become another session's own. Whether anything was erased for it."""
        dropped = self._drop(self.query(_ACROSS, (source, first, last)))
        self._cursor.execute(
            "UPDATE search_segments SET session = ? WHERE session = ? AND first BETWEEN ? AND ?",
            (uid, source, first, last),
        )
        return dropped

    def loose(self, before_ms: int, below: int) -> list[LooseSegment]:
        """See `IndexStore`."""
        found = self.query(_LOOSE, (before_ms, below))
        return [LooseSegment(Segment._make(row[:-2]), *row[-2:]) for row in found]

    def promise(self, segments: list[int], bundle: int) -> None:
        """See `IndexStore`."""
        for segment in segments:
            self._cursor.execute(
                "UPDATE search_segments SET bundle = ? WHERE segment = ?", (-bundle, segment)
            )

    def add(self, segment: Segment, *, live: bool) -> int:
        """Note a segment; the number given to it."""
        self._cursor.execute(_ADD_SEGMENT, (*segment[1:], int(live)))
        return self.connection.last_insert_rowid()

    def add_blocks(self, segment: int, blocks: Blocks) -> None:
        """Keep blocks of a segment."""
        self._cursor.executemany(
            _ADD_BLOCK, [(block_id(segment, number), content) for number, content in blocks]
        )

    def retire(self, segments: list[int]) -> None:
        """Let searches no longer see these segments."""
        for segment in segments:
            self._cursor.execute(
                "UPDATE search_segments SET live = 0, bundle = 0 WHERE segment = ?", (segment,)
            )

    def reveal(self, segment: int, first: int) -> None:
        """Let searches see a segment, which begins at this position."""
        self._cursor.execute(
            "UPDATE search_segments SET live = 1, first = ? WHERE segment = ?", (first, segment)
        )

    def retired(self) -> list[int]:
        """Segments that searches do not see: replaced, or never completed."""
        return [segment for (segment,) in self.query("SELECT segment FROM search_segments WHERE NOT live")]

    def drop(self, segment: int) -> None:
        """Erase a segment, and with it the bundle that it is in."""
        self._drop([(segment,)])

    def exists(self, segment: int) -> bool:
        """Whether a segment has not been erased."""
        return self.value("SELECT 1 FROM search_segments WHERE segment = ?", (segment,)) is not None

    def find(self, segment: int) -> Segment | None:
        """A segment that searches see."""
        found = self.query(
            f"SELECT {SEGMENT_COLUMNS} FROM search_segments WHERE segment = ? AND live", (segment,)
        )
        return Segment._make(found[0]) if found else None

    def adopt_format(self) -> None:
        """Retire what another version has indexed in another way."""
        if self.value("SELECT value FROM marks WHERE name = 'index_format'") != FORMAT:
            self._cursor.execute("UPDATE search_segments SET live = 0 WHERE live")
            self._cursor.execute("INSERT OR REPLACE INTO marks VALUES ('index_format', ?)", (FORMAT,))

    def _drop(self, segments: list[Row]) -> bool:
        gone = {segment for (segment,) in segments}
        for (segment,) in segments:
            bundle = self.value(_BUNDLE_OF, (segment,))
            if bundle:
                gone.add(abs(bundle))
        for segment in list(gone):
            self._cursor.execute(_RELEASE, (-segment,))
            for held, session in self.query(_HELD, (segment,)):
                gone.add(held)
                self.bared.add(session)
        for segment in gone:
            self._cursor.execute(_DROP_BLOCKS, (block_id(segment, 0), block_id(segment, 0xFFFF)))
            self._cursor.execute(_DROP_SEGMENT, (segment,))
        return bool(segments)
