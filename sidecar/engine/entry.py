"""One message of a session as engines see it."""

from __future__ import annotations

from msgspec import Struct

from sidecar.messages.contract import Reading


class Entry(Struct, frozen=True, kw_only=True, eq=False):
    """A message with what is known of it."""

    message_id: str
    position: int | None
    """Place in the stored history, from 1; `None` for a message of the host that is not stored yet."""
    place: int
    """Order on the timeline; rises from entry to entry, not always by one."""
    turn: int
    """Number of the turn, from 1; rises along the session."""
    turn_id: str
    reading: Reading
    tokens: int
    """What the message costs the model, overhead included."""
    timestamp_ms: int
    heartbeat: bool
    raw: bytes
    """The bytes that came, and that go out again."""

    @property
    def role(self) -> str:
        """The neutral role."""
        return self.reading.role

    @property
    def opens_turn(self) -> bool:
        """True where a turn begins with this message."""
        return self.reading.opens_turn and not self.heartbeat
