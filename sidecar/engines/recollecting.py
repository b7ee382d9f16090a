"""What engines that recall share about prompts, stored messages, places of recollections."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sidecar.engine.entry import Entry
from sidecar.engine.session import Session
from sidecar.engine.signature import digest
from sidecar.engine.window import Window
from sidecar.messages import fence
from sidecar.messages.contract import Mark
from sidecar.messages.pairing import units
from sidecar.messages.text import fold, plain_text
from sidecar.recall.remarks import Remark
from sidecar.recall.situations import Situation, situation
from sidecar.store.search import SearchQuery, SearchResult
from sidecar.tokens.message_cost import MESSAGE_OVERHEAD

KEPT_REMARKS = 2000
"""Messages of one session that are kept as text."""
GAP = 3
"""Messages between two wanted ones up to which they are read in one go."""
ANCHOR_TOKENS, REACH = 4096, 64
"""Tokens and messages from the end among which the last whole unit is looked for."""
NEWEST_TEXTS = 3
"""Messages at the end that a short prompt is read with."""
SOME = Mark("recall", "01234567")
"""As long as the mark of any recollection."""


class SessionRemarks:
    """`RemarkSource` over one session; what was read is kept in `known`."""

    def __init__(self, session: Session, known: dict[int, Remark]) -> None:
        self._session = session
        self._known = known

    def note(self, entry: Entry) -> None:
        """Keep a message that was just stored."""
        self._known[entry.position or 0] = remark_of(entry)
        if len(self._known) > KEPT_REMARKS:
            del self._known[next(iter(self._known))]

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


def anchor(entries: Sequence[Entry]) -> Entry | None:
    """The last message behind which a text may stand: not between a call and its results."""
    newest = entries[-REACH:]
    for unit in reversed(units([entry.reading for entry in newest])):
        if not unit.open:
            return newest[unit.indices[-1]]
    return None


def last_stored(entries: Sequence[Entry]) -> int:
    """The position of the last of some messages that is stored; 0 where none is."""
    return next((entry.position for entry in reversed(entries) if entry.position), 0)


async def asked_last(session: Session) -> str:
    """The text of the user message that opened the newest turn."""
    newest = (await session.timeline.tail(0)).entries
    opener = await session.timeline.opener(newest[-1].turn) if newest else None
    return plain_text(opener.reading) if opener else ""


def asked_in(window: Window, prompt: str) -> Situation:
    """What a prompt is about behind the messages of a window."""
    return situation(prompt, [plain_text(entry.reading) for entry in window.entries[-NEWEST_TEXTS:]])


def is_open(place: str, window: Window, key: str) -> bool:
    """Whether what stands behind the message `place` is for the turn that is open.

    It is not where the same words, for which `key` stands, were asked in an earlier turn.
    """
    ids = [entry.message_id for entry in window.entries]
    if place not in ids:
        return False
    opened = [entry for entry in window.entries[ids.index(place) + 1 :] if entry.opens_turn]
    return not opened or (len(opened) == 1 and prompt_key(plain_text(opened[0].reading)) == key)


def framed(text: str, count: Callable[[str], int], mark: Mark = SOME) -> int:
    """What a message with this text and mark takes, before calibration."""
    return count(fence.sized(mark, text)) + MESSAGE_OVERHEAD


def prompt_key(prompt: str) -> str:
    """Stands for a prompt."""
    return digest(fold(prompt))


def _runs(positions: Sequence[int]) -> list[tuple[int, int]]:
    """The positions as stretches that are read in one go."""
    runs: list[tuple[int, int]] = []
    for position in positions:
        if runs and position - runs[-1][1] <= GAP:
            runs[-1] = (runs[-1][0], position)
        else:
            runs.append((position, position))
    return runs
