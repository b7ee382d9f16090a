"""The buffers of a store that lives in memory."""

from collections.abc import Callable

from msgspec import Struct

from sidecar.store.buffer import (
    BufferPlace,
    ClaimEpisodes,
    ClearInjectedIds,
    DropEpisodes,
    Episode,
    PushEpisode,
)
from sidecar.store.stored import SessionRef


class _Held(Struct):
    place: BufferPlace
    episode: Episode
    holder: str | None = None
    leased_until_ms: int = 0


class MemoryBuffers:
    """`BufferRows` over dictionaries."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._next_row = 1
        self._held: dict[int, _Held] = {}
        self._injected: dict[tuple[BufferPlace, str], set[str]] = {}

    def push(self, write: PushEpisode) -> int:
        """See `BufferRows`."""
        rowid = self._next_row
        self._next_row += 1
        episode = Episode(rowid, write.payload, write.session_id, write.session_key, self._now_ms())
        self._held[rowid] = _Held(write.place, episode)
        return rowid

    def claim(self, write: ClaimEpisodes) -> list[Episode]:
        """See `BufferRows`."""
        now_ms = self._now_ms()
        free = [held for held in self._of(write.place) if held.leased_until_ms <= now_ms]
        for held in free[: write.limit]:
            held.holder, held.leased_until_ms = write.holder, now_ms + write.lease_ms
        return [held.episode for held in free[: write.limit]]

    def drop(self, write: DropEpisodes) -> int:
        """See `BufferRows`."""
        now_ms = self._now_ms()
        gone = [
            held.episode.rowid
            for held in self._of(write.place)
            if (write.rowids is None or held.episode.rowid in write.rowids)
            and (held.holder in (None, write.holder) or held.leased_until_ms <= now_ms)
        ]
        for rowid in gone:
            del self._held[rowid]
        return len(gone)

    def add_injected_id(self, place: BufferPlace, session_id: str, item_id: str) -> bool:
        """See `BufferRows`."""
        ids = self._injected.setdefault((place, session_id), set())
        new = item_id not in ids
        ids.add(item_id)
        return new

    def clear_injected_ids(self, write: ClearInjectedIds) -> None:
        """See `BufferRows`."""
        if write.item_ids is None:
            self._injected.pop((write.place, write.session_id), None)
        else:
            self._injected.get((write.place, write.session_id), set()).difference_update(write.item_ids)

    def copy_injected_ids(self, source: SessionRef, target: SessionRef) -> None:
        """See `BufferRows`."""
        for (place, session_id), ids in list(self._injected.items()):
            if (place.namespace, session_id) == source:
                copy = self._injected.setdefault(
                    (place._replace(namespace=target.namespace), target.session_id), set()
                )
                copy.update(ids)

    def drop_session(self, ref: SessionRef) -> None:
        """See `BufferRows`."""
        for rowid, held in list(self._held.items()):
            if (held.place.namespace, held.episode.session_id) == ref:
                del self._held[rowid]
        for place, session_id in list(self._injected):
            if (place.namespace, session_id) == ref:
                del self._injected[place, session_id]

    def episodes(self, place: BufferPlace) -> list[Episode]:
        """See `BufferRows`."""
        return [held.episode for held in self._of(place)]

    def count(self, place: BufferPlace) -> int:
        """See `BufferRows`."""
        return len(self._of(place))

    def has_injected_id(self, place: BufferPlace, session_id: str, item_id: str) -> bool:
        """See `BufferRows`."""
        return item_id in self._injected.get((place, session_id), ())

    def _of(self, place: BufferPlace) -> list[_Held]:
        return [held for held in self._held.values() if held.place == place]
