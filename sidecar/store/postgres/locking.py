"""Which locks a batch takes, so that processes that share a server keep one order a session.

A batch locks the sessions that its writes name, in one fixed order, until it has committed. A write may
reach others: forks that share messages, what a spawned session began with. Once it has read one whose lock is
not held, the batch is undone and begins again with that lock too. So nobody waits for a session in which it
has no part, and two batches never wait for each other.

Names fall into a fixed number of places, so that no batch can use up the server's room for locks.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

from sidecar.store.spawn import Spawn
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Write

_PLACES = 1024
_HINTS = 10_000


class Unlocked(Exception):
    """A batch has read what is not locked: it has to begin again, and lock these places too."""

    def __init__(self, places: set[int]) -> None:
        super().__init__("the batch reaches further than its locks")
        self.places = places


class Locks:
    """The places that the transaction at hand has locked."""

    def __init__(self) -> None:
        self._held: set[int] = set()
        self._reached: dict[SessionRef, set[int]] = {}
        """What appends to a session have reached before, such as the session that it was forked from."""

    def take(self, batch: Sequence[Write], sessions: Iterable[SessionRef], also: set[int]) -> list[int]:
        """What a batch has to lock, in this order."""
        held = self._held = set(also)
        for ref in sessions:
            held.add(place_of_session(ref))
            held.update(self._reached.get(ref, ()))
        for write in batch:
            held.update(_other_places(write))
        return sorted(held)

    def need(self, places: set[int]) -> None:
        """Make sure that these are locked.

        Raises:
            Unlocked: some are not.
        """
        if not places <= self._held:
            raise Unlocked(places - self._held)

    def remember(self, write: Write, places: set[int]) -> None:
        """Lock these places from the start when the session of this write is written to again."""
        if write.verb == "append":
            if len(self._reached) >= _HINTS:
                self._reached.clear()
            self._reached.setdefault(write.ref, set()).update(places)  # type: ignore[attr-defined]


def sessions_of(batch: Sequence[Write]) -> set[SessionRef]:
    """The sessions that the writes name."""
    found: set[SessionRef] = set()
    for write in batch:
        found.update(_sessions(write))
    return found


def place_of_session(ref: SessionRef) -> int:
    """The place of one session."""
    return _place("session", *ref)


def place_of_key(namespace: str, session_key: str) -> int:
    """The place of a session key, with all sessions that agents have bound to it."""
    return _place("key", namespace, session_key)


def place_of_spawns(namespace: str, child_key: str) -> int:
    """The place of the spawned sessions under a key."""
    return _place("spawn", namespace, child_key)


def places_of_spawn(spawn: Spawn) -> set[int]:
    """What has to be locked to change a spawn."""
    places = {place_of_spawns(spawn.namespace, spawn.child_key)}
    if spawn.child is not None:
        places.add(place_of_session(spawn.child))
    return places


def _sessions(write: Any) -> tuple[SessionRef, ...]:
    if write.verb == "fork":
        return write.parent, write.child
    ref = getattr(write, "ref", None)
    return () if ref is None else (ref,)


def _other_places(write: Any) -> Iterable[int]:
    match write.verb:
        case "append" if write.session_key is not None:
            yield place_of_key(write.ref.namespace, write.session_key)
        case "configure":
            yield _place(write.scope, write.namespace, write.scope_id)
        case "claim_episodes" | "drop_episodes":
            yield _place("buffer", *write.place)
        case "add_injected_id" | "clear_injected_ids":
            yield _place("session", write.place.namespace, write.session_id)
        case "prepare_spawn":
            yield from places_of_spawn(write.spawn)
        case "begin_spawn":
            yield place_of_spawns(write.ref.namespace, write.child_key)
        case "end_spawn":
            yield place_of_spawns(write.namespace, write.child_key)
        case _:
            pass


def _place(*parts: str) -> int:
    return crc32("\0".join(parts).encode("utf-8", "surrogatepass")) % _PLACES
