"""Which locks a batch takes, so that processes that share a server keep one order a session.

A batch locks what its writes name, in one fixed order, until it has committed. Names fall into a fixed number
of places, so that no batch can use up the server's room for locks. Writes that pass messages from one session
to another run alone, because the sessions that they reach are not known beforehand.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

from sidecar.store.stored import SessionRef
from sidecar.store.writes import Write

_PLACES = 1024
_SPAWNING = {"prepare_spawn", "begin_spawn", "roll_back_spawn", "end_spawn", "sweep_spawns"}
_ALONE = {"fork", "truncate", "delete", "expire", *_SPAWNING}


def runs_alone(batch: Sequence[Write]) -> bool:
    """Whether the batch may pass messages from one session to another."""
    return any(write.verb in _ALONE or _inserts(write) for write in batch)


def sessions_of(batch: Sequence[Write]) -> set[SessionRef]:
    """The sessions that the writes name."""
    found: set[SessionRef] = set()
    for write in batch:
        found.update(_sessions(write))
    return found


def places_of(batch: Sequence[Write], sessions: Iterable[SessionRef]) -> list[int]:
    """The places of everything that the writes name, in the order to lock them in."""
    places = {place_of_session(ref) for ref in sessions}
    for write in batch:
        places.update(_other_places(write))
    return sorted(places)


def place_of_session(ref: SessionRef) -> int:
    """The place of one session."""
    return _place("session", *ref)


def _sessions(write: Any) -> tuple[SessionRef, ...]:
    if write.verb == "fork":
        return write.parent, write.child
    ref = getattr(write, "ref", None)
    return () if ref is None else (ref,)


def _other_places(write: Any) -> Iterable[int]:
    match write.verb:
        case "append" if write.session_key is not None:
            yield _place("key", write.ref.namespace, write.session_key)
        case "configure":
            yield _place(write.scope, write.namespace, write.scope_id)
        case "claim_episodes" | "drop_episodes":
            yield _place("buffer", *write.place)
        case "add_injected_id" | "clear_injected_ids":
            yield _place("session", write.place.namespace, write.session_id)
        case _:
            pass


def _inserts(write: Any) -> bool:
    return write.verb == "append" and any(message.after is not None for message in write.messages)


def _place(*parts: str) -> int:
    return crc32("\0".join(parts).encode("utf-8", "surrogatepass")) % _PLACES
