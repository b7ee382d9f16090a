"""Reads of a search from SQLite: messages, and what is indexed of them."""

from collections import OrderedDict
from collections.abc import Sequence

from sidecar.store.indexing.blocks import VOCABULARY_BLOCKS
from sidecar.store.indexing.bundles import BundleShelf, HeldShelf
from sidecar.store.indexing.covering import Sums
from sidecar.store.indexing.segments import FORMAT, QUALIFIED_COLUMNS, SEGMENT_COLUMNS, Segment, SegmentShelf
from sidecar.store.indexing.shelf import Shelf
from sidecar.store.indexing.spelling import unpacked
from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.sqlite.connection import Connection
from sidecar.store.sqlite.reads import MESSAGE_COLUMNS, SESSION_COLUMNS, SQLiteReads, session_record

_SEGMENTS = (
    f"SELECT {SEGMENT_COLUMNS} FROM search_segments "
    "WHERE session = ? AND first BETWEEN ? - 65535 AND ? AND first + size > ? AND live ORDER BY first"
)
_SEGMENTS_TO_READ = (
    f"{_SEGMENTS.removesuffix(' ORDER BY first')} "
    f"AND EXISTS (SELECT 1 FROM marks WHERE name = 'index_format' AND value = {FORMAT}) ORDER BY first"
)
_SEGMENTS_IN = (
    f"SELECT {QUALIFIED_COLUMNS} "
    "FROM sessions JOIN search_segments ON session = uid WHERE namespace = ? AND live "
    f"AND EXISTS (SELECT 1 FROM marks WHERE name = 'index_format' AND value = {FORMAT}) "
    "ORDER BY session, first"
)
_LIVE_AFTER = f"SELECT {SEGMENT_COLUMNS} FROM search_segments WHERE segment > ? AND live"
_LIVE = f"SELECT {SEGMENT_COLUMNS} FROM search_segments WHERE segment = ? AND live"
_BLOCK = "SELECT content FROM search_blocks WHERE block = ?"
_READABLE = (
    f"SELECT {SESSION_COLUMNS} FROM sessions WHERE namespace = ?1 "
    "AND (?2 IS NULL OR agent_id IS NULL OR agent_id = ?2) ORDER BY uid"
)
_CHANGED = f"{_READABLE.removesuffix(' ORDER BY uid')} AND updated_ms >= ?3"
_SUMS_OF_SESSIONS = (
    "SELECT count(*), coalesce(sum(uid), 0), coalesce(sum(updated_ms), 0), coalesce(sum(message_count), 0), "
    "coalesce(sum(revision), 0), coalesce(sum(shared), 0) FROM sessions WHERE namespace = ?1 "
    "AND (?2 IS NULL OR agent_id IS NULL OR agent_id = ?2)"
)
_SUMS_OF_SEGMENTS = (
    "SELECT count(*), coalesce(sum(segment), 0), coalesce(sum(session), 0), coalesce(sum(first), 0), "
    "coalesce(sum(bundle), 0) FROM search_segments WHERE live"
)
_ROWS_AT = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE session = ? AND position IN ({{}})"
_STAMPS = "SELECT timestamp_ms FROM messages WHERE session = ? AND position BETWEEN ? AND ? ORDER BY position"
_KEPT_BYTES = 48 << 20
_KEPT_SUMS = 8


def block_id(segment: int, number: int) -> int:
    """The key of a block."""
    return segment << 16 | number


class IndexReads(SQLiteReads):
    """Reads of segments over one connection."""

    def segments(self, uid: int, first: int, last: int) -> list[Segment]:
        """The segments of messages that a session owns, where they overlap these positions, in order."""
        found = self.query(_SEGMENTS, (uid, first, last, first))
        return [Segment._make(row) for row in found]

    def block(self, segment: int, number: int) -> bytes | None:
        """A block of a segment, `unpacked`."""
        content = self.value(_BLOCK, (block_id(segment, number),))
        return None if content is None else unpacked(number, content)


class SQLiteSearchReads(IndexReads):
    """`SearchReads`, which keeps the blocks that every search needs: segments never change."""

    indexes = True

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._sums: dict[tuple[str, str | None], tuple[int, Sums]] = {}
        self._kept: OrderedDict[tuple[int, int], bytes | None] = OrderedDict()
        self._kept_bytes = 0

    def rows_at(self, uid: int, positions: Sequence[int]) -> list[MessageRow]:
        """See `SearchReads`."""
        statement = _ROWS_AT.format(", ".join("?" * len(positions)))
        return list(map(MessageRow._make, self.query(statement, (uid, *positions))))

    def segments(self, uid: int, first: int, last: int) -> list[Segment]:
        """See `SearchReads`; nothing that is indexed in another way."""
        found = self.query(_SEGMENTS_TO_READ, (uid, first, last, first))
        return [Segment._make(row) for row in found]

    def segments_in(self, namespace: str) -> list[Segment]:
        """See `SearchReads`."""
        return list(map(Segment._make, self.query(_SEGMENTS_IN, (namespace,))))

    def segments_after(self, segment: int) -> list[Segment]:
        """See `SearchReads`."""
        return list(map(Segment._make, self.query(_LIVE_AFTER, (segment,))))

    def bundle(self, number: int) -> Segment | None:
        """See `SearchReads`."""
        found = self.query(_LIVE, (number,))
        return Segment._make(found[0]) if found else None

    def shelf(self, segment: Segment) -> Shelf:
        """See `SearchReads`."""
        kind = HeldShelf if segment.bundle > 0 else SegmentShelf
        return kind(segment, self._block, self._stamps)

    def bundle_shelf(self, bundle: Segment, held: Sequence[Segment]) -> Shelf:
        """See `SearchReads`."""
        shelf = BundleShelf(bundle, self._block, self._stamps)
        shelf.held = held
        return shelf

    def changed_since(self, namespace: str, agent_id: str | None, stamp_ms: int) -> list[SessionRecord]:
        """See `SearchReads`."""
        return [session_record(row) for row in self.query(_CHANGED, (namespace, agent_id, stamp_ms))]

    def sums(self, namespace: str, agent_id: str | None) -> Sums | None:
        """See `SearchReads`; counted anew only when somebody has written to the file."""
        version = self.value("PRAGMA data_version")
        counted, sums = self._sums.get((namespace, agent_id), (None, None))
        if counted != version or sums is None:
            sessions = self.query(_SUMS_OF_SESSIONS, (namespace, agent_id))[0]
            sums = Sums(*sessions, *self.query(_SUMS_OF_SEGMENTS)[0])
            if len(self._sums) > _KEPT_SUMS:
                self._sums.clear()
            self._sums[namespace, agent_id] = version, sums
        return sums

    def readable(self, namespace: str, agent_id: str | None) -> list[SessionRecord]:
        """See `SearchReads`."""
        return [session_record(row) for row in self.query(_READABLE, (namespace, agent_id))]

    def _block(self, segment: int, number: int) -> bytes | None:
        if number < VOCABULARY_BLOCKS:
            return self.block(segment, number)
        key = segment, number
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        found = self._kept[key] = self.block(segment, number)
        self._kept_bytes += len(found or b"")
        while self._kept_bytes > _KEPT_BYTES:
            _, dropped = self._kept.popitem(last=False)
            self._kept_bytes -= len(dropped or b"")
        return found

    def _stamps(self, uid: int, first: int, last: int) -> list[int]:
        return [stamp for (stamp,) in self.query(_STAMPS, (uid, first, last))]
