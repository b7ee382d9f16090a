"""A PostgreSQL store as earlier versions have left it, with three messages in one session."""

import psycopg

from sidecar.store.postgres.schema import MIGRATIONS
from tests.store_kit import REF

TEXTS = ["plum one", "plum two", "x" * 3000]
_SESSION = (
    "INSERT INTO sessions (namespace, session_id, message_format, tag, created_ms, updated_ms, revision, "
    "message_count, lift, turn_count, turn_opened, shared) "
    "VALUES (%s, %s, 'openai', 'abc', 1, 2, 0, 3, 0, 1, true, 0) RETURNING uid"
)
_MESSAGE = (
    "INSERT INTO messages (row_id, session, position, turn, role, timestamp_ms, flags, name, number, body) "
    "VALUES (%s, %s, %s, 1, 'u', 1, %s, %s, NULL, %s)"
)


def make_store_of_version(url: str, version: int) -> None:
    """Make the tables of a version in an empty database, with messages of which one has facts."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA context_sidecar")
        connection.execute("SET search_path = context_sidecar")
        connection.execute("CREATE TABLE schema_version (version BIGINT NOT NULL)")
        connection.execute("INSERT INTO schema_version VALUES (%s)", (version,))
        for statements in MIGRATIONS[:version]:
            connection.execute(statements.encode())
        row = connection.execute(_SESSION, tuple(REF)).fetchone()
        assert row is not None
        for number, text in enumerate(TEXTS, start=1):
            values = (number, row[0], number, 2 if number == 1 else 0, f"m{number}", text.encode())
            connection.execute(_MESSAGE, values)
        connection.execute("SELECT setval('message_rows', 257)")
        connection.execute("INSERT INTO facts VALUES (2, 7, 1, 2, 3)")
        if version < 5:
            connection.execute("INSERT INTO lacking VALUES (1), (3)")
