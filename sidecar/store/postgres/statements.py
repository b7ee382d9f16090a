"""The statements with which the writer changes rows."""

from sidecar.store.postgres.reads import MESSAGE_COLUMNS, SESSION_COLUMNS
from sidecar.store.records import MADE_UP, OPENS


def _marks(columns: str) -> str:
    return ", ".join(["%s"] * (columns.count(",") + 1))


LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared(%s::int, %s::int)"
"""Of the structure: an earlier version takes it alone, and may still run on the same database."""
LOCK_PLACES = "SELECT pg_advisory_xact_lock(%s::int, place::int) FROM unnest(%s::bigint[]) AS place"
NOTE_BATCH = (
    "INSERT INTO writers (id, batch) VALUES (%s, %s) "
    "ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, seen = now() "
    "RETURNING (SELECT before.batch FROM writers AS before WHERE before.id = %s)"
)
SESSIONS = (
    f"SELECT {SESSION_COLUMNS} FROM sessions JOIN unnest(%s::text[], %s::text[]) AS named (n, s) "
    "ON left(session_id, 200) = left(s, 200) AND left(namespace, 200) = left(n, 200) "
    "AND session_id = s AND namespace = n"
)
_NEW_SESSION = SESSION_COLUMNS.removeprefix("uid, ")
ADD_SESSION = f"INSERT INTO sessions ({_NEW_SESSION}) VALUES ({_marks(_NEW_SESSION)}) RETURNING uid"
SAVE_SESSION = (
    "UPDATE sessions SET agent_id = %s, session_key = %s, updated_ms = %s, revision = %s, "
    "message_count = %s, lift = %s, turn_count = %s, turn_opened = %s, turn_label = %s, parent = %s, "
    "shared = %s, family = %s, first_edition = %s WHERE uid = %s"
)
ADD_ROW = f"INSERT INTO messages ({MESSAGE_COLUMNS}) VALUES ({_marks(MESSAGE_COLUMNS)})"
_FACTS = "row_id, tokens, call_key, stamp_key, text_key"
_REPLACE_FACTS = (
    "ON CONFLICT (row_id) DO UPDATE SET tokens = excluded.tokens, call_key = excluded.call_key, "
    "stamp_key = excluded.stamp_key, text_key = excluded.text_key"
)
ADD_FACTS = f"INSERT INTO facts ({_FACTS}) VALUES (%s, %s, %s, %s, %s)"
SAVE_FACTS = (
    f"INSERT INTO facts ({_FACTS}) SELECT row_id, %s, %s, %s, %s FROM messages "
    f"WHERE session = %s AND position = %s {_REPLACE_FACTS}"
)
SHIFT_AWAY = (
    "UPDATE messages SET position = -(position + %s), "
    "number = CASE WHEN name IS NULL THEN coalesce(number, position) END "
    "WHERE session = %s AND position >= %s"
)
SHIFT_BACK = "UPDATE messages SET position = -position WHERE session = %s AND position < 0"
_WRITTEN_OUT = "coalesce(name, %s || '-' || coalesce(number, position))"
_FLAGGED = f"CASE WHEN name IS NULL THEN flags | {MADE_UP} ELSE flags END"
MOVE_ROWS = (
    f"UPDATE messages SET name = {_WRITTEN_OUT}, flags = {_FLAGGED}, number = NULL, session = %s "
    "WHERE session = %s AND position BETWEEN %s AND %s"
)
COPY_ROWS = (
    f"INSERT INTO messages ({MESSAGE_COLUMNS}, terms) "
    f"SELECT position + %s, %s, position, turn, role, timestamp_ms, {_FLAGGED}, {_WRITTEN_OUT}, NULL, "
    "turn_label, inner_id, body, terms FROM messages WHERE session = %s AND position BETWEEN %s AND %s"
)
COPY_FACTS = (
    f"INSERT INTO facts ({_FACTS}) SELECT position + %s, tokens, call_key, stamp_key, text_key "
    "FROM messages JOIN facts USING (row_id) WHERE session = %s AND position BETWEEN %s AND %s"
)
ROWS_FROM = "SELECT row_id FROM messages WHERE session = %s AND position >= %s"
_SUMMARY = (
    "session, node_id, first_position, last_position, depth, tokens, quality, created_ms, sources, text"
)
ADD_SUMMARY = f"INSERT INTO summaries ({_SUMMARY}) VALUES ({_marks(_SUMMARY)})"
COPY_SUMMARIES = (
    f"INSERT INTO summaries ({_SUMMARY}) SELECT %s, node_id, first_position, last_position, depth, tokens, "
    "quality, created_ms, sources, text FROM summaries WHERE session = %s AND last_position <= %s"
)
OPENER_BEFORE = (
    f"SELECT 1 FROM messages WHERE session = %s AND position <= %s AND flags & {OPENS} <> 0 LIMIT 1"
)
