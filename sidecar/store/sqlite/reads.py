"""Reads of stored rows from SQLite."""

from typing import Any

from sidecar.store.records import SYSTEM, KeyedRow, MessageRow, SessionRecord
from sidecar.store.sqlite.connection import Connection, Row, Value
from sidecar.store.stored import SessionRef, SessionSettings

SESSION_COLUMNS = (
    "uid, namespace, session_id, message_format, tag, agent_id, session_key, created_ms, updated_ms, "
    "revision, message_count, lift, turn_count, turn_opened, turn_label, parent, shared, "
    "family, first_edition"
)
MESSAGE_COLUMNS = (
    "row_id, session, position, turn, role, timestamp_ms, flags, name, number, turn_label, inner_id, body"
)

_SESSION = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE session_id = ? AND namespace = ?"
_SESSION_OF = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE uid = ?"
_ROWS = (
    f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE session = ? AND position BETWEEN ? AND ? ORDER BY position"
)
_ROWS_OF_ROLE = (
    f"SELECT {MESSAGE_COLUMNS} FROM messages "
    "WHERE session = ? AND position BETWEEN ? AND ? AND role = ? ORDER BY position"
)
_SYSTEM_ROWS = (
    f"SELECT {MESSAGE_COLUMNS} FROM messages "
    f"WHERE session = ? AND position BETWEEN ? AND ? AND role = '{SYSTEM}' ORDER BY position"
)
_KEYED_ROWS = (
    "SELECT position, turn, flags, name, number, turn_label, inner_id, "
    "tokens, call_key, stamp_key, text_key FROM messages LEFT JOIN facts USING (row_id) "
    "WHERE session = ? AND position BETWEEN ? AND ? ORDER BY position"
)
_TURN_AT = "SELECT turn FROM messages WHERE session = ? AND position = ?"
_PLACE_OF_NAME = "SELECT position FROM messages WHERE session = ? AND name = ?"
_PLACE_OF_NUMBER = "SELECT position FROM messages WHERE session = ? AND number = ?"
_PLACE_AS_NUMBER = (
    "SELECT position FROM messages WHERE session = ? AND position = ? AND number IS NULL AND name IS NULL"
)
_PLACE_OF_INNER_ID = (
    "SELECT position FROM messages WHERE session = ? AND inner_id = ? ORDER BY position LIMIT 1"
)
_SETTINGS = "SELECT engine, config FROM settings WHERE namespace = ? AND scope = ? AND scope_id = ?"


def session_record(row: Row) -> SessionRecord:
    """The record in a row of `SESSION_COLUMNS`."""
    uid, namespace, session_id, *rest, opened, label, parent, shared, family, first_edition = row
    (message_format, tag, agent, key, created, updated, revision, count, lift, turns) = rest
    return SessionRecord(
        uid,
        SessionRef(namespace, session_id),
        message_format,
        tag,
        agent,
        key,
        created,
        updated,
        revision,
        count,
        lift,
        turns,
        bool(opened),
        label,
        parent,
        shared,
        family,
        bool(first_edition),
    )


class SQLiteReads:
    """`RowReads` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._cursor = connection.cursor()

    def query(self, statement: str, bindings: tuple[Value, ...] = ()) -> list[Row]:
        """All rows of a statement."""
        return self._cursor.execute(statement, bindings).fetchall()

    def value(self, statement: str, bindings: tuple[Value, ...] = ()) -> Any:
        """The only column of a statement's only row, `None` where there is no row."""
        return self._cursor.execute(statement, bindings).get

    def session(self, ref: SessionRef) -> SessionRecord | None:
        """See `RowReads`."""
        found = self.query(_SESSION, (ref[1], ref[0]))
        return session_record(found[0]) if found else None

    def session_of(self, uid: int) -> SessionRecord:
        """See `RowReads`."""
        return session_record(self.query(_SESSION_OF, (uid,))[0])

    def rows(self, uid: int, first: int, last: int) -> list[MessageRow]:
        """See `RowReads`."""
        return list(map(MessageRow._make, self.query(_ROWS, (uid, first, last))))

    def keyed_rows(self, uid: int, first: int, last: int) -> list[KeyedRow]:
        """See `RowReads`."""
        return list(map(KeyedRow._make, self.query(_KEYED_ROWS, (uid, first, last))))

    def rows_of_role(self, uid: int, code: str, first: int, last: int) -> list[MessageRow]:
        """See `RowReads`."""
        if code == SYSTEM:
            found = self.query(_SYSTEM_ROWS, (uid, first, last))
        else:
            found = self.query(_ROWS_OF_ROLE, (uid, first, last, code))
        return [MessageRow._make(row) for row in found]

    def turn_at(self, uid: int, position: int) -> int:
        """See `RowReads`."""
        return self.value(_TURN_AT, (uid, position))

    def place_of_name(self, uid: int, name: str) -> int | None:
        """See `RowReads`."""
        return self.value(_PLACE_OF_NAME, (uid, name))

    def place_of_number(self, uid: int, number: int) -> int | None:
        """See `RowReads`."""
        place = self.value(_PLACE_AS_NUMBER, (uid, number))
        return self.value(_PLACE_OF_NUMBER, (uid, number)) if place is None else place

    def place_of_inner_id(self, uid: int, inner_id: str) -> int | None:
        """See `RowReads`."""
        return self.value(_PLACE_OF_INNER_ID, (uid, inner_id))

    def settings_of(self, namespace: str, scope: str, scope_id: str) -> SessionSettings:
        """See `Tables`."""
        found = self.query(_SETTINGS, (namespace, scope, scope_id))
        return SessionSettings._make(found[0]) if found else SessionSettings(None, None)
