"""The spawned sessions of a store that lives in memory."""

from collections.abc import Callable

from sidecar.store.spawn import Spawn
from sidecar.store.stored import SessionRef


class MemorySpawns:
    """`SpawnRows` over a dictionary."""

    def __init__(self, bound: Callable[[str, str], dict[str | None, int]]) -> None:
        self._bound = bound
        self._kept: dict[tuple[str, str], Spawn] = {}

    def add(self, spawn: Spawn) -> None:
        """See `SpawnRows`."""
        self._kept[spawn.namespace, spawn.preparation_id] = spawn

    def drop(self, spawn: Spawn) -> None:
        """See `SpawnRows`."""
        self._kept.pop((spawn.namespace, spawn.preparation_id), None)

    def of_preparation(self, namespace: str, preparation_id: str) -> Spawn | None:
        """See `SpawnRows`."""
        return self._kept.get((namespace, preparation_id))

    def of_key(self, namespace: str, child_key: str) -> list[Spawn]:
        """See `SpawnRows`."""
        return [
            spawn
            for spawn in self._kept.values()
            if (spawn.namespace, spawn.child_key) == (namespace, child_key) and spawn.ended_ms is None
        ]

    def ended_of_key(self, namespace: str, child_key: str) -> list[Spawn]:
        """See `SpawnRows`."""
        return [
            spawn
            for spawn in self._kept.values()
            if (spawn.namespace, spawn.child_key) == (namespace, child_key) and spawn.ended_ms is not None
        ]

    def drop_ended(self, ref: SessionRef) -> None:
        """See `SpawnRows`."""
        for key, spawn in list(self._kept.items()):
            if (spawn.namespace, spawn.child_id) == ref and spawn.ended_ms is not None:
                del self._kept[key]

    def of_session(self, ref: SessionRef) -> Spawn | None:
        """See `SpawnRows`."""
        found = [
            spawn
            for spawn in self._kept.values()
            if (spawn.namespace, spawn.child_id) == ref and spawn.ended_ms is None
        ]
        return found[-1] if found else None

    def bound(self, namespace: str, session_key: str) -> dict[str | None, int]:
        """See `SpawnRows`."""
        return self._bound(namespace, session_key)

    def expired(self, now_ms: int) -> list[Spawn]:
        """See `SpawnRows`."""
        return [s for s in self._kept.values() if s.expires_ms is not None and s.expires_ms <= now_ms]

    def next_expiry(self) -> int | None:
        """See `SpawnRows`."""
        return min((s.expires_ms for s in self._kept.values() if s.expires_ms is not None), default=None)
