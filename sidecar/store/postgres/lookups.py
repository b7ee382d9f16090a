"""Reads from PostgreSQL of what is kept beside messages, with those of `PostgresReads`."""

from collections.abc import Sequence
from typing import cast

import msgspec

from sidecar.store.admission import meant_by_key
from sidecar.store.erasure import EXPIRED
from sidecar.store.postgres.buffer import PostgresBuffers
from sidecar.store.postgres.connection import Connection, Row, begin_reading
from sidecar.store.postgres.escaping import escape, short
from sidecar.store.postgres.reads import MESSAGE_COLUMNS, SESSION_COLUMNS, PostgresReads, session_record
from sidecar.store.postgres.spawns import PostgresSpawns
from sidecar.store.reads import Lacking, decode_cursor, encode_cursor, stored_messages
from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.search import SearchState
from sidecar.store.spawn import SNAPSHOTS
from sidecar.store.stored import LARGEST_VALUE, SessionHead, SessionRef, StoredMessage, SummaryNode
from sidecar.store.writes import DERIVED

_BYTES = 8 << 20
"""Bodies handed out in one go for missing facts."""

_SESSIONS = (
    f"SELECT {SESSION_COLUMNS} FROM sessions WHERE {{}} "
    "AND (%s::bigint IS NULL OR (updated_ms, uid) < (%s, %s)) "
    "AND (%s::text IS NULL OR agent_id IS NULL OR agent_id = %s) ORDER BY updated_ms DESC, uid DESC LIMIT %s"
)
_ALL_SESSIONS = _SESSIONS.format("%s::text IS NULL")
_SESSIONS_OF = _SESSIONS.format("left(namespace, 200) = left(%s, 200) AND namespace = %s")
_SET_ASIDE = (
    f"SELECT {SESSION_COLUMNS} FROM sessions WHERE namespace = E'{escape(EXPIRED)}' ORDER BY uid LIMIT %s"
)
_IDLE = (
    f"SELECT {SESSION_COLUMNS} FROM sessions WHERE updated_ms < %s AND right(namespace, %s::int) <> %s "
    "ORDER BY namespace <> %s, updated_ms, uid LIMIT %s"
)
_VALUES = (
    "SELECT name, CASE WHEN octet_length(value) <= %s THEN value END FROM state "
    f"WHERE namespace = %s AND session_id = %s AND NOT starts_with(name, '{DERIVED}')"
)
_USED = "SELECT coalesce(sum(pg_column_size(messages.*)), 0)::bigint FROM messages"
"""What rows take; what is free inside of the tables, or waits to be vacuumed, does not count."""
_SUMMARY = "SELECT node_id, first_position, last_position, text, tokens, quality, created_ms, depth, sources "
_SUMMARY_NODES = _SUMMARY + "FROM summaries WHERE session = %s AND node_id = ANY(%s)"
_SUMMARIES = _SUMMARY + (
    "FROM summaries WHERE session = %s ORDER BY first_position, depth, last_position, node_id"
)
_OUTLINES = _SUMMARIES.replace("text,", "'',", 1)
"""Texts take most of what is read."""
_LACKING = (
    f"SELECT {MESSAGE_COLUMNS} FROM (SELECT messages.*, "
    "sum(octet_length(body)) OVER (ORDER BY session, position) - octet_length(body) AS before "
    "FROM (SELECT * FROM messages WHERE NOT EXISTS (SELECT 1 FROM facts WHERE row_id = messages.row_id) "
    "ORDER BY session, position LIMIT %s) AS messages) AS found WHERE before < %s ORDER BY session, position"
)


class PostgresLookups(PostgresReads):
    """Everything that is read outside of writes and searches."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.buffers = PostgresBuffers(self)
        self.spawns = PostgresSpawns(self)

    def begin(self) -> None:
        """Begin a view that later commits do not change."""
        begin_reading(self.connection)

    def end(self) -> None:
        """Give the view up."""
        self.cursor.execute("ROLLBACK")

    def session_by_key(self, namespace: str, session_key: str, agent_id: str | None) -> SessionHead | None:
        """See `Lookups`."""
        record = meant_by_key(self.spawns.bound(namespace, session_key), agent_id, self.session_of)
        return None if record is None else record.head()

    def sessions(
        self, namespace: str | None, limit: int, cursor: str | None, agent_id: str | None
    ) -> tuple[list[SessionHead], str | None]:
        """See `Lookups`."""
        stamp, uid = (None, None) if cursor is None else decode_cursor(cursor)
        rest_of = (stamp, stamp, uid, agent_id, agent_id, limit + 1)
        if namespace is None:
            rows = self.query(_ALL_SESSIONS, (None, *rest_of))
        elif namespace == EXPIRED and cursor is None and agent_id is None:
            rows = self.query(_SET_ASIDE, (limit + 1,))
        else:
            rows = self.query(_SESSIONS_OF, (namespace, namespace, *rest_of))
        found = [session_record(row) for row in rows]
        page = found[:limit]
        rest = encode_cursor(page[-1]) if page and len(found) > limit else None
        return [record.head() for record in page], rest

    def idle_sessions(self, before_ms: int, limit: int) -> list[SessionHead]:
        """See `Lookups`."""
        bindings = (before_ms, len(escape(SNAPSHOTS)), SNAPSHOTS, EXPIRED, limit)
        return [session_record(row).head() for row in self.query(_IDLE, bindings)]

    def used_bytes(self) -> int:
        """See `Lookups`."""
        return self.value(_USED)

    def search_state(self) -> SearchState:
        """See `Lookups`."""
        return SearchState(self.value("SELECT count(*) FROM messages WHERE terms IS NULL"))

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
        return [_summary(row) for row in self.query(_SUMMARY_NODES, (record.uid, list(node_ids)))]

    def state(self, ref: SessionRef, name: str) -> bytes | None:
        """See `Lookups`."""
        return self.value(
            "SELECT value FROM state WHERE namespace = %s AND session_id = %s AND name = %s",
            (*map(short, ref), short(name)),
        )

    def values(self, ref: SessionRef) -> dict[str, bytes | None]:
        """See `Lookups`."""
        found = self.query(_VALUES, (LARGEST_VALUE, *map(short, ref)))
        return dict(cast("list[tuple[str, bytes | None]]", found))

    def advancement_known(self, ref: SessionRef, advancement_key: str) -> bool:
        """See `Lookups`."""
        found = self.value(
            "SELECT 1 FROM advancement_keys "
            "WHERE namespace = %s AND session_id = %s AND advancement_key = %s",
            (*map(short, ref), short(advancement_key)),
        )
        return found is not None

    def without_facts(self, limit: int) -> tuple[Lacking, bool]:
        """See `Lookups`."""
        found: dict[int, tuple[SessionRecord, list[StoredMessage]]] = {}
        for row in map(MessageRow._make, self.query(_LACKING, (limit, _BYTES))):
            if row.session not in found:
                found[row.session] = (self.session_of(row.session), [])
            record, messages = found[row.session]
            messages += stored_messages(record, [row])
        return [
            (record.ref, record.message_format, record.revision, messages)
            for record, messages in found.values()
        ], True


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
        sources=msgspec.json.decode(sources, type=tuple[str, ...]),
    )
