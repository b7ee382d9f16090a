"""The buffers in PostgreSQL.

Leases run by the server's clock, because those of the hosts that share a buffer may differ.
"""

from sidecar.store.buffer import (
    BufferPlace,
    ClaimEpisodes,
    ClearInjectedIds,
    DropEpisodes,
    Episode,
    PushEpisode,
)
from sidecar.store.postgres.connection import Value
from sidecar.store.postgres.escaping import short
from sidecar.store.postgres.reads import PostgresReads
from sidecar.store.stored import SessionRef

_NOW_MS = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_EPISODE = "row_id, payload, session_id, session_key, pushed_ms"
_IN_BUFFER = (
    "left(engine, 200) = left(%s, 200) AND left(namespace, 200) = left(%s, 200) "
    "AND engine = %s AND namespace = %s"
)
_PUSH = (
    "INSERT INTO episodes (namespace, engine, session_id, session_key, pushed_ms, leased_until_ms, payload) "
    f"VALUES (%s, %s, %s, %s, {_NOW_MS}, 0, %s) RETURNING row_id"
)
_CLAIM = (
    f"UPDATE episodes SET holder = %s, leased_until_ms = {_NOW_MS} + %s WHERE row_id IN "
    f"(SELECT row_id FROM episodes WHERE {_IN_BUFFER} AND leased_until_ms <= {_NOW_MS} "
    f"ORDER BY row_id LIMIT %s FOR UPDATE) RETURNING {_EPISODE}"
)
_DROP = (
    f"DELETE FROM episodes WHERE {_IN_BUFFER} "
    f"AND (holder IS NULL OR holder = %s OR leased_until_ms <= {_NOW_MS})"
)
_ADD_ID = (
    "INSERT INTO injected_ids (namespace, engine, session_id, item_id) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT DO NOTHING"
)
_COPY_IDS = (
    "INSERT INTO injected_ids (namespace, engine, session_id, item_id) "
    "SELECT %s, engine, %s, item_id FROM injected_ids WHERE namespace = %s AND session_id = %s "
    "ON CONFLICT DO NOTHING"
)


class PostgresBuffers:
    """`BufferRows` over a connection."""

    def __init__(self, reads: PostgresReads) -> None:
        self._reads = reads

    def push(self, write: PushEpisode) -> int:
        """See `BufferRows`."""
        return self._reads.value(_PUSH, (*write.place, write.session_id, write.session_key, write.payload))

    def claim(self, write: ClaimEpisodes) -> list[Episode]:
        """See `BufferRows`."""
        bindings = (write.holder, write.lease_ms, *_in_buffer(write.place), write.limit)
        return sorted(Episode._make(row) for row in self._reads.query(_CLAIM, bindings))

    def drop(self, write: DropEpisodes) -> int:
        """See `BufferRows`."""
        bindings = (*_in_buffer(write.place), write.holder)
        if write.rowids is None:
            return self._change(_DROP, *bindings)
        return self._change(f"{_DROP} AND row_id = ANY(%s::bigint[])", *bindings, write.rowids)

    def add_injected_id(self, place: BufferPlace, session_id: str, item_id: str) -> bool:
        """See `BufferRows`."""
        return self._change(_ADD_ID, *map(short, (*place, session_id, item_id))) > 0

    def clear_injected_ids(self, write: ClearInjectedIds) -> None:
        """See `BufferRows`."""
        erase = "DELETE FROM injected_ids WHERE namespace = %s AND engine = %s AND session_id = %s"
        of_session = tuple(map(short, (*write.place, write.session_id)))
        if write.item_ids is None:
            self._change(erase, *of_session)
            return
        for item_id in write.item_ids:
            self._change(f"{erase} AND item_id = %s", *of_session, short(item_id))

    def copy_injected_ids(self, source: SessionRef, target: SessionRef) -> None:
        """See `BufferRows`."""
        self._change(_COPY_IDS, *map(short, (*target, *source)))

    def drop_session(self, ref: SessionRef) -> None:
        """See `BufferRows`."""
        namespace, session_id = ref
        self._change(
            "DELETE FROM episodes WHERE left(session_id, 200) = left(%s, 200) "
            "AND left(namespace, 200) = left(%s, 200) AND session_id = %s AND namespace = %s",
            *(session_id, namespace, session_id, namespace),
        )
        self._change("DELETE FROM injected_ids WHERE namespace = %s AND session_id = %s", *map(short, ref))

    def episodes(self, place: BufferPlace) -> list[Episode]:
        """See `BufferRows`."""
        found = self._reads.query(
            f"SELECT {_EPISODE} FROM episodes WHERE {_IN_BUFFER} ORDER BY row_id", _in_buffer(place)
        )
        return [Episode._make(row) for row in found]

    def count(self, place: BufferPlace) -> int:
        """See `BufferRows`."""
        return self._reads.value(f"SELECT count(*) FROM episodes WHERE {_IN_BUFFER}", _in_buffer(place))

    def has_injected_id(self, place: BufferPlace, session_id: str, item_id: str) -> bool:
        """See `BufferRows`."""
        found = self._reads.value(
            "SELECT 1 FROM injected_ids "
            "WHERE namespace = %s AND engine = %s AND session_id = %s AND item_id = %s",
            tuple(map(short, (*place, session_id, item_id))),
        )
        return found is not None

    def _change(self, statement: str, *bindings: Value) -> int:
        return self._reads.cursor.execute(statement, bindings).rowcount


def _in_buffer(place: BufferPlace) -> tuple[str, str, str, str]:
    namespace, engine = place
    return engine, namespace, engine, namespace
