"""Changes of the search index in PostgreSQL, made by whoever has claimed the session for it.

A session is indexed by its positions, which are given out without gaps under the lock of the session. So
nothing that commits late can be missed, as it could be by row ids. Every step takes the lock that writes
take, because a write that moves or erases messages must find every segment of them.
"""

from collections.abc import Generator
from contextlib import contextmanager

from sidecar.store.indexing.bundles import LooseSegment
from sidecar.store.indexing.segments import FORMAT, QUALIFIED_COLUMNS, SEGMENT_COLUMNS, Blocks, Segment
from sidecar.store.postgres.connection import Connection, Row
from sidecar.store.postgres.index_reads import IndexReads
from sidecar.store.postgres.index_rows import rows_of
from sidecar.store.postgres.locking import place_of_session
from sidecar.store.postgres.reading_ahead import ReadingAhead
from sidecar.store.postgres.reads import SESSION_COLUMNS, PostgresReads, session_record
from sidecar.store.postgres.schema import INDEX_LOCKS, LOCKS, STRUCTURE_LOCK
from sidecar.store.postgres.statements import LOCK_PLACES, LOCK_SHARED
from sidecar.store.records import SessionRecord

_ADD_SEGMENT = (
    "INSERT INTO search_segments (session, first, size, term_bits, total, earliest_ms, latest_ms, bundle, "
    f"start, live, format) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, {FORMAT}) RETURNING segment"
)
_ADD_BLOCKS = "INSERT INTO search_blocks (block, content) VALUES (%s, %s)"
_SESSION_NOW = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE uid = %s"
_SIZE = (
    "SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM messages "
    "WHERE session = %s AND position BETWEEN %s AND %s"
)
_GROWN = (
    "SELECT uid FROM sessions LEFT JOIN (SELECT session, sum(size) AS indexed FROM search_segments "
    f"WHERE live AND format = {FORMAT} GROUP BY session) AS known ON session = uid "
    "WHERE message_count - shared - coalesce(indexed, 0) >= %s "
    "OR message_count - shared - coalesce(indexed, 0) >= %s AND updated_ms < %s ORDER BY uid"
)
_LEFTOVERS = f"SELECT segment FROM search_segments WHERE session = %s AND (NOT live OR format < {FORMAT})"
_LOOSE = (
    f"SELECT {QUALIFIED_COLUMNS}, namespace, agent_id "
    "FROM search_segments JOIN sessions ON session = uid "
    f"WHERE live AND format = {FORMAT} AND bundle = 0 AND updated_ms < %s AND size < %s "
    "ORDER BY namespace, agent_id, uid, first"
)
_ONE = "SELECT segment, bundle FROM search_segments WHERE segment = %s"
_HELD = "SELECT segment, session FROM search_segments WHERE bundle = ANY(%s::bigint[])"
_RELEASE = "UPDATE search_segments SET bundle = 0 WHERE bundle = ANY(%s::bigint[])"
_DROP = "DELETE FROM search_segments WHERE segment = ANY(%s::bigint[])"
_ROWS = "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'search_blocks'::regclass"
"""As they were when the table was cleared up last."""
_CLEAR_UP = "VACUUM (SKIP_LOCKED) search_blocks, search_segments"
_MANY_DROPPED = 64
_SHARE_DROPPED = 8
_DROP_BLOCKS = (
    "DELETE FROM search_blocks USING unnest(%s::bigint[]) AS gone (segment) "
    "WHERE block >= gone.segment << 16 AND block < (gone.segment + 1) << 16"
)
BEHIND = "SELECT segment, bundle FROM search_segments WHERE session = %s AND first + size > %s"
ACROSS = (
    "SELECT segment, bundle FROM search_segments WHERE session = %s AND (first < %s AND first + size > %s "
    "OR first <= %s AND first + size > %s OR NOT live)"
)
SHIFT = "UPDATE search_segments SET first = first + %s WHERE session = %s AND first >= %s"
MOVE = "UPDATE search_segments SET session = %s WHERE session = %s AND first BETWEEN %s AND %s"


def erase(reads: PostgresReads, segments: list[Row]) -> set[int]:
    """Erase segments, each given with its bundle, and with them the bundles that they are in.

    The sessions of which something is no longer indexed because of that.
    """
    if not segments:
        return set()
    gone = {number for segment, bundle in segments for number in (segment, abs(bundle)) if number}
    held = reads.query(_HELD, (list(gone),))
    reads.cursor.execute(_RELEASE, ([-segment for segment in gone],))
    gone.update(segment for segment, _ in held)
    for statement in (_DROP, _DROP_BLOCKS):
        reads.cursor.execute(statement, (list(gone),))
    return {session for _, session in held}


class IndexTables(IndexReads):
    """`IndexStore` over a connection of its own."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._ahead = ReadingAhead(self.query)
        self.dropped = 0
        """Rows with blocks that were erased since the tables were cleared up last."""

    @contextmanager
    def step(self, session: SessionRecord | None) -> Generator[None, None, None]:
        """See `IndexStore`; not waited for: what a crash of the server loses is indexed anew."""
        self.cursor.execute("BEGIN")
        try:
            self.cursor.execute("SET LOCAL synchronous_commit = off")
            if session is not None:
                self.cursor.execute(LOCK_SHARED, (LOCKS, STRUCTURE_LOCK))
                self.cursor.execute(LOCK_PLACES, (LOCKS, [place_of_session(session.ref)]))
            yield
            self.cursor.execute("COMMIT")
        except BaseException:
            if not self.connection.closed:
                self.cursor.execute("ROLLBACK")
            raise

    def claim(self, uid: int) -> bool:
        """Whether nobody else indexes this session; until `release`, nobody else will."""
        return self.value("SELECT pg_try_advisory_lock(%s::int, %s::int)", (INDEX_LOCKS, uid % (1 << 31)))

    def release(self, uid: int) -> None:
        """Give a claim up."""
        self._ahead.forget()
        self.query("SELECT pg_advisory_unlock(%s::int, %s::int)", (INDEX_LOCKS, uid % (1 << 31)))

    def grown(self, least: int, few: int, before_ms: int) -> list[int]:
        """Sessions with at least so many messages that are not indexed; fewer, if written to before."""
        return [uid for (uid,) in self.query(_GROWN, (least, few, before_ms))]

    def leftovers(self, uid: int) -> list[int]:
        """Segments of a session that nobody will complete, or that an earlier version has made."""
        return [segment for (segment,) in self.query(_LEFTOVERS, (uid,))]

    def session_now(self, uid: int) -> SessionRecord | None:
        """See `IndexStore`."""
        found = self.query(_SESSION_NOW, (uid,))
        return session_record(found[0]) if found else None

    def size(self, uid: int, first: int, last: int) -> int:
        """See `IndexStore`."""
        return self.value(_SIZE, (uid, first, last))

    def loose(self, before_ms: int, below: int) -> list[LooseSegment]:
        """See `IndexStore`."""
        found = self.query(_LOOSE, (before_ms, below))
        return [LooseSegment(Segment._make(row[:-2]), *row[-2:]) for row in found]

    def promise(self, segments: list[int], bundle: int) -> None:
        """See `IndexStore`."""
        self.cursor.execute(
            "UPDATE search_segments SET bundle = %s WHERE segment = ANY(%s::bigint[])", (-bundle, segments)
        )

    def add(self, segment: Segment, *, live: bool) -> int:
        """See `IndexStore`."""
        return self.value(_ADD_SEGMENT, (*segment[1:], live))

    def add_blocks(self, segment: int, blocks: Blocks) -> None:
        """See `IndexStore`."""
        if blocks:
            self.cursor.executemany(_ADD_BLOCKS, rows_of(segment, blocks))

    def block(self, segment: int, number: int) -> bytes | None:
        """See `IndexStore`; blocks that rise are asked of the server some at a time."""
        return self._ahead.block(segment, number)

    def exists(self, segment: int) -> bool:
        """See `IndexStore`."""
        return self.value("SELECT 1 FROM search_segments WHERE segment = %s", (segment,)) is not None

    def find(self, segment: int) -> Segment | None:
        """See `IndexStore`."""
        found: list[Row] = self.query(
            f"SELECT {SEGMENT_COLUMNS} FROM search_segments WHERE segment = %s AND live", (segment,)
        )
        return Segment._make(found[0]) if found else None

    def reveal(self, segment: int, first: int) -> None:
        """See `IndexStore`."""
        self.cursor.execute(
            "UPDATE search_segments SET live = true, first = %s WHERE segment = %s", (first, segment)
        )

    def retire(self, segments: list[int]) -> None:
        """See `IndexStore`."""
        self.cursor.execute(
            "UPDATE search_segments SET live = false, bundle = 0 WHERE segment = ANY(%s::bigint[])",
            (segments,),
        )

    def drop(self, segment: int) -> None:
        """See `IndexStore`."""
        erase(self, self.query(_ONE, (segment,)))
        self.dropped += self.cursor.rowcount

    def clear_up(self) -> None:
        """Let the room of erased blocks be used again, once they are an eighth of all.

        The server does so by itself, but so late that the table has grown to several times its content.
        """
        if self.dropped < _MANY_DROPPED or self.dropped * _SHARE_DROPPED < self.value(_ROWS):
            return
        self.dropped = 0
        self.cursor.execute(_CLEAR_UP)
