"""The sessions that are in use, least recently used ones let go."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from sidecar.server.sessions.live import LiveSession
from sidecar.store.errors import FormatMismatch, SessionMissing
from sidecar.store.stored import SessionHead

if TYPE_CHECKING:
    from sidecar.server.sidecar import Sidecar

KEPT = 256
"""Sessions held in memory."""
MOST_KEPT = 4 * KEPT
"""The same where the lists of the host hold messages that are not stored yet."""


HEAVY_BYTES = 1 << 20
"""A host's list of this size, and more, is kept of the sessions that were used last only."""
HEAVY_KEPT = 32


class SessionRegistry:
    """Opens sessions, and keeps what is cached of them."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._recent: OrderedDict[str, LiveSession] = OrderedDict()
        self._heavy: OrderedDict[str, None] = OrderedDict()
        self._live: WeakValueDictionary[str, LiveSession] = WeakValueDictionary()
        """Also those that were let go while somebody still works on them: there is never a second one."""

    async def open(self, session_id: str, agent_id: str | None) -> LiveSession:
        """A session, known to the store or not (then its `head` is `None`).

        Raises:
            SessionMissing: it belongs to another agent.
            FormatMismatch: it holds messages of another dialect.
        """
        live = self._live.get(session_id)
        if live is None:
            sidecar = self._sidecar
            ref, searching = sidecar.ref(session_id), sidecar.searching
            live = LiveSession(sidecar.store, ref, sidecar.dialect, sidecar.counter, searching)
            live.exempt = sidecar.exempt is not None and sidecar.exempt.of(session_id) is not None
            self._live[session_id] = live
        self._recent[session_id] = live
        self._recent.move_to_end(session_id)
        if len(self._recent) > KEPT:
            self._let_one_go()
        self._weigh(session_id, live)
        head = await live.refresh()
        if head:
            check_owner(head, agent_id)
            if head.message_format != self._sidecar.profile.message_format:
                raise FormatMismatch(head.message_format)
        return live

    def cached(self, session_id: str) -> LiveSession | None:
        """A session, if it is held in memory."""
        return self._live.get(session_id)

    def forget(self, session_id: str) -> None:
        """Let go of a session that is deleted or begins anew; who still works on it keeps nothing of it."""
        self._recent.pop(session_id, None)
        live = self._live.pop(session_id, None)
        if live is not None:
            live.gone = True

    def rewound(self, session_id: str) -> None:
        """Drop what the host has shown of a session before it was truncated."""
        live = self._live.get(session_id)
        if live is not None:
            live.shown.clear()
            live.transcript = None
            live.closed = 0

    def _weigh(self, session_id: str, live: LiveSession) -> None:
        """Of sessions with long lists, forget what can be read anew, but for those that were used last."""
        if live.transcript is None or live.transcript.size < HEAVY_BYTES:
            return
        self._heavy[session_id] = None
        self._heavy.move_to_end(session_id)
        if len(self._heavy) > HEAVY_KEPT:
            oldest = self._live.get(self._heavy.popitem(last=False)[0])
            if oldest is not None:
                oldest.transcript = None
                oldest.stored.forget()

    def _let_one_go(self) -> None:
        """The least recently used session goes, one with messages that are not stored yet only if it must."""
        for session_id, live in self._recent.items():
            if not live.shown:
                del self._recent[session_id]
                return
        if len(self._recent) > MOST_KEPT:
            self._recent.popitem(last=False)


def check_owner(head: SessionHead | None, agent_id: str | None) -> None:
    """Refuse an agent that does not own the session, if it is there.

    Raises:
        SessionMissing: another agent owns it.
    """
    if head and head.agent_id is not None and agent_id is not None and head.agent_id != agent_id:
        raise SessionMissing(f"session {head.ref.session_id!r} is another agent's")
