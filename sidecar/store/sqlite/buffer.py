"""The buffers in the SQLite file."""

from collections.abc import Callable, Sequence

import msgspec

from sidecar.store.buffer import (
    BufferPlace,
    ClaimEpisodes,
    ClearInjectedIds,
    DropEpisodes,
    Episode,
    PushEpisode,
)
from sidecar.store.sqlite.reads import SQLiteReads
from sidecar.store.stored import SessionRef

_EPISODE = "row_id, payload, session_id, session_key, pushed_ms"
_PUSH = (
    "INSERT INTO episodes (namespace, engine, session_id, session_key, pushed_ms, leased_until_ms, payload) "
    "VALUES (?, ?, ?, ?, ?, 0, ?)"
)
_FREE = (
    f"SELECT {_EPISODE} FROM episodes WHERE namespace = ? AND engine = ? AND leased_until_ms <= ? "
    "ORDER BY row_id LIMIT ?"
)
_LEASE = (
    "UPDATE episodes SET holder = ?, leased_until_ms = ? WHERE row_id IN (SELECT value FROM json_each(?))"
)
_DROP = (
    "DELETE FROM episodes WHERE namespace = ? AND engine = ? "
    "AND (holder IS NULL OR holder = ? OR leased_until_ms <= ?)"
)
_ADD_ID = "INSERT OR IGNORE INTO injected_ids (namespace, engine, session_id, item_id) VALUES (?, ?, ?, ?)"
_COPY_IDS = (
    "INSERT OR IGNORE INTO injected_ids (namespace, engine, session_id, item_id) "
    "SELECT ?, engine, ?, item_id FROM injected_ids WHERE namespace = ? AND session_id = ?"
)


class SQLiteBuffers:
    """`BufferRows` over a connection."""

    def __init__(self, reads: SQLiteReads, now_ms: Callable[[], int] | None = None) -> None:
        self._reads = reads
        self._now_ms = now_ms or int

    def push(self, write: PushEpisode) -> int:
        """See `BufferRows`."""
        self._reads.query(
            _PUSH, (*write.place, write.session_id, write.session_key, self._now_ms(), write.payload)
        )
        return self._reads.connection.last_insert_rowid()

    def claim(self, write: ClaimEpisodes) -> list[Episode]:
        """See `BufferRows`."""
        now_ms = self._now_ms()
        found = [Episode._make(row) for row in self._reads.query(_FREE, (*write.place, now_ms, write.limit))]
        rowids = _listed([episode.rowid for episode in found])
        self._reads.query(_LEASE, (write.holder, now_ms + write.lease_ms, rowids))
        return found

    def drop(self, write: DropEpisodes) -> int:
        """See `BufferRows`."""
        bindings = (*write.place, write.holder, self._now_ms())
        if write.rowids is None:
            self._reads.query(_DROP, bindings)
        else:
            named = f"{_DROP} AND row_id IN (SELECT value FROM json_each(?))"
            self._reads.query(named, (*bindings, _listed(write.rowids)))
        return self._reads.connection.changes()

    def add_injected_id(self, place: BufferPlace, session_id: str, item_id: str) -> bool:
        """See `BufferRows`."""
        self._reads.query(_ADD_ID, (*place, session_id, item_id))
        return self._reads.connection.changes() > 0

    def clear_injected_ids(self, write: ClearInjectedIds) -> None:
        """See `BufferRows`."""
        erase = "DELETE FROM injected_ids WHERE namespace = ? AND engine = ? AND session_id = ?"
        of_session = (*write.place, write.session_id)
        if write.item_ids is None:
            self._reads.query(erase, of_session)
            return
        for item_id in write.item_ids:
            self._reads.query(f"{erase} AND item_id = ?", (*of_session, item_id))

    def copy_injected_ids(self, source: SessionRef, target: SessionRef) -> None:
        """See `BufferRows`."""
        self._reads.query(_COPY_IDS, (*target, *source))

    def drop_session(self, ref: SessionRef) -> None:
        """See `BufferRows`."""
        for table in ("episodes", "injected_ids"):
            self._reads.query(f"DELETE FROM {table} WHERE namespace = ? AND session_id = ?", ref)

    def episodes(self, place: BufferPlace) -> list[Episode]:
        """See `BufferRows`."""
        found = self._reads.query(
            f"SELECT {_EPISODE} FROM episodes WHERE namespace = ? AND engine = ? ORDER BY row_id", place
        )
        return [Episode._make(row) for row in found]

    def count(self, place: BufferPlace) -> int:
        """See `BufferRows`."""
        return self._reads.value("SELECT count(*) FROM episodes WHERE namespace = ? AND engine = ?", place)

    def has_injected_id(self, place: BufferPlace, session_id: str, item_id: str) -> bool:
        """See `BufferRows`."""
        found = self._reads.value(
            "SELECT 1 FROM injected_ids "
            "WHERE namespace = ? AND engine = ? AND session_id = ? AND item_id = ?",
            (*place, session_id, item_id),
        )
        return found is not None


def _listed(rowids: Sequence[int]) -> str:
    return msgspec.json.encode(rowids).decode()
