"""The spawned sessions in the SQLite file."""

from sidecar.store.spawn import Spawn
from sidecar.store.sqlite.connection import Value
from sidecar.store.sqlite.reads import SQLiteReads
from sidecar.store.stored import SessionRef

_COLUMNS = ", ".join(Spawn._fields)
_ADD = f"INSERT OR REPLACE INTO spawns ({_COLUMNS}) VALUES ({', '.join('?' * len(Spawn._fields))})"
_OLDEST_FIRST = "ORDER BY prepared_ms, preparation_id"


class SQLiteSpawns:
    """`SpawnRows` over a connection."""

    def __init__(self, reads: SQLiteReads) -> None:
        self._reads = reads

    def add(self, spawn: Spawn) -> None:
        """See `SpawnRows`."""
        self._reads.query(_ADD, spawn)

    def drop(self, spawn: Spawn) -> None:
        """See `SpawnRows`."""
        self._reads.query(
            "DELETE FROM spawns WHERE namespace = ? AND preparation_id = ?",
            (spawn.namespace, spawn.preparation_id),
        )

    def of_preparation(self, namespace: str, preparation_id: str) -> Spawn | None:
        """See `SpawnRows`."""
        found = self._of("namespace = ? AND preparation_id = ?", namespace, preparation_id)
        return found[0] if found else None

    def of_key(self, namespace: str, child_key: str) -> list[Spawn]:
        """See `SpawnRows`."""
        return self._of("child_key = ? AND namespace = ? AND ended_ms IS NULL", child_key, namespace)

    def ended_of_key(self, namespace: str, child_key: str) -> list[Spawn]:
        """See `SpawnRows`."""
        return self._of("child_key = ? AND namespace = ? AND ended_ms IS NOT NULL", child_key, namespace)

    def drop_ended(self, ref: SessionRef) -> None:
        """See `SpawnRows`."""
        self._reads.query(
            "DELETE FROM spawns WHERE namespace = ? AND child_id = ? AND ended_ms IS NOT NULL", ref
        )

    def of_session(self, ref: SessionRef) -> Spawn | None:
        """See `SpawnRows`."""
        found = self._of("child_id = ? AND namespace = ? AND ended_ms IS NULL", ref.session_id, ref.namespace)
        return found[-1] if found else None

    def bound(self, namespace: str, session_key: str) -> dict[str | None, int]:
        """See `SpawnRows`."""
        found = self._reads.query(
            "SELECT agent_id, session FROM session_keys WHERE session_key = ? AND namespace = ?",
            (session_key, namespace),
        )
        return {agent_id or None: session for agent_id, session in found}

    def expired(self, now_ms: int) -> list[Spawn]:
        """See `SpawnRows`."""
        return self._of("expires_ms <= ?", now_ms)

    def next_expiry(self) -> int | None:
        """See `SpawnRows`."""
        return self._reads.value("SELECT min(expires_ms) FROM spawns")

    def _of(self, condition: str, *bindings: Value) -> list[Spawn]:
        statement = f"SELECT {_COLUMNS} FROM spawns WHERE {condition} {_OLDEST_FIRST}"
        return [Spawn._make(row) for row in self._reads.query(statement, bindings)]
