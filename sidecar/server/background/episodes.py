"""Episodes: turns become records in the outbox, from which a courier delivers them."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Lock
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from msgspec import MsgspecError, Struct, json

from sidecar.episodes.contract import compose
from sidecar.episodes.courier import Courier
from sidecar.server.sessions.live import LiveSession
from sidecar.store import open_buffer
from sidecar.store.buffer import BufferStore
from sidecar.store.contract import SessionStore
from sidecar.store.errors import StoreError
from sidecar.store.stored import SessionHead, StoredMessage

if TYPE_CHECKING:
    from sidecar.episodes.contract import EpisodeBackend
    from sidecar.server.configuration.settings import EpisodeSettings
    from sidecar.server.engines.instance import EngineInstance
    from sidecar.store.buffer import HoldsBuffers


_log = logging.getLogger(__name__)

STATE = "episodes"
PLACE = "episodes"
"""The buffer's place, the same for every engine: who switches engines leaves nothing behind."""
REMEMBERED = 32
"""Ends of episodes by which is told how far a session was buffered, should it be rewound."""
READ_AT_ONCE = 400
"""Messages of one episode at most."""
MOST_AT_ONCE = 4_000
"""Messages that one turn buffers at most; the next one goes on."""
WAIT_S = 1.0
"""How long an engine that is disposed of waits for its last episodes to be delivered."""
PATIENCE_S = 0.1
"""How long an answer waits until earlier turns are buffered; that goes on behind it."""


class _Mark(Struct, frozen=True):
    """How far a session was buffered."""

    ends: list[tuple[int, str]]
    """Position and id of the newest message of the newest episodes, in order."""
    whole: bool
    """True where `ends` reaches back to the first one."""
    since: int
    """Position behind which buffering began."""

    @property
    def position(self) -> int:
        """The newest message that was buffered or passed over."""
        return self.ends[-1][0] if self.ends else self.since

    def moved(self, message: StoredMessage) -> _Mark:
        """The same with one more end."""
        ends = [*self.ends, (message.position, message.message_id)]
        return _Mark(ends[-REMEMBERED:], self.whole and len(ends) <= REMEMBERED, self.since)


class EpisodeOutbox:
    """What the server does for engines that buffer episodes."""

    def __init__(self, store: SessionStore, buffer: BufferStore, courier: Courier) -> None:
        self.courier = courier
        self._store = store
        self._buffer = buffer
        self._locks: WeakKeyDictionary[LiveSession, Lock] = WeakKeyDictionary()

    async def take(self, live: LiveSession, *, ended: bool) -> None:
        """Buffer the turns that have ended since the last call; with `ended`, the newest one too.

        Of a session that is seen for the first time, what was said before the newest turn is passed over: it
        was said before anybody asked for episodes.
        """
        head = live.head
        if head is None or not head.message_count or live.gone:
            return
        kept = await live.state(STATE)
        newest = (await self._store.turn_start(live.ref, head.turn_count) or 1) - 1
        mark = await self._mark(live, head, kept, newest)
        last = min(head.message_count if ended else newest, mark.position + MOST_AT_ONCE)
        while mark.position < last:
            messages = await self._store.messages(
                live.ref, mark.position + 1, min(mark.position + READ_AT_ONCE, last)
            )
            if not messages:
                break
            for turn in _turns(messages):
                payload = compose(head, turn, live.dialect)
                if payload is not None:
                    await self._buffer.push(payload, live.ref.session_id, head.session_key)
                mark = mark.moved(turn[-1])
        value = json.encode(mark)
        if value != kept:
            await live.save_state(STATE, value)

    async def begin(self, live: LiveSession) -> None:
        """Take in that a session has begun with messages of its own: none of its turns is passed over."""
        async with self._alone(live):
            if await live.state(STATE) is None:
                await live.save_state(STATE, json.encode(_Mark([], True, 0)))

    async def take_if_possible(self, live: LiveSession, *, ended: bool) -> None:
        """The same for a turn that is stored already: what goes wrong is put off until the next call."""
        try:
            async with self._alone(live):
                await self.take(live, ended=ended)
        except StoreError as error:
            _log.warning("a turn is not buffered yet: %s", error)

    async def take_rest(self, sessions: Iterable[LiveSession]) -> None:
        """Buffer what is left of sessions whose engine is released, the newest turn of each included."""
        for live in sessions:
            try:
                await live.refresh()
            except StoreError as error:
                _log.warning("a session is not buffered yet: %s", error)
            else:
                await self.take_if_possible(live, ended=True)

    async def forget(self, namespace: str, session_ids: Iterable[str]) -> None:
        """Erase what a back end of ours has of sessions that are deleted."""
        for session_id in session_ids:
            try:
                await self.courier.backend.forget(namespace, session_id)
            except OSError as error:
                _log.error("%s still has a deleted session: %s", self.courier.backend.name, error.strerror)

    async def flush(self, seconds: float = WAIT_S) -> None:
        """Deliver what is buffered, waiting no longer than so many seconds for it."""
        self.courier.start()
        await self.courier.wait(seconds)

    async def waiting(self) -> int:
        """How many episodes are buffered."""
        return await self._buffer.count()

    async def close(self) -> None:
        """Let go of the back end; what was not delivered stays buffered."""
        await self.courier.close()

    def _alone(self, live: LiveSession) -> Lock:
        """Held while a session is looked at, so that no turn of it is buffered twice."""
        return self._locks.setdefault(live, Lock())

    async def _mark(self, live: LiveSession, head: SessionHead, kept: bytes | None, newest: int) -> _Mark:
        try:
            mark = json.decode(kept, type=_Mark) if kept else None
        except MsgspecError:
            mark = None
        if mark is None:
            return _Mark([], True, newest)
        ends = list(mark.ends)
        while ends:
            position, message_id = ends[-1]
            found = await self._store.messages(live.ref, position, position)
            if found and found[0].message_id == message_id:
                break
            ends.pop()
        if len(ends) == len(mark.ends):
            return mark
        if ends or mark.whole:
            return _Mark(ends, mark.whole, min(mark.since, head.message_count))
        return _Mark([], True, newest)


def _turns(messages: Sequence[StoredMessage]) -> Iterator[list[StoredMessage]]:
    for _, group in groupby(messages, key=lambda message: message.turn):
        yield list(group)


def open_outbox(settings: EpisodeSettings, store: SessionStore, namespace: str) -> EpisodeOutbox:
    """The outbox of one namespace, with a courier that rests until it is started."""
    buffers = cast("HoldsBuffers", store)
    courier = Courier(open_buffer(buffers, namespace, PLACE), _backend(settings))
    return EpisodeOutbox(store, open_buffer(buffers, namespace, PLACE), courier)


def _backend(settings: EpisodeSettings) -> EpisodeBackend:
    if settings.url is None:
        from sidecar.episodes.file import FileBackend

        return FileBackend(settings.path)
    from sidecar.episodes.webhook import WebhookBackend, WebhookSettings

    return WebhookBackend(
        WebhookSettings(
            url=settings.url,
            secret=settings.secret,
            search_url=settings.search_url,
            timeout_s=settings.timeout_ms / 1000,
            retries=settings.retries,
        )
    )


class EpisodeTurns:
    """What becomes of turns when they end, and of what waits of them."""

    def __init__(self, settings: EpisodeSettings | None, store: SessionStore, namespace: str) -> None:
        self._settings = settings
        self._store = store
        self._namespace = namespace
        self._behind: set[asyncio.Task[None]] = set()
        """What goes on behind answers."""

    @cached_property
    def outbox(self) -> EpisodeOutbox | None:
        """Takes turns in for delivery, `None` where that is not asked for."""
        if self._settings is None:
            return None

        return open_outbox(self._settings, self._store, self._namespace)

    def deliver(self) -> None:
        """Deliver what is buffered, without waiting for it."""
        if self.outbox is not None:
            self.outbox.courier.start()

    async def session_began(self, instance: EngineInstance, live: LiveSession) -> None:
        """Note that the first messages of a session have been ingested, so that episodes begin with them."""
        if instance.buffers_episodes and self.outbox is not None:
            await self.outbox.begin(live)

    async def turn_ended(self, instance: EngineInstance, live: LiveSession) -> None:
        """Buffer what was said in turns that have ended, the newest one included."""
        if instance.buffers_episodes and self.outbox is not None:
            await self.outbox.take_if_possible(live, ended=True)

    async def turn_began(self, instance: EngineInstance, live: LiveSession) -> None:
        """Buffer the turns before the newest one; where that takes long, behind the answer."""
        if instance.buffers_episodes and self.outbox is not None:
            await self._in_time(self.outbox.take_if_possible(live, ended=False))

    async def flush(self, instance: EngineInstance, live: LiveSession) -> None:
        """The same, and let all that is buffered be delivered."""
        if instance.buffers_episodes and self.outbox is not None:
            await self._in_time(self._flush(self.outbox, live))

    @staticmethod
    async def _flush(outbox: EpisodeOutbox, live: LiveSession) -> None:
        await outbox.take_if_possible(live, ended=False)
        outbox.courier.start()

    async def _in_time(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)
        await asyncio.wait((task,), timeout=PATIENCE_S)
        if task.done():
            task.result()

    async def flush_rest(self, sessions: Iterable[LiveSession]) -> None:
        """Buffer all turns of these sessions, and wait a little for the delivery."""
        if self.outbox is not None:
            if self._behind:
                await asyncio.wait(self._behind, timeout=WAIT_S)
            await self.outbox.take_rest(sessions)
            await self.outbox.flush()

    async def forget(self, session_id: str, namespace: str | None = None) -> None:
        """Erase what was kept of a session that is deleted."""
        if self.outbox is not None:
            await self.outbox.forget(namespace or self._namespace, (session_id,))

    async def close(self) -> None:
        """Let go of the back end; what was not delivered stays buffered."""
        for task in self._behind:
            task.cancel()
        if (outbox := self.__dict__.get("outbox")) is not None:
            await outbox.close()
