"""The stored history of a session as recall reads it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from sidecar.engine.contract import Session
from sidecar.engine.entry import Entry
from sidecar.messages.excerpt import plain_text
from sidecar.recall.remarks import Remark
from sidecar.store.search import SearchQuery, SearchResult

KEPT_SESSIONS = 32
KEPT_REMARKS = 2000
"""Messages of one session that are kept as text."""
GAP = 3
"""Messages between two wanted ones up to which they are read in one go."""


class SessionRemarks:
    """`RemarkSource` over one session; what was read is kept in `known`."""

    def __init__(self, session: Session, known: dict[int, Remark]) -> None:
        self._session = session
        self._known = known

    async def search(self, query: SearchQuery) -> SearchResult:
        """See `RemarkSource`."""
        return await self._session.history.search(query)

    async def remarks(self, positions: Sequence[int]) -> dict[int, Remark]:
        """See `RemarkSource`."""
        missing = sorted(position for position in set(positions) if position not in self._known)
        for first, last in _runs(missing):
            for entry in await self._session.history.read(first, last):
                self._known[entry.position or 0] = remark_of(entry)
        found = {p: self._known[p] for p in positions if p in self._known and self._known[p].text}
        if len(self._known) > KEPT_REMARKS:
            self._known.clear()
        return found


class Remembered:
    """What was read of the sessions that were asked for last."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[tuple[str, str], dict[int, Remark]] = OrderedDict()

    def of(self, session: Session) -> SessionRemarks:
        """The history of a session."""
        key = (session.session_id, session.history.version)
        known = self._sessions.setdefault(key, {})
        self._sessions.move_to_end(key)
        if len(self._sessions) > KEPT_SESSIONS:
            self._sessions.popitem(last=False)
        return SessionRemarks(session, known)


def remark_of(entry: Entry) -> Remark:
    """What a message of the session says; nothing where it is a system message or a heartbeat."""
    reading = entry.reading
    silent = entry.heartbeat or entry.role == "system"
    return Remark(
        entry.position or 0,
        entry.turn_id,
        entry.role,
        entry.timestamp_ms,
        "" if silent else plain_text(reading),
        bool(reading.results),
        bool(reading.calls),
    )


def _runs(positions: Sequence[int]) -> list[tuple[int, int]]:
    """The positions as stretches that are read in one go."""
    runs: list[tuple[int, int]] = []
    for position in positions:
        if runs and position - runs[-1][1] <= GAP:
            runs[-1] = (runs[-1][0], position)
        else:
            runs.append((position, position))
    return runs
