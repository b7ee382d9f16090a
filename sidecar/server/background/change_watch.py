"""Tells a host that asks for it which sessions of its namespace any process has changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from sidecar.protocol.session import ChangedSessionParams
from sidecar.store.contract import SessionStore
from sidecar.store.errors import StoreError
from sidecar.store.stored import SessionHead, SessionRef

if TYPE_CHECKING:
    from sidecar.protocol.session import SessionChange
    from sidecar.rpc.peer import Peer


EVERY_S = 0.5
"""Seconds between two looks at the store."""
MOST = 200
"""Sessions that are watched, those that changed last; any other is told of once it changes."""

_log = logging.getLogger(__name__)


class Look(NamedTuple):
    """What one look at the store has found."""

    heads: dict[str, SessionHead]
    """The sessions that are watched, by id."""
    floor_ms: int
    """Sessions that changed before that time were not looked at; 0 where all were."""
    newest_uid: int
    """The newest session that was ever seen."""


class SessionWatch:
    """Looks at the store again and again, until it is closed; made for hosts that ask for it alone."""

    def __init__(self, store: SessionStore, namespace: str, peer: Peer) -> None:
        self._store = store
        self._namespace = namespace
        self._peer = peer
        self._task: asyncio.Task[None] | None = None
        self._known: Look | None = None

    async def begin(self) -> None:
        """Look once, so that every later change is told; then go on in the background."""
        await self._round()
        self._task = asyncio.ensure_future(self._rounds())

    async def close(self) -> None:
        """End, between two looks."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _rounds(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self._round()
            except Exception:
                _log.exception("changes of sessions could not be told")

    async def _round(self) -> None:
        try:
            heads, _ = await self._store.sessions(self._namespace, MOST, None)
            known = self._known
            gone = [] if known is None else await self._gone(known, heads)
        except StoreError as error:
            _log.warning("the store cannot be watched at present: %s", error)
            return
        self._known = looked(known, heads)
        if known is not None:
            with self._peer.cork():
                for session_id in gone:
                    self._tell(session_id, "deleted")
                for session_id, reason in changes(known, heads):
                    self._tell(session_id, reason)

    async def _gone(self, known: Look, heads: list[SessionHead]) -> list[str]:
        """The sessions that were watched and are not there any more."""
        there = {head.ref.session_id for head in heads}
        missing = [session_id for session_id in known.heads if session_id not in there]
        if len(heads) < MOST:
            return missing
        refs = [SessionRef(self._namespace, session_id) for session_id in missing]
        return [ref.session_id for ref in refs if await self._store.session(ref) is None]

    def _tell(self, session_id: str, reason: SessionChange) -> None:
        self._peer.notify("session/changed", ChangedSessionParams(session_id=session_id, reason=reason))


def looked(known: Look | None, heads: list[SessionHead]) -> Look:
    """What is known after a look; `heads` come latest change first."""
    return Look(
        {head.ref.session_id: head for head in heads},
        heads[-1].updated_ms if len(heads) == MOST else 0,
        max([known.newest_uid if known else 0, *(head.uid for head in heads)]),
    )


def changes(known: Look, heads: list[SessionHead]) -> Iterator[tuple[str, SessionChange]]:
    """What has happened to the sessions that are there, since the look before."""
    for head in reversed(heads):
        before = known.heads.get(head.ref.session_id)
        if before == head:
            continue
        if head.uid > known.newest_uid:
            yield head.ref.session_id, "created"
        elif before is None:
            # One that is as it was may stand in the place of another that was deleted.
            if head.updated_ms >= known.floor_ms:
                yield head.ref.session_id, "changed"
        elif head.message_count > before.message_count and head.revision == before.revision:
            yield head.ref.session_id, "appended"
        else:
            yield head.ref.session_id, "changed"
