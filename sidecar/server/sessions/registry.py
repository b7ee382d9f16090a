"""The sessions that are in use, least recently used ones let go."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from sidecar.server.sessions.live import LiveSession
from sidecar.store.contract import FormatMismatch, SessionHead, SessionMissing

if TYPE_CHECKING:
    from sidecar.server.sidecar import Sidecar

KEPT = 256
"""Sessions held in memory."""


class SessionRegistry:
    """Opens sessions, and keeps what is cached of them."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._live: OrderedDict[str, LiveSession] = OrderedDict()

    async def open(self, session_id: str, agent_id: str | None) -> LiveSession:
        """A session, known to the store or not (then its `head` is `None`).

        Raises:
            SessionMissing: it belongs to another agent.
            FormatMismatch: it holds messages of another dialect.
        """
        live = self._live.get(session_id)
        if live is None:
            sidecar = self._sidecar
            live = LiveSession(sidecar.store, sidecar.ref(session_id), sidecar.dialect, sidecar.counter)
            self._live[session_id] = live
            if len(self._live) > KEPT:
                self._live.popitem(last=False)
        else:
            self._live.move_to_end(session_id)
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
        """Let go of a session."""
        self._live.pop(session_id, None)


def check_owner(head: SessionHead, agent_id: str | None) -> None:
    """Refuse an agent that does not own the session.

    Raises:
        SessionMissing: another agent owns it.
    """
    if head.agent_id is not None and agent_id is not None and head.agent_id != agent_id:
        raise SessionMissing(f"session {head.ref.session_id!r} is another agent's")
