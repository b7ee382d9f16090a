"""Reads from SQLite of what is kept beside messages, with those of `SQLiteReads`."""

from collections.abc import Sequence
from typing import cast

import msgspec

from sidecar.store.admission import meant_by_key
from sidecar.store.erasure import EXPIRED
from sidecar.store.reads import Lacking, decode_cursor, encode_cursor, stored_messages
from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.search import SearchState
from sidecar.store.spawn import SNAPSHOTS
from sidecar.store.sqlite.buffer import SQLiteBuffers
from sidecar.store.sqlite.connection import Connection, Row
from sidecar.store.sqlite.reads import MESSAGE_COLUMNS, SESSION_COLUMNS, SQLiteReads, session_record
from sidecar.store.sqlite.schema import refuse_newer
from sidecar.store.sqlite.spawns import SQLiteSpawns
from sidecar.store.stored import LARGEST_VALUE, SessionHead, SessionRef, StoredMessage, SummaryNode
from sidecar.store.writes import DERIVED

_SLICE = 2_000
"""Rows looked at in one go for missing facts: about a millisecond."""
_BYTES = 8 << 20
"""Bodies handed out in one go for missing facts."""

_SESSIONS = (
    f"SELECT {SESSION_COLUMNS} FROM sessions WHERE (?1 IS NULL OR namespace = ?1) "
    "AND (?2 IS NULL OR (updated_ms, uid) < (?2, ?3)) "
    "AND (?5 IS NULL OR agent_id IS NULL OR agent_id = ?5) ORDER BY updated_ms DESC, uid DESC LIMIT ?4"
)
_IDLE = (
    f"SELECT {SESSION_COLUMNS} FROM sessions WHERE updated_ms < ? "
    "AND substr(CAST(namespace AS BLOB), ?) <> CAST(? AS BLOB) "
    "ORDER BY namespace <> ?, updated_ms, uid LIMIT ?"
)
_SUMMARY = "SELECT node_id, first_position, last_position, text, tokens, quality, created_ms, depth, sources "
_SUMMARY_NODE = _SUMMARY + "FROM summaries WHERE session = ? AND node_id = ?"
_SUMMARIES = _SUMMARY + (
    "FROM summaries WHERE session = ? ORDER BY first_position, depth, last_position, node_id"
)
_OUTLINES = _SUMMARIES.replace("text,", "'',", 1)
"""Texts take most of what is read."""
_VALUES = (
    "SELECT name, CASE WHEN length(value) <= ? THEN value END FROM state "
    f"WHERE namespace = ? AND session_id = ? AND substr(name, 1, {len(DERIVED)}) <> '{DERIVED}'"
)
_LACKING = (
    "SELECT row_id FROM messages LEFT JOIN facts USING (row_id) "
    "WHERE row_id > ? AND row_id <= ? AND tokens IS NULL ORDER BY row_id LIMIT ?"
)


_decode_sources = msgspec.json.Decoder(tuple[str, ...]).decode


class SQLiteLookups(SQLiteReads):
    """Everything that the loop's thread reads."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.buffers = SQLiteBuffers(self)
        self.spawns = SQLiteSpawns(self)
        self._complete_to = 0
        """All rows up to this row id have their facts."""

    def begin(self) -> None:
        """Begin a view that later commits do not change."""
        self._cursor.execute("BEGIN")
        try:
            refuse_newer(self.connection)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Give the view up."""
        self._cursor.execute("ROLLBACK")

    def session_by_key(self, namespace: str, session_key: str, agent_id: str | None) -> SessionHead | None:
        """See `Lookups`."""
        record = meant_by_key(self.spawns.bound(namespace, session_key), agent_id, self.session_of)
        return None if record is None else record.head()

    def sessions(
        self, namespace: str | None, limit: int, cursor: str | None, agent_id: str | None
    ) -> tuple[list[SessionHead], str | None]:
        """See `Lookups`."""
        before = (None, None) if cursor is None else decode_cursor(cursor)
        bindings = (namespace, *before, limit + 1, agent_id)
        found = [session_record(row) for row in self.query(_SESSIONS, bindings)]
        page = found[:limit]
        rest = encode_cursor(page[-1]) if page and len(found) > limit else None
        return [record.head() for record in page], rest

    def idle_sessions(self, before_ms: int, limit: int) -> list[SessionHead]:
        """See `Lookups`."""
        bindings = (before_ms, -len(SNAPSHOTS), SNAPSHOTS, EXPIRED, limit)
        return [session_record(row).head() for row in self.query(_IDLE, bindings)]

    def used_bytes(self) -> int:
        """See `Lookups`."""
        used = self.value("PRAGMA page_count") - self.value("PRAGMA freelist_count")
        return used * self.value("PRAGMA page_size")

    def search_state(self) -> SearchState:
        """See `Lookups`."""
        marks = dict(self.query("SELECT name, value FROM marks"))
        newest = self.value("SELECT max(row_id) FROM messages") or 0
        erased = [marks[name] for name in ("search_purging", "search_erased") if name in marks]
        return SearchState(max(0, newest + 1 - marks.get("search_from", 1)), min(erased, default=None))

    def summaries(self, ref: SessionRef, *, texts: bool = True) -> list[SummaryNode]:
        """See `Lookups`."""
        record = self.session(ref)
        if record is None:
            return []
        return [_summary(row) for row in self.query(_SUMMARIES if texts else _OUTLINES, (record.uid,))]

    def summary_nodes(self, ref: SessionRef, node_ids: Sequence[str]) -> list[SummaryNode]:
        """See `Lookups`."""
        record = self.session(ref)
        if record is None:
            return []
        rows = (self.query(_SUMMARY_NODE, (record.uid, node_id)) for node_id in node_ids)
        return [_summary(row) for found in rows for row in found]

    def state(self, ref: SessionRef, name: str) -> bytes | None:
        """See `Lookups`."""
        return self.value(
            "SELECT value FROM state WHERE namespace = ? AND session_id = ? AND name = ?", (*ref, name)
        )

    def values(self, ref: SessionRef) -> dict[str, bytes | None]:
        """See `Lookups`."""
        return dict(cast("list[tuple[str, bytes | None]]", self.query(_VALUES, (LARGEST_VALUE, *ref))))

    def advancement_known(self, ref: SessionRef, advancement_key: str) -> bool:
        """See `Lookups`."""
        found = self.value(
            "SELECT 1 FROM advancement_keys WHERE namespace = ? AND session_id = ? AND advancement_key = ?",
            (*ref, advancement_key),
        )
        return found is not None

    def without_facts(self, limit: int) -> tuple[Lacking, bool]:
        """See `Lookups`."""
        newest = self.value("SELECT max(row_id) FROM messages")
        end = self._complete_to + _SLICE
        lacking = [row for (row,) in self.query(_LACKING, (self._complete_to, end, limit))]
        reached = newest is not None and end < newest
        if lacking:
            self._complete_to = lacking[0] - 1
        elif reached:
            self._complete_to = end
        return self._by_session(lacking), not reached

    def _by_session(self, row_ids: list[int]) -> Lacking:
        found: dict[int, tuple[SessionRecord, list[StoredMessage]]] = {}
        size = 0
        for row_id in row_ids:
            row = MessageRow._make(
                self.query(f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE row_id = ?", (row_id,))[0]
            )
            if row.session not in found:
                found[row.session] = (self.session_of(row.session), [])
            record, messages = found[row.session]
            messages += stored_messages(record, [row])
            size += len(row.body)
            if size > _BYTES:
                break
        return [
            (record.ref, record.message_format, record.revision, messages)
            for record, messages in found.values()
        ]


def _summary(row: Row) -> SummaryNode:
    *known, sources = row
    node_id, first, last, text, tokens, quality, created, depth = known
    return SummaryNode(
        node_id=node_id,
        first_position=first,
        last_position=last,
        text=text,
        tokens=tokens,
        quality=quality,
        created_ms=created,
        depth=depth,
        sources=() if sources == "[]" else _decode_sources(sources),
    )
