"""Has engines take note of new messages behind the acknowledgement, so that their next answer is quick."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sidecar.server.engines.session import EngineSession

if TYPE_CHECKING:
    from sidecar.server.engines.instance import EngineInstance
    from sidecar.server.sessions.live import LiveSession
    from sidecar.store.writes import Write


SLICE_S, REST_S = 0.001, 0.002
"""Seconds of work at a time, about, and of rest in between, in which requests have the loop to themselves."""
LOOK_BACK = 1_200
"""The newest messages of a session, of which an engine takes note at most."""
REMEMBERED = 256
"""Sessions of which it is remembered how far that was done."""

_log = logging.getLogger(__name__)


class _Noted(NamedTuple):
    """How far this was done in one session."""

    version: tuple[int, int]
    """The uid and the revision of the session."""
    position: int
    """The last message of which the engine took note."""


class Readiness:
    """Works through what was stored, a little at a time; no request waits for it."""

    def __init__(
        self,
        engine_of: Callable[[str, str | None], EngineInstance | None],
        opened: Callable[[str, str | None], Awaitable[LiveSession]],
    ) -> None:
        """`engine_of` is the engine of a session where that is known, `opened` opens one."""
        self._engine_of = engine_of
        self._opened = opened
        self._is_closed = False
        self._behind: OrderedDict[str, EngineInstance] = OrderedDict()
        self._noted: OrderedDict[str, _Noted] = OrderedDict()
        self._task: asyncio.Task[None] | None = None

    def watch(self, writes: Sequence[Write]) -> None:
        """Take in that these writes have been committed; costs nothing but a look at each."""
        for write in writes:
            if write.verb == "append" and write.error is None:
                self._note(write.ref.session_id, write.agent_id)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]

    async def close(self) -> None:
        """Stop; what was not done is done by the next request instead."""
        self._is_closed = True
        self._behind.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _note(self, session_id: str, agent_id: str | None) -> None:
        instance = self._engine_of(session_id, agent_id)
        if instance is None or not instance.takes_note:
            return
        self._behind[session_id] = instance
        if self._task is None and not self._is_closed:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._behind:
                await asyncio.sleep(REST_S)
                session_id, instance = self._behind.popitem(last=False)
                try:
                    more = await self._advance(session_id, instance)
                except Exception as error:
                    _log.info(
                        "the engine %s took no note of what is new: %s", instance.id, type(error).__name__
                    )
                    more = False
                if more:
                    self._behind.setdefault(session_id, instance)
        finally:
            self._task = None

    async def _advance(self, session_id: str, instance: EngineInstance) -> bool:
        """One slice of work for a session; whether there is more."""
        live = await self._opened(session_id, None)
        head = live.head
        if head is None or live.gone or live.exempt or instance.retired:
            return False
        version = (head.uid, head.revision)
        noted = self._noted.get(session_id)
        if noted is None or noted.version != version:
            noted = _Noted(version, 0)
        last = await self._slice(live, instance, max(noted.position + 1, head.message_count - LOOK_BACK + 1))
        done = last >= head.message_count
        self._noted[session_id] = _Noted(version, last)
        self._noted.move_to_end(session_id)
        if len(self._noted) > REMEMBERED:
            self._noted.popitem(last=False)
        return not done

    async def _slice(self, live: LiveSession, instance: EngineInstance, first: int) -> int:
        """Let the engine take note of messages from a position on; the last one of which it did."""
        until = time.monotonic() + SLICE_S
        session = EngineSession(live, live.stored_timeline(), instance.id)
        last = first - 1
        for entry in await live.stored.up_to(live.message_count, first):
            _ = entry.tokens
            await instance.engine.take_note(session, entry)
            last = entry.place
            if time.monotonic() >= until:
                break
        return last
