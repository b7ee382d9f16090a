"""The stored history of a session as recall reads it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from sidecar.engine.entry import Entry
from sidecar.engine.session import Session
from sidecar.engines.recollecting import SessionRemarks
from sidecar.recall.instructions import Instruction, standing, standing_since
from sidecar.recall.remarks import Remark
from sidecar.recall.working_set import WorkingSet

KEPT_SESSIONS = 32
NEW = 200
"""Messages that are read for instructions; of more, those with telling words are looked for."""
SPAN = 2400
"""Messages whose values are kept together at most; then the newest ones are taken in anew."""


class _Known:
    """What was read of one session."""

    def __init__(self) -> None:
        self.remarks: dict[int, Remark] = {}
        self.values = WorkingSet()
        self.first = self.last = 0
        """Positions of the first and the last message whose values were taken in."""
        self.standing: Sequence[Instruction] = ()
        self.told = 0
        """The position up to which these are all instructions."""


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

    async def standing(self, session: Session, last: int) -> Sequence[Instruction]:
        """What users said up to the position `last` that is to hold."""
        known, source = self._known(session), self.of(session)
        if 0 < known.told <= last <= known.told + NEW:
            known.standing = await standing_since(source, known.standing, known.told + 1, last)
        else:
            known.standing = await standing(source, last)
        known.told = last
        return known.standing

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
