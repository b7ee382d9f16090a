"""Reads of a search from SQLite: messages, and what is indexed of them."""

from collections import OrderedDict

from sidecar.store.indexing.blocks import APART_BLOCKS, LENGTHS_BLOCK, VOCABULARY_BLOCKS
from sidecar.store.indexing.segments import FORMAT, Segment, SegmentShelf
from sidecar.store.indexing.shelf import Shelf
from sidecar.store.records import SessionRecord
from sidecar.store.sqlite.connection import Connection
from sidecar.store.sqlite.reads import SESSION_COLUMNS, SQLiteReads, session_record

SEGMENT_COLUMNS = "segment, session, first, size, term_bits, total, earliest_ms, latest_ms"

_SEGMENTS = (
    f"SELECT {SEGMENT_COLUMNS} FROM search_segments "
    "WHERE session = ? AND first BETWEEN ? - 65535 AND ? AND first + size > ? AND live ORDER BY first"
)
_SHELVES = (
    f"{_SEGMENTS.removesuffix(' ORDER BY first')} "
    f"AND EXISTS (SELECT 1 FROM marks WHERE name = 'index_format' AND value = {FORMAT}) ORDER BY first"
)
_SHELVES_IN = (
    f"SELECT {', '.join(f'search_segments.{name}' for name in SEGMENT_COLUMNS.split(', '))} "
    "FROM sessions JOIN search_segments ON session = uid WHERE namespace = ? AND live "
    f"AND EXISTS (SELECT 1 FROM marks WHERE name = 'index_format' AND value = {FORMAT}) "
    "ORDER BY session, first"
)
_BLOCK = "SELECT content FROM search_blocks WHERE block = ?"
_READABLE = (
    f"SELECT {SESSION_COLUMNS} FROM sessions WHERE namespace = ?1 "
    "AND (?2 IS NULL OR agent_id IS NULL OR agent_id = ?2) ORDER BY uid"
)
_STAMPS = "SELECT timestamp_ms FROM messages WHERE session = ? AND position BETWEEN ? AND ? ORDER BY position"
_KEPT_BYTES = 32 << 20


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
        """A block of a segment."""
        return self.value(_BLOCK, (block_id(segment, number),))


class SQLiteSearchReads(IndexReads):
    """`SearchReads`, which keeps the blocks that every search needs: segments never change."""

    indexes = True

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._kept: OrderedDict[tuple[int, int], bytes | None] = OrderedDict()
        self._kept_bytes = 0

    def shelves(self, uid: int, first: int, last: int) -> list[Shelf]:
        """See `SearchReads`."""
        found = self.query(_SHELVES, (uid, first, last, first))
        return [SegmentShelf(Segment._make(row), self._block, self._stamps) for row in found]

    def shelves_in(self, namespace: str) -> dict[int, list[Shelf]]:
        """See `SearchReads`."""
        found: dict[int, list[Shelf]] = {}
        for segment in map(Segment._make, self.query(_SHELVES_IN, (namespace,))):
            found.setdefault(segment.session, []).append(SegmentShelf(segment, self._block, self._stamps))
        return found

    def readable(self, namespace: str, agent_id: str | None) -> list[SessionRecord]:
        """See `SearchReads`."""
        return [session_record(row) for row in self.query(_READABLE, (namespace, agent_id))]

    def _block(self, segment: int, number: int) -> bytes | None:
        if not (VOCABULARY_BLOCKS <= number < APART_BLOCKS or number == LENGTHS_BLOCK):
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
