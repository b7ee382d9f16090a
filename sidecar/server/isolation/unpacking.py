"""Makes entries, in an engine's process, of what the sidecar has packed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from msgspec import Struct

from sidecar.engine.entry import Entry
from sidecar.messages.contract import Dialect, Reading
from sidecar.server.isolation.packing import KEPT_SESSIONS
from sidecar.server.isolation.wire import PackedEntry

KEPT_BYTES = 48 << 20
"""Bodies of all sessions that a process keeps, in bytes."""


class BodyMissing(Exception):
    """Raised when a body was not sent, and is not kept any more."""


class _Body(Struct):
    raw: bytes
    reading: Reading | None = None


class Unpacker:
    """Keeps the bodies that came, and what they say, so that neither travels nor is read twice."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._sessions: OrderedDict[str, dict[str, _Body]] = OrderedDict()
        self._bytes = 0

    def unpack(self, session_id: str, packed: Sequence[PackedEntry]) -> list[Entry]:
        """The entries.

        Raises:
            BodyMissing: one came without its body; ask for all of them again.
        """
        bodies = self._of_session(session_id)
        for item in packed:
            if item.body is not None:
                self._bytes += len(item.body)
                bodies[item.message_id] = _Body(item.body)
        try:
            entries = [self._entry(item, bodies[item.message_id]) for item in packed]
        except KeyError:
            raise BodyMissing from None
        self._trim()
        return entries

    def _entry(self, item: PackedEntry, body: _Body) -> Entry:
        if body.reading is None:
            body.reading = self._dialect.read(body.raw)
        entry = Entry(
            message_id=item.message_id,
            position=item.position,
            place=item.place,
            turn=item.turn,
            turn_id=item.turn_id,
            role=item.role,
            timestamp_ms=item.timestamp_ms,
            heartbeat=item.heartbeat,
            raw=body.raw,
            dialect=self._dialect,
            cost=lambda _: item.tokens,
            reading=body.reading,
            tokens=item.tokens,
        )
        if item.whole is not None:
            entry.whole = entry.moved(item.place, raw=item.whole)
        return entry

    def _of_session(self, session_id: str) -> dict[str, _Body]:
        bodies = self._sessions.setdefault(session_id, {})
        self._sessions.move_to_end(session_id)
        if len(self._sessions) > KEPT_SESSIONS:
            self._drop_oldest()
        return bodies

    def _trim(self) -> None:
        while self._bytes > KEPT_BYTES and self._sessions:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, bodies = self._sessions.popitem(last=False)
        self._bytes = max(0, self._bytes - sum(len(body.raw) for body in bodies.values()))
