"""One message of a session as engines see it."""

from __future__ import annotations

from collections.abc import Callable

from sidecar.messages.contract import Dialect, IdentityKeys, Reading, Role
from sidecar.messages.identity import keys


class Entry:
    """A message with what is known of it; it is read, and its tokens are counted, when that is asked for."""

    __slots__ = (
        "_cost",
        "_dialect",
        "_keys",
        "_reading",
        "_tokens",
        "heartbeat",
        "how",
        "message_id",
        "place",
        "position",
        "raw",
        "role",
        "timestamp_ms",
        "turn",
        "turn_id",
        "whole",
    )

    def __init__(
        self,
        *,
        message_id: str,
        position: int | None,
        place: int,
        turn: int,
        turn_id: str,
        role: Role,
        timestamp_ms: int,
        heartbeat: bool,
        raw: bytes,
        dialect: Dialect,
        cost: Callable[[Reading], int],
        reading: Reading | None = None,
        tokens: int = -1,
    ) -> None:
        self.message_id = message_id
        self.position = position
        """Place in the stored history, from 1; `None` for a message of the host that is not stored yet."""
        self.place = place
        """Order on the timeline; rises from entry to entry, not always by one."""
        self.turn = turn
        """Number of the turn, from 1; rises along the session."""
        self.turn_id = turn_id
        self.role: Role = role
        self.timestamp_ms = timestamp_ms
        self.heartbeat = heartbeat
        self.raw = raw
        """The bytes that came, and that go out again; a stand-in's own where `whole` is set."""
        self.whole: Entry | None = None
        """The message itself where this is a stand-in with tool results or images left out."""
        self.how = ""
        """How a stand-in was made, empty where this is the message itself."""
        self._dialect = dialect
        self._cost = cost
        self._reading = reading
        self._tokens = tokens
        self._keys: IdentityKeys | None = None

    @property
    def reading(self) -> Reading:
        """What the message says."""
        if self._reading is None:
            self._reading = self._dialect.read(self.raw)
        return self._reading

    @property
    def tokens(self) -> int:
        """What the message costs the model, overhead included."""
        if self._tokens < 0:
            self._tokens = self._cost(self.reading)
        return self._tokens

    @property
    def keys(self) -> IdentityKeys:
        """The fingerprints by which the message is known again."""
        if self._keys is None:
            self._keys = keys(self.reading)
        return self._keys

    @property
    def opens_turn(self) -> bool:
        """True where a turn begins with this message."""
        return self.role == "user" and not self.heartbeat and self.reading.opens_turn

    def moved(self, place: int, *, raw: bytes | None = None, reading: Reading | None = None) -> Entry:
        """The same message at another place of a timeline, in the host's own bytes where they are given.

        `reading` is what those say, where it is known.
        """
        if raw is not None and raw != self.raw:
            return self._copy(place, raw, reading)
        entry = self._copy(place, self.raw, self._reading)
        entry._tokens, entry._keys = self._tokens, self._keys
        return entry

    def copy(self) -> Entry:
        """The same message in an object of its own, for somebody who might change it."""
        entry = self._copy(self.place, self.raw, self._reading)
        entry._tokens, entry._keys = self._tokens, self._keys
        entry.whole, entry.how = self.whole, self.how
        return entry

    def stand_in(self, raw: bytes, how: str = "clear") -> Entry:
        """`raw` in place of this message, which stays known as the stand-in's `whole`."""
        entry = self._copy(self.place, raw, None)
        entry.whole, entry.how = self, how
        return entry

    def _copy(self, place: int, raw: bytes, reading: Reading | None) -> Entry:
        return Entry(
            message_id=self.message_id,
            position=self.position,
            place=place,
            turn=self.turn,
            turn_id=self.turn_id,
            role=self.role,
            timestamp_ms=self.timestamp_ms,
            heartbeat=self.heartbeat,
            raw=raw,
            dialect=self._dialect,
            cost=self._cost,
            reading=reading,
        )
