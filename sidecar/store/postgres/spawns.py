"""The spawned sessions in PostgreSQL."""

from collections.abc import Callable

from sidecar.store.postgres.connection import Value
from sidecar.store.postgres.escaping import short
from sidecar.store.postgres.locking import place_of_spawns, places_of_spawn
from sidecar.store.postgres.reads import PostgresReads
from sidecar.store.spawn import Spawn
from sidecar.store.stored import SessionRef

_COLUMNS = ", ".join(Spawn._fields)
_ADD = f"INSERT INTO spawns ({_COLUMNS}) VALUES ({', '.join(['%s'] * len(Spawn._fields))})"
_OF_PREPARATION = "left(preparation_id, 200) = left(%s, 200) AND preparation_id = %s AND namespace = %s"
_OF_KEY = "left(child_key, 200) = left(%s, 200) AND child_key = %s AND namespace = %s AND ended_ms IS "
_OF_SESSION = "left(child_id, 200) = left(%s, 200) AND child_id = %s AND namespace = %s AND ended_ms IS "


class PostgresSpawns:
    """`SpawnRows` over a connection."""

    def __init__(self, reads: PostgresReads, need: Callable[[set[int]], None] | None = None) -> None:
        """`need` makes sure that places are locked, where rows are changed."""
        self._reads = reads
        self._need = need or _need_nothing

    def add(self, spawn: Spawn) -> None:
        """See `SpawnRows`."""
        self.drop(spawn)
        self._reads.query(f"{_ADD} RETURNING 1", spawn)

    def drop(self, spawn: Spawn) -> None:
        """See `SpawnRows`."""
        self._need(places_of_spawn(spawn))
        bindings = (spawn.preparation_id, spawn.preparation_id, spawn.namespace)
        self._reads.query(f"DELETE FROM spawns WHERE {_OF_PREPARATION} RETURNING 1", bindings)

    def of_preparation(self, namespace: str, preparation_id: str) -> Spawn | None:
        """See `SpawnRows`."""
        found = self._of(_OF_PREPARATION, preparation_id, preparation_id, namespace)
        if found:
            self._need(places_of_spawn(found[0]))
        return found[0] if found else None

    def of_key(self, namespace: str, child_key: str) -> list[Spawn]:
        """See `SpawnRows`."""
        self._need({place_of_spawns(namespace, child_key)})
        return self._of(_OF_KEY + "NULL", child_key, child_key, namespace)

    def ended_of_key(self, namespace: str, child_key: str) -> list[Spawn]:
        """See `SpawnRows`."""
        return self._of(_OF_KEY + "NOT NULL", child_key, child_key, namespace)

    def drop_ended(self, ref: SessionRef) -> None:
        """See `SpawnRows`."""
        bindings = (ref.session_id, ref.session_id, ref.namespace)
        self._reads.query(f"DELETE FROM spawns WHERE {_OF_SESSION} NOT NULL RETURNING 1", bindings)

    def of_session(self, ref: SessionRef) -> Spawn | None:
        """See `SpawnRows`."""
        found = self._of(_OF_SESSION + "NULL", ref.session_id, ref.session_id, ref.namespace)
        return found[-1] if found else None

    def bound(self, namespace: str, session_key: str) -> dict[str | None, int]:
        """See `SpawnRows`; a long name is cut in the index, so the session tells whose binding it is."""
        found = self._reads.query(
            "SELECT CASE WHEN bound.agent_id <> '' THEN sessions.agent_id END, bound.session "
            "FROM session_keys AS bound JOIN sessions ON sessions.uid = bound.session "
            "WHERE bound.session_key = %s AND bound.namespace = %s",
            (short(session_key), short(namespace)),
        )
        return dict(found)

    def expired(self, now_ms: int) -> list[Spawn]:
        """See `SpawnRows`."""
        found = self._of("expires_ms <= %s", now_ms)
        self._need({place for spawn in found for place in places_of_spawn(spawn)})
        return found

    def next_expiry(self) -> int | None:
        """See `SpawnRows`."""
        return self._reads.value("SELECT min(expires_ms) FROM spawns")

    def _of(self, condition: str, *bindings: Value) -> list[Spawn]:
        statement = f"SELECT {_COLUMNS} FROM spawns WHERE {condition} ORDER BY prepared_ms, preparation_id"
        return [Spawn._make(row) for row in self._reads.query(statement, bindings)]


def _need_nothing(places: set[int]) -> None:
    """Reads see one state of all rows, whatever is locked."""
