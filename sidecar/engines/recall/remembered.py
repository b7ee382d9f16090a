"""The stored history of a session as recall reads it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from sidecar.engine.contract import Session
from sidecar.engine.entry import Entry
from sidecar.messages.excerpt import plain_text
from sidecar.recall.remarks import Remark
from sidecar.recall.working_set import WorkingSet
from sidecar.store.search import SearchQuery, SearchResult

KEPT_SESSIONS = 32
KEPT_REMARKS = 2000
"""Messages of one session that are kept as text."""
SPAN = 2400
"""Messages whose values are kept together at most; then the newest ones are taken in anew."""
GAP = 3
"""Messages between two wanted ones up to which they are read in one go."""


class SessionRemarks:
    """`RemarkSource` over one session; what was read is kept in `known`."""

    def __init__(self, session: Session, known: dict[int, Remark]) -> None:
        self._session = session
        self._known = known

    def note(self, entry: Entry) -> None:
        """Keep a message that was just stored."""
        self._known[entry.position or 0] = remark_of(entry)

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


class _Known:
    """What was read of one session."""

    def __init__(self) -> None:
        self.remarks: dict[int, Remark] = {}
        self.values = WorkingSet()
        self.first = self.last = 0
        """Positions of the first and the last message whose values were taken in."""


class Remembered:
    """What was read of the sessions that were asked for last."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[tuple[str, str], _Known] = OrderedDict()

    def of(self, session: Session) -> SessionRemarks:
        """The history of a session."""
        return SessionRemarks(session, self._known(session).remarks)

    def values(self, session: Session, before: Sequence[Entry]) -> WorkingSet:
        """The values of these messages, which follow each other, and perhaps of some in front of them."""
        known = self._known(session)
        first, last = (before[0].position, before[-1].position) if before else (None, None)
        if first is None or last is None:
            return _values_of(before)
        if not (known.first <= first <= known.last + 1 and known.last <= last < known.first + SPAN):
            known.values, known.first, known.last = WorkingSet(), first, first - 1
        for entry in before:
            if entry.position is None or entry.position > known.last:
                known.values.add(entry.reading)
        known.last = last
        return known.values

    def _known(self, session: Session) -> _Known:
        key = (session.session_id, session.history.version)
        known = self._sessions.setdefault(key, _Known())
        self._sessions.move_to_end(key)
        if len(self._sessions) > KEPT_SESSIONS:
            self._sessions.popitem(last=False)
        return known


def _values_of(entries: Sequence[Entry]) -> WorkingSet:
    values = WorkingSet()
    for entry in entries:
        values.add(entry.reading)
    return values


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
