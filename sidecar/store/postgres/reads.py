"""Reads of stored rows from PostgreSQL."""

from typing import Any

from sidecar.store.postgres.connection import Connection, Row, Value
from sidecar.store.postgres.escaping import short
from sidecar.store.records import KeyedRow, MessageRow, SessionRecord
from sidecar.store.stored import SessionRef, SessionSettings

SESSION_COLUMNS = (
    "uid, namespace, session_id, message_format, tag, agent_id, session_key, created_ms, updated_ms, "
    "revision, message_count, lift, turn_count, turn_opened, turn_label, parent, shared, "
    "family, first_edition"
)
MESSAGE_COLUMNS = (
    "row_id, session, position, turn, role, timestamp_ms, flags, name, number, turn_label, inner_id, body"
)

_SESSION = (
    f"SELECT {SESSION_COLUMNS} FROM sessions WHERE left(session_id, 200) = left(%s, 200) "
    "AND left(namespace, 200) = left(%s, 200) AND session_id = %s AND namespace = %s"
)
_SESSION_OF = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE uid = %s"
_ROWS = (
    f"SELECT {MESSAGE_COLUMNS} FROM messages "
    "WHERE session = %s AND position BETWEEN %s AND %s ORDER BY position"
)
_ROWS_OF_ROLE = (
    f"SELECT {MESSAGE_COLUMNS} FROM messages "
    "WHERE session = %s AND position BETWEEN %s AND %s AND role = %s ORDER BY position"
)
_KEYED_ROWS = (
    "SELECT position, turn, flags, name, number, turn_label, inner_id, "
    "tokens, call_key, stamp_key, text_key FROM messages LEFT JOIN facts USING (row_id) "
    "WHERE session = %s AND position BETWEEN %s AND %s ORDER BY position"
)
_TURN_AT = "SELECT turn FROM messages WHERE session = %s AND position = %s"
_PLACE_OF_NAME = (
    "SELECT position FROM messages WHERE session = %s AND left(name, 200) = left(%s, 200) AND name = %s"
)
_PLACE_OF_NUMBER = (
    "SELECT position FROM messages WHERE session = %s AND number = %s UNION ALL "
    "SELECT position FROM messages WHERE session = %s AND position = %s AND number IS NULL AND name IS NULL"
)
_PLACE_OF_INNER_ID = (
    "SELECT min(position) FROM messages "
    "WHERE session = %s AND left(inner_id, 200) = left(%s, 200) AND inner_id = %s"
)
_SETTINGS = "SELECT engine, config FROM settings WHERE namespace = %s AND scope = %s AND scope_id = %s"


def session_record(row: Row) -> SessionRecord:
    """The record in a row of `SESSION_COLUMNS`."""
    uid, namespace, session_id, *rest = row
    return SessionRecord(uid, SessionRef(namespace, session_id), *rest)


class PostgresReads:
    """`RowReads` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self.use(connection)

    def use(self, connection: Connection) -> None:
        """Read by way of this connection from now on."""
        self.connection = connection
        self.cursor = connection.cursor(binary=True)

    def query(self, statement: str, bindings: tuple[Value, ...] = ()) -> list[Row]:
        """All rows of a statement."""
        return self.cursor.execute(statement, bindings).fetchall()

    def value(self, statement: str, bindings: tuple[Value, ...] = ()) -> Any:
        """The only column of a statement's first row, `None` where there is no row."""
        found = self.query(statement, bindings)
        return found[0][0] if found else None

    def session(self, ref: SessionRef) -> SessionRecord | None:
        """See `RowReads`."""
        namespace, session_id = ref
        found = self.query(_SESSION, (session_id, namespace, session_id, namespace))
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
        return list(map(MessageRow._make, self.query(_ROWS_OF_ROLE, (uid, first, last, code))))

    def turn_at(self, uid: int, position: int) -> int:
        """See `RowReads`."""
        return self.value(_TURN_AT, (uid, position))

    def place_of_name(self, uid: int, name: str) -> int | None:
        """See `RowReads`."""
        return self.value(_PLACE_OF_NAME, (uid, name, name))

    def place_of_number(self, uid: int, number: int) -> int | None:
        """See `RowReads`."""
        return self.value(_PLACE_OF_NUMBER, (uid, number, uid, number))

    def place_of_inner_id(self, uid: int, inner_id: str) -> int | None:
        """See `RowReads`."""
        return self.value(_PLACE_OF_INNER_ID, (uid, inner_id, inner_id))

    def settings_of(self, namespace: str, scope: str, scope_id: str) -> SessionSettings:
        """See `Tables`."""
        found = self.query(_SETTINGS, (short(namespace), scope, short(scope_id)))
        return SessionSettings._make(found[0]) if found else SessionSettings(None, None)
