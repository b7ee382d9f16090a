"""The sessions in use, and the spawned ones that wait for their subagent."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from os import urandom
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from sidecar.engine.session import SpawnEndReason
from sidecar.server.engines.session import spawned_session
from sidecar.server.sessions.live import BASES, LiveSession
from sidecar.store.admission import is_foreign
from sidecar.store.errors import FormatMismatch, SessionMissing, SessionTaken, StoreError
from sidecar.store.spawn import Spawn, SweepSpawns
from sidecar.store.stored import SessionHead, SessionRef, SessionSnapshot
from sidecar.store.writes import Adopt

if TYPE_CHECKING:
    from sidecar.messages.contract import Dialect
    from sidecar.server.engines.registry import SessionEngines
    from sidecar.server.engines.runner import EngineRunner
    from sidecar.server.profile import Host
    from sidecar.server.sessions.exempt import ExemptSessions
    from sidecar.store.contract import SessionStore
    from sidecar.store.search import SessionSearch
    from sidecar.tokens.contract import TokenCounter


_WEIGH_AGAIN_S = 0.25
"""How soon after a request the sessions are weighed that it may have made heavier."""

_log = logging.getLogger(__name__)

NOWHERE = "\0nowhere"
"""Follows a namespace: there nothing is stored, and no host can name it."""

LONGEST_S = 3600.0
"""Seconds after which is looked again at the latest: another process may have prepared something."""
RETRY_S = 30.0
"""Seconds after which is tried again where the store could not serve."""


class SessionRegistry:
    """Opens sessions, and lets go of what is cached of the least recently used ones."""

    def __init__(
        self,
        host: Host,
        store: SessionStore,
        *,
        dialect: Dialect,
        counter: TokenCounter,
        searching: SessionSearch,
        exempt: ExemptSessions | None,
        in_use: Callable[[str], bool],
        cache_bytes: int,
    ) -> None:
        """`in_use` says whether requests of a session are on the way; `cache_bytes` bounds what is cached."""
        self._host = host
        self._store = store
        self._dialect = dialect
        self._counter = counter
        self._searching = searching
        self._exempt = exempt
        self._in_use = in_use
        self._cache_bytes = cache_bytes
        self._is_closed = False
        self._recent: OrderedDict[str, LiveSession] = OrderedDict()
        """Held sessions, the least recently used one first."""
        self._weights: dict[str, int] = {}
        self._bytes = 0
        self._touched: set[str] = set()
        """Sessions that may have become heavier since they were weighed."""
        self._timer: asyncio.TimerHandle | None = None
        self._live: WeakValueDictionary[str, LiveSession] = WeakValueDictionary()
        """Also those that were let go while somebody still works on them: there is never a second one."""
        self._tag = urandom(9).hex()
        self._made = 0

    def new_result_id(self) -> str:
        """An id that no answer from this store has had, in this process or another one."""
        self._made += 1
        return f"{self._tag}-{self._made}"

    async def snapshot(self, session_id: str, agent_id: str | None) -> SessionSnapshot:
        """What the store has of a session, for a request of the agent."""
        live = self._live.get(session_id)
        if live is None or live.gone:
            return await self._store.snapshot(self._host.ref(session_id), agent_id)
        snapshot = await live.read_snapshot(agent_id)
        if snapshot.head is None and agent_id is None and live.user is not None:
            agents = await self._store.settings(self._host.namespace, "agent", live.user)
            return snapshot._replace(agents=agents)
        return snapshot

    async def open(
        self, session_id: str, agent_id: str | None, snapshot: SessionSnapshot | None = None
    ) -> LiveSession:
        """A session that the agent makes its own, known to the store or not (then its `head` is `None`).

        Pass the snapshot where the request has just read it.

        Raises:
            SessionTaken: it belongs to another agent.
            FormatMismatch: it holds messages of another dialect.
        """
        if snapshot is None:
            snapshot = await self.snapshot(session_id, agent_id)
        live = await self._refreshed(session_id, agent_id, snapshot)
        if live.head is not None:
            # Another process may have stored a session of this name: what is held of ours is nothing then.
            lost = is_foreign(live.head.agent_id, live.user)
        else:
            # A request that was refused, or left nothing behind, has not taken the id.
            lost = live.is_bare and is_foreign(live.user, agent_id)
        if lost:
            self.forget(session_id)
            live = await self._refreshed(session_id, agent_id, snapshot)
        if is_foreign(live.owner, agent_id):
            raise SessionTaken(session_id)
        head = live.head
        if head is not None and head.message_format != self._host.message_format:
            raise FormatMismatch(head.message_format)
        if head is not None and head.agent_id is None and agent_id is not None:
            await self._store.write(Adopt(live.ref, agent_id))
            await live.refresh()
        live.user = live.owner or agent_id
        return live

    async def look(
        self, session_id: str, agent_id: str | None, snapshot: SessionSnapshot | None = None
    ) -> LiveSession:
        """A session for a request that makes none: one that an agent may not see is as one that is not there.

        Raises:
            FormatMismatch: it holds messages of another dialect.
        """
        if snapshot is None:
            snapshot = await self.snapshot(session_id, agent_id)
        if agent_id is not None:
            owner = self.owner_by(session_id, snapshot)
            if is_foreign(owner, agent_id) or (owner is None and snapshot.head is None):
                live = self._live_session(SessionRef(self._host.namespace + NOWHERE, session_id))
                live.gone = True
                return live
        return await self.open(session_id, agent_id, snapshot)

    async def owner(self, session_id: str, agent_id: str | None) -> str | None:
        """The agent that a session belongs to, for a request of an agent."""
        return self.owner_by(session_id, await self.snapshot(session_id, agent_id))

    def owner_by(self, session_id: str, snapshot: SessionSnapshot) -> str | None:
        """The agent that a session belongs to, whether it is stored or not."""
        if snapshot.head is not None:
            return snapshot.head.agent_id
        live = self._live.get(session_id)
        return snapshot.prepared_for if live is None else live.user

    async def head(self, session_id: str, agent_id: str | None) -> SessionHead | None:
        """The head of a session that the agent may see, whatever dialect it is in."""
        head = await self._store.session(self._host.ref(session_id))
        return None if head is None or is_foreign(head.agent_id, agent_id) else head

    async def stored_head(self, session_id: str, agent_id: str | None) -> SessionHead:
        """The same, where there must be one.

        Raises:
            SessionMissing: there is none that the agent may see.
        """
        head = await self.head(session_id, agent_id)
        if head is None:
            raise SessionMissing(f"there is no session {session_id!r}")
        return head

    async def _refreshed(
        self, session_id: str, agent_id: str | None, snapshot: SessionSnapshot
    ) -> LiveSession:
        live = self._live.get(session_id)
        new = live is None
        if live is None:
            live = self._live_session(self._host.ref(session_id))
            exempt = self._exempt
            live.exempt = exempt is not None and exempt.of(session_id, None, agent_id) is not None
            self._live[session_id] = live
        self._recent[session_id] = live
        self._recent.move_to_end(session_id)
        self._touched.add(session_id)
        self._trim(session_id)
        if await live.refresh(snapshot) is None and new:
            live.user = snapshot.prepared_for
        return live

    def close(self) -> None:
        """Weigh nothing any more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _live_session(self, ref: SessionRef) -> LiveSession:
        return LiveSession(self._store, ref, self._dialect, self._counter, self._searching)

    def cached(self, session_id: str) -> LiveSession | None:
        """A session, if it is held in memory."""
        return self._live.get(session_id)

    def forget(self, session_id: str) -> None:
        """Let go of a session that is deleted or begins anew; who still works on it keeps nothing of it."""
        self._recent.pop(session_id, None)
        self._weigh(session_id)
        live = self._live.pop(session_id, None)
        if live is not None:
            live.gone = True
            live.shrink(results=0)
            live.shown = []

    def rewound(self, session_id: str) -> None:
        """Drop what the host has shown of a session before it was truncated."""
        live = self._live.get(session_id)
        if live is not None:
            live.shown.clear()
            live.transcript = None
            live.closed = 0

    def _trim(self, opening: str | None = None) -> None:
        """Bring what is cached back into its budget, from the least recently used session on."""
        in_use = self._in_use
        for session_id in list(self._touched):
            self._weigh(session_id)
            if not in_use(session_id):
                self._touched.discard(session_id)
        limit = self._cache_bytes
        if self._bytes > limit:
            for session_id, live in list(self._recent.items()):
                if self._bytes <= limit:
                    break
                busy = session_id == opening or in_use(session_id)
                live.shrink(results=BASES if busy else 0)
                if not (busy or live.shown):
                    del self._recent[session_id]
                self._weigh(session_id)
        if self._bytes > limit:
            self._forget_staged(limit)
        if self._touched and self._timer is None and not self._is_closed:
            self._timer = asyncio.get_running_loop().call_later(_WEIGH_AGAIN_S, self._weigh_again)

    def _forget_staged(self, limit: int) -> None:
        """Let go of idle sessions with messages that are not stored; a whole transcript brings them again."""
        for session_id, live in list(self._recent.items()):
            if self._bytes <= limit:
                return
            if not self._in_use(session_id):
                _log.info("forgot messages that were shown and not stored: limits.cacheBytes is reached")
                live.shown = []
                del self._recent[session_id]
                self._weigh(session_id)

    def _weigh_again(self) -> None:
        self._timer = None
        self._trim()

    def _weigh(self, session_id: str) -> None:
        live = self._recent.get(session_id)
        weight = live.weight if live is not None else 0
        self._bytes += weight - self._weights.pop(session_id, 0)
        if weight:
            self._weights[session_id] = weight


class Spawns:
    """Sweeps what expires, and tells engines what has ended."""

    def __init__(
        self,
        namespace: str,
        store: SessionStore,
        engines: SessionEngines,
        runner: EngineRunner,
        forget: Callable[[str], Awaitable[None]],
    ) -> None:
        """`forget` lets go of what is kept of a child that is gone."""
        self._namespace = namespace
        self._store = store
        self._engines = engines
        self._runner = runner
        self._forget = forget
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._task: asyncio.Task[None] | None = None

    def watch(self, expires_ms: int | None) -> None:
        """Sweep at that time, if nothing is to be swept earlier."""
        if expires_ms is not None:
            self._wake_in(min(max(expires_ms / 1000 - time.time(), 0.0) + 0.001, LONGEST_S))

    def begin(self, after_s: float) -> None:
        """Look after so many seconds for what has expired while no process was there."""
        self._wake_in(after_s)

    def close(self) -> None:
        """Sweep no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    async def sweep(self) -> list[Spawn]:
        """Remove what has expired; returns it."""
        swept: list[Spawn] = await self._store.write(SweepSpawns())
        await self.ended(swept, "swept")
        return swept

    async def ended(self, spawns: Iterable[Spawn], reason: SpawnEndReason) -> None:
        """Forget what is cached of the children, and tell their engines; one that fails is logged."""
        for spawn in spawns:
            if spawn.namespace != self._namespace:
                continue
            if spawn.child_id is not None and reason in ("deleted", "swept", "rolledBack"):
                await self._forget(spawn.child_id)
            self._engines.forget()
            try:
                instance = await self._engines.of(spawn.child_id or spawn.parent_id or "", None)
                if instance.has("spawn_ended"):
                    work = instance.engine.spawn_ended(spawned_session(spawn), reason)
                    await self._runner.run(instance, "subagent/ended", work)
            except Exception:
                _log.exception("the end of a spawned session was not told to its engine")

    def _wake_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due = due
        self._timer = loop.call_at(due, self._wake)

    def _wake(self) -> None:
        self._timer = None
        if self._task is None:
            self._task = asyncio.ensure_future(self._look())
            self._task.add_done_callback(self._looked)

    def _looked(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("expired spawns were not swept", exc_info=error)

    async def _look(self) -> None:
        try:
            expiry = await self._store.next_spawn_expiry()
            if expiry is not None and expiry <= time.time() * 1000:
                await self.sweep()
                expiry = await self._store.next_spawn_expiry()
        except StoreError as error:
            _log.warning("expired spawns were not swept: %s", error)
            self._wake_in(RETRY_S)
            return
        self.watch(expiry)
