"""Reads of a search from PostgreSQL: messages, and what is indexed of them."""

from collections import OrderedDict
from collections.abc import Sequence

from sidecar.store.indexing.bundles import BundleShelf, HeldShelf
from sidecar.store.indexing.covering import Sums
from sidecar.store.indexing.segments import FORMAT, QUALIFIED_COLUMNS, SEGMENT_COLUMNS, Segment, SegmentShelf
from sidecar.store.indexing.shelf import Shelf
from sidecar.store.postgres.connection import Connection
from sidecar.store.postgres.index_rows import Key, block_id, blocks_in
from sidecar.store.postgres.lookups import PostgresLookups
from sidecar.store.postgres.reads import MESSAGE_COLUMNS, SESSION_COLUMNS, PostgresReads, session_record
from sidecar.store.records import MessageRow, SessionRecord

_SEGMENTS = (
    f"SELECT {SEGMENT_COLUMNS} FROM search_segments WHERE session = %s AND first BETWEEN %s - 65535 AND %s "
    f"AND first + size > %s AND live AND format = {FORMAT} ORDER BY first"
)
_SEGMENTS_IN = (
    f"SELECT {QUALIFIED_COLUMNS} "
    "FROM sessions JOIN search_segments ON session = uid "
    "WHERE left(namespace, 200) = left(%s, 200) AND namespace = %s "
    f"AND live AND format = {FORMAT} ORDER BY session, first"
)
_LIVE_AFTER = (
    f"SELECT {SEGMENT_COLUMNS} FROM search_segments WHERE segment > %s AND live AND format = {FORMAT}"
)
_BUNDLES = f"SELECT {SEGMENT_COLUMNS} FROM search_segments WHERE session = 0 AND live AND format = {FORMAT}"
_ROW_WITH = (
    "SELECT block, content FROM search_blocks WHERE block <= wanted AND block >= wanted >> 16 << 16 "
    "ORDER BY block DESC LIMIT 1"
)
_ROWS = f"SELECT block, content FROM unnest(%s::bigint[]) AS wanted, LATERAL ({_ROW_WITH}) AS found"
_READABLE = (
    f"SELECT {SESSION_COLUMNS} FROM sessions WHERE left(namespace, 200) = left(%s, 200) AND namespace = %s "
    "AND (%s::text IS NULL OR agent_id IS NULL OR agent_id = %s) ORDER BY uid"
)
_CHANGED = f"{_READABLE.removesuffix(' ORDER BY uid')} AND updated_ms >= %s"
_SUMS_OF_SESSIONS = (
    "SELECT count(*), coalesce(sum(uid), 0)::bigint, coalesce(sum(updated_ms), 0)::bigint, "
    "coalesce(sum(message_count), 0)::bigint, coalesce(sum(revision), 0)::bigint, "
    "coalesce(sum(shared), 0)::bigint FROM sessions WHERE left(namespace, 200) = left(%s, 200) "
    "AND namespace = %s AND (%s::text IS NULL OR agent_id IS NULL OR agent_id = %s)"
)
_SUMS_OF_SEGMENTS = (
    "SELECT count(*), coalesce(sum(segment), 0)::bigint, coalesce(sum(session), 0)::bigint, "
    "coalesce(sum(first), 0)::bigint, coalesce(sum(bundle), 0)::bigint FROM search_segments "
    f"WHERE live AND format = {FORMAT}"
)
_ROWS_AT = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE session = %s AND position = ANY(%s::bigint[])"
_STAMPS = (
    "SELECT timestamp_ms FROM messages WHERE session = %s AND position BETWEEN %s AND %s ORDER BY position"
)
_KEPT_BYTES = 48 << 20


class IndexReads(PostgresReads):
    """Reads of segments over one connection."""

    def segments(self, uid: int, first: int, last: int) -> list[Segment]:
        """The segments of messages that a session owns, where they overlap these positions, in order."""
        return list(map(Segment._make, self.query(_SEGMENTS, (uid, first, last, first))))

    def blocks(self, keys: list[Key]) -> dict[Key, bytes]:
        """Those of these blocks that are there, `unpacked`."""
        wanted = set(keys)
        rows = dict(self.query(_ROWS, ([block_id(*key) for key in keys],)))
        found = (each for row, packed in rows.items() for each in blocks_in(row, packed))
        return {key: content for key, content in found if key in wanted}


class PostgresSearchReads(PostgresLookups, IndexReads):
    """`SearchReads`, which keeps the blocks that were read last: those of a live segment never change."""

    indexes = True

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._kept: OrderedDict[Key, bytes | None] = OrderedDict()
        self._kept_bytes = 0
        self._bundles: dict[int, Segment] | None = None

    def begin(self) -> None:
        """See `PostgresLookups`."""
        super().begin()
        self._bundles = None

    def rows_at(self, uid: int, positions: Sequence[int]) -> list[MessageRow]:
        """See `SearchReads`."""
        return list(map(MessageRow._make, self.query(_ROWS_AT, (uid, list(positions)))))

    def segments_in(self, namespace: str) -> list[Segment]:
        """See `SearchReads`."""
        return list(map(Segment._make, self.query(_SEGMENTS_IN, (namespace, namespace))))

    def segments_after(self, segment: int) -> list[Segment]:
        """See `SearchReads`."""
        return list(map(Segment._make, self.query(_LIVE_AFTER, (segment,))))

    def bundle(self, number: int) -> Segment | None:
        """See `SearchReads`; a view asks for all at once, as searches of many sessions look into each."""
        if self._bundles is None:
            self._bundles = {row[0]: Segment._make(row) for row in self.query(_BUNDLES)}
        return self._bundles.get(number)

    def shelf(self, segment: Segment) -> Shelf:
        """See `SearchReads`."""
        kind = HeldShelf if segment.bundle > 0 else SegmentShelf
        return kind(segment, self._block, self._stamps, self._fetch)

    def bundle_shelf(self, bundle: Segment, held: Sequence[Segment]) -> Shelf:
        """See `SearchReads`."""
        shelf = BundleShelf(bundle, self._block, self._stamps, self._fetch)
        shelf.held = held
        return shelf

    def changed_since(self, namespace: str, agent_id: str | None, stamp_ms: int) -> list[SessionRecord]:
        """See `SearchReads`."""
        found = self.query(_CHANGED, (namespace, namespace, agent_id, agent_id, stamp_ms))
        return [session_record(row) for row in found]

    def sums(self, namespace: str, agent_id: str | None) -> Sums | None:
        """See `SearchReads`."""
        sessions = self.query(_SUMS_OF_SESSIONS, (namespace, namespace, agent_id, agent_id))[0]
        return Sums(*sessions, *self.query(_SUMS_OF_SEGMENTS)[0])

    def readable(self, namespace: str, agent_id: str | None) -> list[SessionRecord]:
        """See `SearchReads`."""
        found = self.query(_READABLE, (namespace, namespace, agent_id, agent_id))
        return [session_record(row) for row in found]

    def _block(self, segment: int, number: int) -> bytes | None:
        key = segment, number
        if key not in self._kept:
            self._fetch([key])
        self._kept.move_to_end(key)
        return self._kept[key]

    def _fetch(self, keys: list[Key]) -> None:
        wanted = [key for key in dict.fromkeys(keys) if key not in self._kept]
        if not wanted:
            return
        found = self.blocks(wanted)
        for key in wanted:
            content = self._kept[key] = found.get(key)
            self._kept_bytes += len(content or b"")
        while self._kept_bytes > _KEPT_BYTES and len(self._kept) > len(wanted):
            _, dropped = self._kept.popitem(last=False)
            self._kept_bytes -= len(dropped or b"")

    def _stamps(self, uid: int, first: int, last: int) -> list[int]:
        return [stamp for (stamp,) in self.query(_STAMPS, (uid, first, last))]
