"""The tables of the store, and how a file comes to have them."""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager

import apsw

from sidecar.store.errors import StoreUnavailable
from sidecar.store.sqlite.connection import Connection
from sidecar.store.sqlite.faults import damaged
from sidecar.store.stored import SECRET_BYTES

APPLICATION_ID = 0x43455053
"""Marks the file as ours."""

PAGE_SIZE = 8192
"""Seven messages of 1 KB fill a page to 90 %; in 4096 bytes three of them leave a quarter empty."""

SECRETS = "CREATE TABLE IF NOT EXISTS secrets (number INTEGER PRIMARY KEY, secret BLOB NOT NULL UNIQUE);"
"""With these the store's own texts are told from forged ones; it has more than one after a restore."""

INDEX = """
    CREATE VIRTUAL TABLE search USING fts5 (
        terms, content = '', contentless_delete = 1, detail = none, tokenize = "ascii"
    );
    INSERT INTO search (search, rank) VALUES ('automerge', 0), ('deletemerge', 0);
"""
"""The table of the search index; it is made again where it is damaged.

SQLite would merge segments within any write, for every row that is deleted most of all. Indexing and purging
ask for it instead.
"""

MIGRATIONS = (
    """
    CREATE TABLE sessions (
        uid INTEGER PRIMARY KEY AUTOINCREMENT,
        namespace TEXT NOT NULL,
        session_id TEXT NOT NULL,
        message_format TEXT NOT NULL,
        tag TEXT NOT NULL,
        agent_id TEXT,
        session_key TEXT,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        message_count INTEGER NOT NULL,
        lift INTEGER NOT NULL,
        turn_count INTEGER NOT NULL,
        turn_opened INTEGER NOT NULL,
        turn_label TEXT,
        parent INTEGER,
        shared INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX session_by_name ON sessions (session_id, namespace);
    CREATE INDEX session_by_parent ON sessions (parent) WHERE parent IS NOT NULL;

    CREATE TABLE messages (
        row_id INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        position INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        role TEXT NOT NULL,
        timestamp_ms INTEGER NOT NULL,
        flags INTEGER NOT NULL,
        name TEXT,
        number INTEGER,
        turn_label TEXT,
        inner_id TEXT,
        body BLOB NOT NULL
    );
    CREATE UNIQUE INDEX message_by_position ON messages (session, position);
    CREATE UNIQUE INDEX message_by_name ON messages (session, name) WHERE name IS NOT NULL;
    CREATE UNIQUE INDEX message_by_number ON messages (session, number) WHERE number IS NOT NULL;
    CREATE INDEX message_by_inner_id ON messages (session, inner_id, position) WHERE inner_id IS NOT NULL;
    CREATE INDEX system_message ON messages (session, position) WHERE role = 's';

    CREATE TABLE facts (
        row_id INTEGER PRIMARY KEY,
        tokens INTEGER NOT NULL,
        call_key INTEGER NOT NULL,
        stamp_key INTEGER NOT NULL,
        text_key INTEGER NOT NULL
    );

    CREATE TABLE session_keys (
        namespace TEXT NOT NULL,
        session_key TEXT NOT NULL,
        session INTEGER NOT NULL,
        PRIMARY KEY (session_key, namespace)
    ) WITHOUT ROWID;
    CREATE INDEX session_key_by_session ON session_keys (session);

    CREATE TABLE advancement_keys (
        namespace TEXT NOT NULL,
        session_id TEXT NOT NULL,
        advancement_key TEXT NOT NULL,
        PRIMARY KEY (session_id, advancement_key, namespace)
    ) WITHOUT ROWID;

    CREATE TABLE state (
        namespace TEXT NOT NULL,
        session_id TEXT NOT NULL,
        name TEXT NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (session_id, namespace, name)
    ) WITHOUT ROWID;

    CREATE TABLE settings (
        namespace TEXT NOT NULL,
        scope TEXT NOT NULL,
        scope_id TEXT NOT NULL,
        engine TEXT,
        config BLOB,
        PRIMARY KEY (scope_id, scope, namespace)
    ) WITHOUT ROWID;

    CREATE TABLE summaries (
        session INTEGER NOT NULL,
        node_id TEXT NOT NULL,
        first_position INTEGER NOT NULL,
        last_position INTEGER NOT NULL,
        depth INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        quality TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        sources TEXT NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (session, node_id)
    );

    CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    """,
    """
    CREATE TABLE search_segments (
        segment INTEGER PRIMARY KEY AUTOINCREMENT,
        session INTEGER NOT NULL,
        first INTEGER NOT NULL,
        size INTEGER NOT NULL,
        term_bits INTEGER NOT NULL,
        total INTEGER NOT NULL,
        earliest_ms INTEGER NOT NULL,
        latest_ms INTEGER NOT NULL,
        live INTEGER NOT NULL
    );
    CREATE INDEX search_segment_by_session ON search_segments (session, first);

    CREATE TABLE search_blocks (block INTEGER PRIMARY KEY, content BLOB NOT NULL);
    """,
    """
    CREATE TABLE episodes (
        row_id INTEGER PRIMARY KEY AUTOINCREMENT,
        namespace TEXT NOT NULL,
        engine TEXT NOT NULL,
        session_id TEXT NOT NULL,
        session_key TEXT,
        pushed_ms INTEGER NOT NULL,
        holder TEXT,
        leased_until_ms INTEGER NOT NULL,
        payload BLOB NOT NULL
    );
    CREATE INDEX episode_by_buffer ON episodes (engine, namespace);
    CREATE INDEX episode_by_session ON episodes (session_id, namespace);

    CREATE TABLE injected_ids (
        namespace TEXT NOT NULL,
        engine TEXT NOT NULL,
        session_id TEXT NOT NULL,
        item_id TEXT NOT NULL,
        PRIMARY KEY (session_id, namespace, engine, item_id)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE spawns (
        namespace TEXT NOT NULL,
        preparation_id TEXT NOT NULL,
        parent_key TEXT NOT NULL,
        parent_id TEXT,
        child_key TEXT NOT NULL,
        child_id TEXT,
        mode TEXT NOT NULL,
        inherited INTEGER NOT NULL,
        prepared_ms INTEGER NOT NULL,
        expires_ms INTEGER,
        PRIMARY KEY (preparation_id, namespace)
    ) WITHOUT ROWID;
    CREATE INDEX spawn_by_key ON spawns (child_key, namespace);
    CREATE INDEX spawn_by_session ON spawns (child_id, namespace) WHERE child_id IS NOT NULL;
    CREATE INDEX spawn_by_expiry ON spawns (expires_ms) WHERE expires_ms IS NOT NULL;
    """,
    """
    ALTER TABLE search_segments ADD COLUMN bundle INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE search_segments ADD COLUMN start INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX search_segment_by_bundle ON search_segments (bundle) WHERE bundle <> 0;
    """,
    """
    CREATE TABLE agent_keys (
        namespace TEXT NOT NULL,
        session_key TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        session INTEGER NOT NULL,
        PRIMARY KEY (session_key, namespace, agent_id)
    ) WITHOUT ROWID;
    INSERT INTO agent_keys
        SELECT bound.namespace, bound.session_key, coalesce(sessions.agent_id, ''), bound.session
        FROM session_keys AS bound JOIN sessions ON sessions.uid = bound.session;
    DROP TABLE session_keys;
    ALTER TABLE agent_keys RENAME TO session_keys;
    CREATE INDEX session_key_by_session ON session_keys (session);
    ALTER TABLE spawns ADD COLUMN agent_id TEXT;
    ALTER TABLE spawns ADD COLUMN child_agent_id TEXT;
    ALTER TABLE spawns ADD COLUMN ended_ms INTEGER;
    """,
    """
    ALTER TABLE sessions ADD COLUMN family TEXT;
    ALTER TABLE sessions ADD COLUMN first_edition INTEGER NOT NULL DEFAULT 0;
    UPDATE sessions SET first_edition = 1 WHERE message_count > 0;
    """
    + SECRETS,
    """
    DROP TABLE search_segments;
    DROP TABLE search_blocks;
    DELETE FROM marks WHERE name = 'index_format';
    CREATE INDEX session_by_agent ON sessions (namespace, agent_id);
    CREATE VIRTUAL TABLE search_words USING fts5 (
        terms, content = '', contentless_delete = 1, detail = none, tokenize = "porter ascii"
    );
    CREATE VIRTUAL TABLE search_parts USING fts5 (
        text, content = '', contentless_delete = 1, detail = none, tokenize = "trigram case_sensitive 1"
    );
    """,
    """
    DROP TABLE search_words;
    DROP TABLE search_parts;
    DELETE FROM marks WHERE name LIKE 'search_%';
    """
    + INDEX,
)
"""Each entry brings the schema from the version that is its index to the next. Entries are never changed."""

VERSION = len(MIGRATIONS)

_RETRY_S = 0.01


def prepare(connection: Connection, *, busy_ms: int) -> None:
    """Check that the file is ours, then bring its tables to this version. The check changes nothing.

    Where another process does the same at this moment it is waited for, `busy_ms` at most: SQLite does not
    wait by itself when a file changes to a write-ahead log (https://sqlite.org/c3ref/busy_handler.html).

    Raises:
        StoreUnavailable: it is another program's, newer, or damaged.
        apsw.Error: it cannot be read or written.
    """
    deadline = time.monotonic() + busy_ms / 1000
    while True:
        try:
            return _prepare(connection)
        except (apsw.BusyError, apsw.LockedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_S)


def _prepare(connection: Connection) -> None:
    with _transaction(connection, "DEFERRED"):
        current = checked_version(connection) == VERSION
    if not current and connection.pragma("page_count") == 0:
        connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
    _use_wal(connection)
    if not current:
        with _transaction(connection, "IMMEDIATE"):
            _migrate(connection, checked_version(connection))


@contextmanager
def _transaction(connection: Connection, kind: str) -> Generator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _use_wal(connection: Connection) -> None:
    if connection.pragma("journal_mode", "wal") != "wal":
        raise StoreUnavailable(
            "the store cannot use a write-ahead log where it is",
            "Put the state directory on a local file system.",
        )


def create(connection: Connection) -> None:
    """Make the tables in a database that is empty and nobody else's."""
    for statements in MIGRATIONS:
        connection.execute(statements).fetchall()


def _migrate(connection: Connection, version: int) -> None:
    for statements in MIGRATIONS[version:]:
        connection.execute(statements)
    connection.execute(
        "INSERT INTO secrets (secret) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM secrets)",
        (os.urandom(SECRET_BYTES),),
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def refuse_newer(connection: Connection) -> None:
    """Leave a store alone that another process has upgraded while this one had it open.

    It is called inside a transaction, so that nothing is written in the form of an older version.

    Raises:
        StoreUnavailable: the store has become newer.
    """
    if (version := connection.execute("PRAGMA user_version").get) > VERSION:
        raise StoreUnavailable(
            f"a newer context-sidecar has upgraded the store to schema version {version}; "
            f"this one knows up to {VERSION}",
            "Restart with the newer version, then repeat the request. What was stored before is kept.",
        )


def checked_version(connection: Connection) -> int:
    """The version of the file's tables, 0 where it has none; nothing is changed.

    Raises:
        StoreUnavailable: it is another program's, newer, or damaged.
        apsw.Error: it cannot be read.
    """
    version = connection.pragma("user_version")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if version == 0 and tables == 0:
        return 0
    if connection.pragma("application_id") != APPLICATION_ID:
        raise StoreUnavailable(
            "the store file is a SQLite database of another program",
            "Choose another file or state directory for the store.",
        )
    if not isinstance(version, int) or version < 1:
        raise damaged()
    if version > VERSION:
        raise StoreUnavailable(
            f"the store has schema version {version}, this context-sidecar knows up to {VERSION}",
            "Update context-sidecar, or choose another state directory. The store was not changed.",
        )
    return version
