"""One message of a session as engines see it."""

from __future__ import annotations

from collections.abc import Callable

from sidecar.messages.contract import Dialect, IdentityKeys, Reading, Role
from sidecar.messages.identity import keys


class Entry:
    """A message with its metadata; parsing it and counting its tokens happen on demand."""

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
        """Position in the stored history, from 1; `None` for a host message that is not stored yet."""
        self.place = place
        """Order on the timeline; increases from entry to entry, not always by one."""
        self.turn = turn
        """Number of the turn, from 1; never falls along the session."""
        self.turn_id = turn_id
        self.role: Role = role
        self.timestamp_ms = timestamp_ms
        self.heartbeat = heartbeat
        self.raw = raw
        """The bytes as received, which are also sent; for a stand-in (`whole` is set), its own bytes."""
        self.whole: Entry | None = None
        """The original message, if this is a stand-in with tool results or images left out."""
        self.how = ""
        """How the stand-in was made; empty for an original message."""
        self._dialect = dialect
        self._cost = cost
        self._reading = reading
        self._tokens = tokens
        self._keys: IdentityKeys | None = None

    @property
    def reading(self) -> Reading:
        """The parsed message."""
        if self._reading is None:
            self._reading = self._dialect.read(self.raw)
        return self._reading

    @property
    def tokens(self) -> int:
        """Tokens of the message, overhead included."""
        if self._tokens < 0:
            self._tokens = self._cost(self.reading)
        return self._tokens

    @property
    def keys(self) -> IdentityKeys:
        """Fingerprints that identify the message."""
        if self._keys is None:
            self._keys = keys(self.reading)
        return self._keys

    @property
    def opens_turn(self) -> bool:
        """Whether this message begins a turn."""
        return self.role == "user" and not self.heartbeat and self.reading.opens_turn

    def moved(self, place: int, *, raw: bytes | None = None, reading: Reading | None = None) -> Entry:
        """The same message at another place on a timeline; `raw`, if given, replaces its bytes.

        `reading` is `raw` parsed, if available.
        """
        if raw is not None and raw != self.raw:
            return self._copy(place, raw, reading)
        entry = self._copy(place, self.raw, self._reading)
        entry._tokens, entry._keys = self._tokens, self._keys
        return entry

    def copy(self) -> Entry:
        """An independent copy that the caller may modify."""
        entry = self._copy(self.place, self.raw, self._reading)
        entry._tokens, entry._keys = self._tokens, self._keys
        entry.whole, entry.how = self.whole, self.how
        return entry

    def stand_in(self, raw: bytes, how: str = "clear") -> Entry:
        """A stand-in with the bytes `raw`; its `whole` is this message."""
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
