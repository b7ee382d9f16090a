"""Changes of stored rows in PostgreSQL, made by the writer thread inside a transaction."""

from collections.abc import Sequence

import msgspec

from sidecar.store.postgres.buffer import PostgresBuffers
from sidecar.store.postgres.connection import Connection, Row, Value, begin_writing
from sidecar.store.postgres.escaping import short
from sidecar.store.postgres.locking import Locks, place_of_key, place_of_session, sessions_of
from sidecar.store.postgres.reads import SESSION_COLUMNS, PostgresReads, session_record
from sidecar.store.postgres.schema import LOCKS, STRUCTURE_LOCK
from sidecar.store.postgres.spawns import PostgresSpawns
from sidecar.store.postgres.statements import (
    ADD_FACTS,
    ADD_ROW,
    ADD_SESSION,
    ADD_SUMMARY,
    COPY_FACTS,
    COPY_ROWS,
    COPY_SUMMARIES,
    LOCK_PLACES,
    LOCK_SHARED,
    MOVE_ROWS,
    NOTE_BATCH,
    OPENER_BEFORE,
    ROWS_FROM,
    SAVE_FACTS,
    SAVE_SESSION,
    SESSIONS,
    SHIFT_AWAY,
    SHIFT_BACK,
)
from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.stored import Facts, SessionRef, SessionSettings, SummaryNode
from sidecar.store.writes import DERIVED, Write

_BLOCK = 256
"""Row ids taken in one go; the increment of their sequence."""


class PostgresTables(PostgresReads):
    """`Tables` over the writer's connection; what was read is remembered until the transaction ends.

    Rows and sessions to be written are gathered, and sent before the next statement that could miss them.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.now_ms = 0
        self.buffers = PostgresBuffers(self)
        self.locks = Locks()
        self.spawns = PostgresSpawns(self, self.locks.need)
        self._sessions: dict[SessionRef, SessionRecord | None] = {}
        self._by_uid: dict[int, SessionRecord] = {}
        self._unsaved: dict[int, SessionRecord] = {}
        self._added: list[MessageRow] = []
        self._facts: list[tuple[int, ...]] = []
        self._row_ids = range(0)

    def use(self, connection: Connection) -> None:
        """See `PostgresReads`."""
        super().use(connection)
        self._locking, self._noting = connection.cursor(binary=True), connection.cursor(binary=True)

    def begin(
        self,
        batch: Sequence[Write],
        writer_id: str,
        number: int,
        now_ms: int,
        *,
        lock_ms: int,
        also: set[int],
    ) -> int | None:
        """Begin a transaction that has the sessions of the batch to itself, and note its number.

        It waits for each lock for `lock_ms`; `also` are places to lock in addition. Returns the number that
        was noted before, `None` where none is kept.
        """
        self.now_ms = now_ms
        self.forget()
        sessions = sessions_of(batch)
        locking, noting = self._locking, self._noting
        with self.connection.pipeline():
            begin_writing(locking, lock_ms=lock_ms)
            locking.execute(LOCK_SHARED, (LOCKS, STRUCTURE_LOCK))
            locking.execute(LOCK_PLACES, (LOCKS, self.locks.take(batch, sessions, also)))
            noting.execute(NOTE_BATCH, (writer_id, number, writer_id))
            names = [ref.namespace for ref in sessions], [ref.session_id for ref in sessions]
            found = self.cursor.execute(SESSIONS, names).fetchall()
        self._sessions = dict.fromkeys(sessions)
        for row in found:
            self._remember(session_record(row))
        return noting.fetchall()[0][0]

    def drop_row_ids(self) -> None:
        """Take other row ids from now on: the server may have forgotten that these were taken."""
        self._row_ids = range(0)

    def commit(self) -> None:
        """Complete the transaction: everything is on the server's disk when this returns."""
        self._send()
        self.cursor.execute("COMMIT")

    def undo(self) -> None:
        """Undo the transaction, if one is open."""
        self.forget()
        self.cursor.execute("ROLLBACK")

    def forget(self) -> None:
        """Drop everything remembered and gathered."""
        self._sessions.clear()
        self._by_uid.clear()
        self._unsaved.clear()
        self._added.clear()
        self._facts.clear()

    def query(self, statement: str, bindings: tuple[Value, ...] = ()) -> list[Row]:
        """All rows of a statement."""
        self._send()
        return super().query(statement, bindings)

    def session(self, ref: SessionRef) -> SessionRecord | None:
        """See `RowReads`."""
        if ref in self._sessions:
            return self._sessions[ref]
        record = super().session(ref)
        self.locks.need({place_of_session(ref)})
        return None if record is None else self._remember(record)

    def session_of(self, uid: int) -> SessionRecord:
        """See `RowReads`."""
        known = self._by_uid.get(uid)
        if known is not None:
            return known
        record = super().session_of(uid)
        self.locks.need({place_of_session(record.ref)})
        return self._remember(record)

    def take_row_ids(self, count: int) -> int:
        """See `Tables`; where it takes more than a block, no other process takes one meanwhile."""
        if count > len(self._row_ids):
            blocks = -(-count // _BLOCK)
            first = self.value("SELECT min(nextval('message_rows')) FROM generate_series(1, %s)", (blocks,))
            self._row_ids = range(first, first + blocks * _BLOCK)
        first, self._row_ids = self._row_ids.start, self._row_ids[count:]
        return first

    def add_session(self, record: SessionRecord) -> None:
        """See `Tables`."""
        agent_and_key, rest = _mutable(record)[:2], _mutable(record)[2:]
        fixed = (*record.ref, record.message_format, record.tag)
        record.uid = self.value(ADD_SESSION, (*fixed, *agent_and_key, record.created_ms, *rest))
        self._remember(record)

    def save_session(self, record: SessionRecord) -> None:
        """See `Tables`."""
        self._unsaved[record.uid] = record

    def rename_session(self, record: SessionRecord, ref: SessionRef) -> None:
        """See `Tables`."""
        self._change("UPDATE sessions SET namespace = %s, session_id = %s WHERE uid = %s", *ref, record.uid)
        self._change("DELETE FROM session_keys WHERE session = %s", record.uid)
        self._sessions[record.ref] = None
        record.ref = ref
        self._sessions[ref] = record

    def drop_session(self, record: SessionRecord) -> None:
        """See `Tables`."""
        uid = record.uid
        self.drop_rows(uid, 0)
        self._change("DELETE FROM summaries WHERE session = %s", uid)
        self._change("DELETE FROM session_keys WHERE session = %s", uid)
        self._change("DELETE FROM sessions WHERE uid = %s", uid)
        self._by_uid.pop(uid, None)
        self._sessions[record.ref] = None

    def children(self, uid: int) -> list[SessionRecord]:
        """See `Tables`."""
        found = self.query(f"SELECT {SESSION_COLUMNS} FROM sessions WHERE parent = %s ORDER BY uid", (uid,))
        records = [session_record(row) for row in found]
        self.locks.need({place_of_session(record.ref) for record in records})
        return [self._by_uid.get(record.uid) or self._remember(record) for record in records]

    def add_row(self, row: MessageRow, facts: Facts | None) -> None:
        """See `Tables`."""
        self._added.append(row)
        if facts is not None:
            self._facts.append((row.row_id, *facts))

    def shift_rows(self, uid: int, first: int, by: int) -> None:
        """See `Tables`."""
        self._change(SHIFT_AWAY, by, uid, first)
        self._change(SHIFT_BACK, uid)

    def drop_rows(self, uid: int, first: int) -> None:
        """See `Tables`."""
        self._change(f"DELETE FROM facts WHERE row_id IN ({ROWS_FROM})", uid, first)
        self._change("DELETE FROM messages WHERE session = %s AND position >= %s", uid, first)

    def move_rows(self, source: SessionRecord, uid: int, first: int, last: int) -> None:
        """See `Tables`."""
        self._change(MOVE_ROWS, source.tag, uid, source.uid, first, last)

    def copy_rows(self, source: SessionRecord, uid: int, first: int, last: int) -> None:
        """See `Tables`."""
        base = self.take_row_ids(last - first + 1) - first
        self._change(COPY_ROWS, base, uid, source.tag, source.uid, first, last)
        self._change(COPY_FACTS, base, source.uid, first, last)

    def opener_before(self, uid: int, position: int) -> bool:
        """See `Tables`."""
        return self.value(OPENER_BEFORE, (uid, position)) is not None

    def save_facts(self, uid: int, position: int, facts: Facts) -> None:
        """See `Tables`."""
        self._change(SAVE_FACTS, *facts, uid, position)

    def bind_key(self, namespace: str, session_key: str, agent_id: str | None, uid: int) -> None:
        """See `Tables`."""
        self.locks.need({place_of_key(namespace, session_key)})
        self._change(
            "INSERT INTO session_keys (namespace, session_key, agent_id, session) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (session_key, namespace, agent_id) DO UPDATE SET session = excluded.session "
            "WHERE session_keys.session <> excluded.session",
            short(namespace),
            short(session_key),
            short(agent_id or ""),
            uid,
        )

    def record_key(self, ref: SessionRef, advancement_key: str) -> bool:
        """See `Tables`."""
        added = self._change(
            "INSERT INTO advancement_keys (namespace, session_id, advancement_key) VALUES (%s, %s, %s) "
            "ON CONFLICT DO NOTHING",
            *map(short, (*ref, advancement_key)),
        )
        return added > 0

    def save_state(self, ref: SessionRef, name: str, value: bytes | None) -> None:
        """See `Tables`."""
        key = (*map(short, ref), short(name))
        if value is None:
            self._change("DELETE FROM state WHERE namespace = %s AND session_id = %s AND name = %s", *key)
        else:
            self._change(
                "INSERT INTO state (namespace, session_id, name, value) VALUES (%s, %s, %s, %s) "
                "ON CONFLICT (session_id, namespace, name) DO UPDATE SET value = excluded.value",
                *key,
                value,
            )

    def save_settings(self, namespace: str, scope: str, scope_id: str, settings: SessionSettings) -> None:
        """See `Tables`."""
        self._change(
            "INSERT INTO settings (namespace, scope, scope_id, engine, config) VALUES (%s, %s, %s, %s, %s) "
            "ON CONFLICT (scope_id, scope, namespace) "
            "DO UPDATE SET engine = excluded.engine, config = excluded.config",
            *(short(namespace), scope, short(scope_id), *settings),
        )

    def copy_state(self, source: SessionRef, target: SessionRef) -> None:
        """See `Tables`."""
        self._change("DELETE FROM state WHERE namespace = %s AND session_id = %s", *map(short, target))
        self._change(
            "INSERT INTO state (namespace, session_id, name, value) "
            "SELECT %s, %s, name, value FROM state WHERE namespace = %s AND session_id = %s "
            "AND NOT starts_with(name, %s)",
            *map(short, (*target, *source)),
            DERIVED,
        )
        self.buffers.copy_injected_ids(source, target)

    def drop_belongings(self, ref: SessionRef) -> None:
        """See `Tables`."""
        key = tuple(map(short, ref))
        self._change("DELETE FROM state WHERE namespace = %s AND session_id = %s", *key)
        self._change("DELETE FROM advancement_keys WHERE namespace = %s AND session_id = %s", *key)
        self._change(
            "DELETE FROM settings WHERE namespace = %s AND scope = 'session' AND scope_id = %s", *key
        )
        self.buffers.drop_session(ref)
        self.spawns.drop_ended(ref)

    def add_summary(self, uid: int, node: SummaryNode) -> None:
        """See `Tables`."""
        self.drop_summaries(uid, [node.node_id])
        place = (node.first_position, node.last_position, node.depth)
        about = (node.tokens, node.quality, node.created_ms, msgspec.json.encode(node.sources).decode())
        self._change(ADD_SUMMARY, uid, node.node_id, *place, *about, node.text)

    def drop_summaries(self, uid: int, node_ids: Sequence[str]) -> None:
        """See `Tables`."""
        for node_id in node_ids:
            self._change("DELETE FROM summaries WHERE session = %s AND node_id = %s", uid, node_id)

    def drop_summaries_behind(self, uid: int, position: int) -> None:
        """See `Tables`."""
        self._change("DELETE FROM summaries WHERE session = %s AND last_position > %s", uid, position)

    def shift_summaries(self, uid: int, after: int, by: int) -> None:
        """See `Tables`."""
        self._change(
            "UPDATE summaries SET last_position = last_position + %s, "
            "first_position = first_position + CASE WHEN first_position > %s THEN %s ELSE 0 END "
            "WHERE session = %s AND last_position > %s",
            *(by, after, by, uid, after),
        )

    def copy_summaries(self, uid: int, target: int, last: int) -> None:
        """See `Tables`."""
        self._change(COPY_SUMMARIES, target, uid, last)

    def _change(self, statement: str, *bindings: Value) -> int:
        """Run a statement; how many rows it changed."""
        self._send()
        return self.cursor.execute(statement, bindings).rowcount

    def _remember(self, record: SessionRecord) -> SessionRecord:
        self._sessions[record.ref] = record
        self._by_uid[record.uid] = record
        return record

    def _send(self) -> None:
        """Send what was gathered."""
        cursor = self.cursor
        if self._added:
            cursor.executemany(ADD_ROW, self._added)
            self._added.clear()
        if self._facts:
            cursor.executemany(ADD_FACTS, self._facts)
            self._facts.clear()
        if self._unsaved:
            cursor.executemany(
                SAVE_SESSION, [(*_mutable(record), record.uid) for record in self._unsaved.values()]
            )
            self._unsaved.clear()


def _mutable(record: SessionRecord) -> tuple[str | int | None, ...]:
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
