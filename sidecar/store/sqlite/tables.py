"""Changes of stored rows in SQLite, made by the writer thread inside a transaction."""

from collections.abc import Sequence

import msgspec

from sidecar.store.records import MADE_UP, OPENS, MessageRow, SessionRecord
from sidecar.store.sqlite.buffer import SQLiteBuffers
from sidecar.store.sqlite.connection import Connection, Value
from sidecar.store.sqlite.reads import MESSAGE_COLUMNS, SESSION_COLUMNS, SQLiteReads
from sidecar.store.sqlite.schema import refuse_newer
from sidecar.store.sqlite.spawns import SQLiteSpawns
from sidecar.store.stored import Facts, SessionRef, SessionSettings, SummaryNode
from sidecar.store.writes import DERIVED

_LAST = 1 << 40
"""Behind every position."""
_CACHED = 4096
"""Sessions and keys remembered from one transaction to the next."""


def _marks(columns: str) -> str:
    return ", ".join("?" * (columns.count(",") + 1))


_ADD_SESSION = f"INSERT INTO sessions ({SESSION_COLUMNS}) VALUES ({_marks(SESSION_COLUMNS)})"
_SAVE_SESSION = (
    "UPDATE sessions SET agent_id = ?, session_key = ?, updated_ms = ?, revision = ?, message_count = ?, "
    "lift = ?, turn_count = ?, turn_opened = ?, turn_label = ?, parent = ?, shared = ?, family = ?, "
    "first_edition = ? WHERE uid = ?"
)
_ADD_ROW = f"INSERT INTO messages ({MESSAGE_COLUMNS}) VALUES ({_marks(MESSAGE_COLUMNS)})"
_ADD_FACTS = (
    "INSERT OR REPLACE INTO facts (row_id, tokens, call_key, stamp_key, text_key) VALUES (?, ?, ?, ?, ?)"
)
_SHIFT_AWAY = (
    "UPDATE messages SET position = -(position + ?), "
    "number = CASE WHEN name IS NULL THEN coalesce(number, position) END "
    "WHERE session = ? AND position >= ?"
)
_SHIFT_BACK = "UPDATE messages SET position = -position WHERE session = ? AND position < 0"
_ROW_IDS = "SELECT min(row_id), max(row_id) FROM messages WHERE session = ? AND position BETWEEN ? AND ?"
_RENUMBER = "UPDATE messages SET row_id = row_id + ? WHERE session = ? AND position BETWEEN ? AND ?"
_RENUMBER_FACTS = (
    "UPDATE facts SET row_id = row_id + ? WHERE row_id IN "
    "(SELECT row_id FROM messages WHERE session = ? AND position BETWEEN ? AND ?)"
)
_WRITTEN_OUT = "coalesce(name, ? || '-' || coalesce(number, position))"
_FLAGGED = f"CASE WHEN name IS NULL THEN flags | {MADE_UP} ELSE flags END"
_MOVE_ROWS = (
    f"UPDATE messages SET name = {_WRITTEN_OUT}, flags = {_FLAGGED}, number = NULL, session = ? "
    "WHERE session = ? AND position BETWEEN ? AND ?"
)
_COPY_ROWS = (
    f"INSERT INTO messages ({MESSAGE_COLUMNS}) "
    f"SELECT position + ?, ?, position, turn, role, timestamp_ms, {_FLAGGED}, {_WRITTEN_OUT}, NULL, "
    "turn_label, inner_id, body FROM messages WHERE session = ? AND position BETWEEN ? AND ? "
    "ORDER BY position"
)
_COPY_FACTS = (
    "INSERT INTO facts (row_id, tokens, call_key, stamp_key, text_key) "
    "SELECT position + ?, tokens, call_key, stamp_key, text_key FROM messages JOIN facts USING (row_id) "
    "WHERE session = ? AND position BETWEEN ? AND ?"
)
_SAVE_FACTS = (
    "INSERT OR REPLACE INTO facts (row_id, tokens, call_key, stamp_key, text_key) "
    "SELECT row_id, ?, ?, ?, ? FROM messages WHERE session = ? AND position = ?"
)
_ADD_SUMMARY = "INSERT OR REPLACE INTO summaries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_COPY_SUMMARIES = (
    "INSERT INTO summaries SELECT ?, node_id, first_position, last_position, depth, tokens, quality, "
    "created_ms, sources, text FROM summaries WHERE session = ? AND last_position <= ?"
)


class SQLiteTables(SQLiteReads):
    """`Tables` over the writer's connection; it remembers sessions while nobody else changes the file."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.now_ms = 0
        self.buffers = SQLiteBuffers(self, lambda: self.now_ms)
        self.spawns = SQLiteSpawns(self)
        self._sessions: dict[SessionRef, SessionRecord] = {}
        self._by_uid: dict[int, SessionRecord] = {}
        self._unsaved: dict[int, SessionRecord] = {}
        self._keys: dict[tuple[str, str, str], int] = {}
        self._next_row: int | None = None
        self.moved = 0
        """How often messages were moved or erased."""
        self._version: int | None = None

    def begin(self, now_ms: int) -> None:
        """Begin a transaction, and forget what another process may have changed."""
        self.now_ms = now_ms
        self._cursor.execute("BEGIN IMMEDIATE")
        version = self.value("PRAGMA data_version")
        if version != self._version:
            refuse_newer(self.connection)
        if version != self._version or len(self._by_uid) > _CACHED or len(self._keys) > _CACHED:
            self.forget()
            self._version = version

    def commit(self) -> None:
        """Complete the transaction: everything is on the disk when this returns."""
        self._save_sessions()
        self._cursor.execute("COMMIT")

    def undo(self) -> None:
        """Undo the transaction, if one is open."""
        self.forget()
        if self.connection.in_transaction:
            self._cursor.execute("ROLLBACK")

    def forget(self) -> None:
        """Drop everything remembered."""
        self._sessions.clear()
        self._by_uid.clear()
        self._unsaved.clear()
        self._keys.clear()
        self._next_row = None

    def session(self, ref: SessionRef) -> SessionRecord | None:
        """See `RowReads`."""
        record = self._sessions.get(ref)
        if record is None:
            record = super().session(ref)
            if record is not None:
                record = self._remember(record)
        return record

    def session_of(self, uid: int) -> SessionRecord:
        """See `RowReads`."""
        return self._by_uid.get(uid) or self._remember(super().session_of(uid))

    def take_row_ids(self, count: int) -> int:
        """See `Tables`."""
        first = self._next_row
        if first is None:
            first = self._first_free_row()
        self._next_row = first + count
        return first

    def add_session(self, record: SessionRecord) -> None:
        """See `Tables`."""
        agent_and_key, rest = _mutable(record)[:2], _mutable(record)[2:]
        fixed = (None, *record.ref, record.message_format, record.tag)
        self._cursor.execute(_ADD_SESSION, (*fixed, *agent_and_key, record.created_ms, *rest))
        record.uid = self.connection.last_insert_rowid()
        self._remember(record)

    def save_session(self, record: SessionRecord) -> None:
        """See `Tables`."""
        self._unsaved[record.uid] = record

    def rename_session(self, record: SessionRecord, ref: SessionRef) -> None:
        """See `Tables`."""
        self._cursor.execute(
            "UPDATE sessions SET namespace = ?, session_id = ? WHERE uid = ?", (*ref, record.uid)
        )
        self._unbind(record.uid)
        self._sessions.pop(record.ref, None)
        record.ref = ref
        self._remember(record)

    def drop_session(self, record: SessionRecord) -> None:
        """See `Tables`."""
        uid = record.uid
        self.drop_rows(uid, 0)
        self._cursor.execute("DELETE FROM summaries WHERE session = ?", (uid,))
        self._unbind(uid)
        self._cursor.execute("DELETE FROM sessions WHERE uid = ?", (uid,))
        self._unsaved.pop(uid, None)
        self._by_uid.pop(uid, None)
        self._sessions.pop(record.ref, None)

    def children(self, uid: int) -> list[SessionRecord]:
        """See `Tables`."""
        self._save_sessions()
        found = self.query("SELECT uid FROM sessions WHERE parent = ? ORDER BY uid", (uid,))
        return [self.session_of(child) for (child,) in found]

    def add_row(self, row: MessageRow, facts: Facts | None) -> None:
        """See `Tables`."""
        self._cursor.execute(_ADD_ROW, row)
        if facts is not None:
            self._cursor.execute(_ADD_FACTS, (row.row_id, *facts))

    def shift_rows(self, uid: int, first: int, by: int) -> None:
        """See `Tables`."""
        self._index_anew(uid, first, _LAST)
        self._cursor.execute(_SHIFT_AWAY, (by, uid, first))
        self._cursor.execute(_SHIFT_BACK, (uid,))

    def drop_rows(self, uid: int, first: int) -> None:
        """See `Tables`."""
        self._erase_indexed(uid, first, _LAST)
        self._cursor.execute("INSERT OR REPLACE INTO marks VALUES ('next_row', ?)", (self.take_row_ids(0),))
        self._cursor.execute(
            "DELETE FROM facts WHERE row_id IN "
            "(SELECT row_id FROM messages WHERE session = ? AND position >= ?)",
            (uid, first),
        )
        self._cursor.execute("DELETE FROM messages WHERE session = ? AND position >= ?", (uid, first))

    def move_rows(self, source: SessionRecord, uid: int, first: int, last: int) -> None:
        """See `Tables`."""
        self._index_anew(source.uid, first, last)
        self._cursor.execute(_MOVE_ROWS, (source.tag, uid, source.uid, first, last))

    def copy_rows(self, source: SessionRecord, uid: int, first: int, last: int) -> None:
        """See `Tables`."""
        base = self.take_row_ids(last - first + 1) - first
        self._cursor.execute(_COPY_ROWS, (base, uid, source.tag, source.uid, first, last))
        self._cursor.execute(_COPY_FACTS, (base, source.uid, first, last))

    def opener_before(self, uid: int, position: int) -> bool:
        """See `Tables`."""
        found = self.value(
            f"SELECT 1 FROM messages WHERE session = ? AND position <= ? AND flags & {OPENS} LIMIT 1",
            (uid, position),
        )
        return found is not None

    def save_facts(self, uid: int, position: int, facts: Facts) -> None:
        """See `Tables`."""
        self._cursor.execute(_SAVE_FACTS, (*facts, uid, position))

    def bind_key(self, namespace: str, session_key: str, agent_id: str | None, uid: int) -> None:
        """See `Tables`."""
        key = namespace, session_key, agent_id or ""
        if self._keys.get(key) != uid:
            self._cursor.execute("INSERT OR REPLACE INTO session_keys VALUES (?, ?, ?, ?)", (*key, uid))
            self._keys[key] = uid

    def record_key(self, ref: SessionRef, advancement_key: str) -> bool:
        """See `Tables`."""
        self._cursor.execute(
            "INSERT OR IGNORE INTO advancement_keys VALUES (?, ?, ?)", (*ref, advancement_key)
        )
        return self.connection.changes() > 0

    def save_state(self, ref: SessionRef, name: str, value: bytes | None) -> None:
        """See `Tables`."""
        if value is None:
            self._cursor.execute(
                "DELETE FROM state WHERE namespace = ? AND session_id = ? AND name = ?", (*ref, name)
            )
        else:
            self._cursor.execute("INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?)", (*ref, name, value))

    def save_settings(self, namespace: str, scope: str, scope_id: str, settings: SessionSettings) -> None:
        """See `Tables`."""
        self._cursor.execute(
            "INSERT OR REPLACE INTO settings VALUES (?, ?, ?, ?, ?)", (namespace, scope, scope_id, *settings)
        )

    def copy_state(self, source: SessionRef, target: SessionRef) -> None:
        """See `Tables`."""
        self._cursor.execute("DELETE FROM state WHERE namespace = ? AND session_id = ?", target)
        self._cursor.execute(
            "INSERT INTO state SELECT ?, ?, name, value FROM state WHERE namespace = ? AND session_id = ? "
            "AND substr(name, 1, ?) <> ?",
            (*target, *source, len(DERIVED), DERIVED),
        )
        self.buffers.copy_injected_ids(source, target)

    def drop_belongings(self, ref: SessionRef) -> None:
        """See `Tables`."""
        self._cursor.execute("DELETE FROM state WHERE namespace = ? AND session_id = ?", ref)
        self._cursor.execute("DELETE FROM advancement_keys WHERE namespace = ? AND session_id = ?", ref)
        self._cursor.execute(
            "DELETE FROM settings WHERE namespace = ? AND scope = 'session' AND scope_id = ?", ref
        )
        self.buffers.drop_session(ref)
        self.spawns.drop_ended(ref)

    def add_summary(self, uid: int, node: SummaryNode) -> None:
        """See `Tables`."""
        sources = msgspec.json.encode(node.sources).decode()
        place = (node.first_position, node.last_position, node.depth)
        about = (node.tokens, node.quality, node.created_ms, sources)
        self._cursor.execute(_ADD_SUMMARY, (uid, node.node_id, *place, *about, node.text))

    def drop_summaries(self, uid: int, node_ids: Sequence[str]) -> None:
        """See `Tables`."""
        for node_id in node_ids:
            self._cursor.execute("DELETE FROM summaries WHERE session = ? AND node_id = ?", (uid, node_id))

    def drop_summaries_behind(self, uid: int, position: int) -> None:
        """See `Tables`."""
        self._cursor.execute("DELETE FROM summaries WHERE session = ? AND last_position > ?", (uid, position))

    def shift_summaries(self, uid: int, after: int, by: int) -> None:
        """See `Tables`."""
        self._cursor.execute(
            "UPDATE summaries SET last_position = last_position + ?, "
            "first_position = first_position + iif(first_position > ?, ?, 0) "
            "WHERE session = ? AND last_position > ?",
            (by, after, by, uid, after),
        )

    def copy_summaries(self, uid: int, target: int, last: int) -> None:
        """See `Tables`."""
        self._cursor.execute(_COPY_SUMMARIES, (target, uid, last))

    def _unbind(self, uid: int) -> None:
        self._cursor.execute("DELETE FROM session_keys WHERE session = ?", (uid,))
        self._keys = {key: bound for key, bound in self._keys.items() if bound != uid}

    def _remember(self, record: SessionRecord) -> SessionRecord:
        self._sessions[record.ref] = record
        self._by_uid[record.uid] = record
        return record

    def _save_sessions(self) -> None:
        if self._unsaved:
            self._cursor.executemany(
                _SAVE_SESSION, [(*_mutable(record), record.uid) for record in self._unsaved.values()]
            )
            self._unsaved.clear()

    def _erase_indexed(self, uid: int, first: int, last: int) -> None:
        from sidecar.store.sqlite.fts5 import erase

        self.moved += 1
        erase(self, uid, first, last, self.now_ms)

    def _index_anew(self, uid: int, first: int, last: int) -> None:
        """Take rows that move out of the search index, and give them row ids that it has still to come to."""
        self._erase_indexed(uid, first, last)
        oldest, newest = self.query(_ROW_IDS, (uid, first, last))[0]
        if oldest is not None:
            by = self.take_row_ids(newest - oldest + 1) - oldest
            self._cursor.execute(_RENUMBER_FACTS, (by, uid, first, last))
            self._cursor.execute(_RENUMBER, (by, uid, first, last))

    def _first_free_row(self) -> int:
        newest = self.value("SELECT max(row_id) FROM messages")
        marked = self.value("SELECT value FROM marks WHERE name = 'next_row'")
        return max((newest or 0) + 1, marked or 0)


def _mutable(record: SessionRecord) -> tuple[Value, ...]:
    """What may change of a session, in the order of its columns."""
    return (
        record.agent_id,
        record.session_key,
        record.updated_ms,
        record.revision,
        record.message_count,
        record.lift,
        record.turn_count,
        record.turn_opened,
        record.turn_label,
        record.parent,
        record.shared,
        record.family,
        record.first_edition,
    )
