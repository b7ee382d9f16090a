"""The parts of one running sidecar, wired together for one connection."""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, cast

from sidecar.server.configuration.settings import Settings
from sidecar.server.engines.registry import EngineRegistry, SessionEngines
from sidecar.server.engines.statistics import EngineWatch
from sidecar.server.host_mistakes import DialectWatch
from sidecar.server.methods.lanes import SessionLanes
from sidecar.store.contract import SessionStore
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Touch, Write

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sidecar.messages.contract import Dialect
    from sidecar.protocol.engine import ShadowReport
    from sidecar.protocol.session import SessionChange
    from sidecar.semantic.index import SemanticIndex
    from sidecar.server.background.change_watch import SessionWatch
    from sidecar.server.background.episodes import EpisodeTurns
    from sidecar.server.background.readiness import Readiness
    from sidecar.server.background.retention import Pruned, Retention
    from sidecar.server.engines.host import HostServices, Models
    from sidecar.server.engines.runner import EngineRunner
    from sidecar.server.engines.statistics import Figures
    from sidecar.server.profile import Host
    from sidecar.server.sessions.exempt import ExemptSessions
    from sidecar.server.sessions.intake import Intake
    from sidecar.server.sessions.live import LiveSession
    from sidecar.server.sessions.memory import SessionMemory
    from sidecar.server.sessions.reconcile import Reconciler
    from sidecar.server.sessions.registry import SessionRegistry, Spawns
    from sidecar.store.search import SearchableStore, SessionSearch
    from sidecar.store.submitting import Submitting
    from sidecar.tokens.contract import TokenCounter


class SecondEngine(Protocol):
    """A second engine that is asked the same behind the answers."""

    def report(self) -> ShadowReport:
        """How it does."""
        ...

    async def release(self) -> None:
        """Flush and release its engine."""
        ...

    async def close(self) -> None:
        """Ask it no more."""
        ...


class Sidecar:
    """Makes the parts of a connection, each out of those that it needs, and releases them."""

    def __init__(self, settings: Settings, store: SessionStore, host: Host) -> None:
        self.settings = settings
        self.store = store
        self.host = host
        self.registry = EngineRegistry(settings, host.capabilities, self.services, host.message_format)
        self.closed = False
        self.engine_watch = EngineWatch()
        self.retention: Retention | None = None
        """Erases sessions that nobody uses any more, where that is configured."""
        self.watch: SessionWatch | None = None
        """Looks for sessions that any process has changed, where the host wants to be told."""
        self.shadow: SecondEngine | None = None
        """A second engine that is asked the same behind the answers, where one is configured."""
        self.readiness: Readiness | None = None
        """Lets engines take note of new messages, where one in use does that."""
        self.importing: set[str] = set()
        """Ids of sessions that are imported in the background."""
        self.lanes = SessionLanes(host.peer.lane_in_use)
        self._warm = False
        self._memory: SessionMemory | None = None
        self.dialect_watch = DialectWatch(host.message_format, host.peer)

    @cached_property
    def engines(self) -> SessionEngines:
        """The engines of the sessions."""
        return SessionEngines(
            self.host,
            self.store,
            self.registry,
            exempt=self.exempt,
            sessions=lambda: self.sessions,
            take_note=self.take_note,
        )

    @cached_property
    def exempt(self) -> ExemptSessions | None:
        """The sessions of which nothing is kept, `None` where every session is kept."""
        if not self.settings.exemptions.is_set:
            return None
        from sidecar.server.sessions.exempt import ExemptSessions

        return ExemptSessions(self.settings.exemptions)

    @property
    def figures(self) -> Figures:
        """What is counted of the calls of engines."""
        return self.engine_watch.figures

    # Parts that the first answer does not need are made when they are first used: start-up counts.

    @cached_property
    def dialect(self) -> Dialect:
        """The dialect of every message on the connection."""
        from sidecar.messages.dialects import dialect

        return dialect(self.host.message_format)

    @cached_property
    def counter(self) -> TokenCounter:
        """Counts tokens of text."""
        from sidecar.tokens.choose import counter

        return counter(self.settings.token_counter)

    def warm_up(self) -> None:
        """Load the vocabulary in a thread, once the first message shows that it is going to be needed."""
        if not self._warm:
            self._warm = True
            load = getattr(self.counter, "load", None)
            if load is not None:
                asyncio.get_running_loop().run_in_executor(None, load)

    @cached_property
    def sessions(self) -> SessionRegistry:
        """The sessions that are in use."""
        from sidecar.server.sessions.registry import SessionRegistry

        return SessionRegistry(
            self.host,
            self.store,
            dialect=self.dialect,
            counter=self.counter,
            searching=self.searching,
            exempt=self.exempt,
            in_use=self.lanes.in_use,
            cache_bytes=self.settings.limits.cache_bytes,
        )

    @cached_property
    def spawns(self) -> Spawns:
        """The spawned sessions."""
        from sidecar.server.sessions.registry import Spawns

        return Spawns(self.host.namespace, self.store, self.engines, self.runner, self._forget_session)

    @cached_property
    def intake(self) -> Intake:
        """Takes single messages in."""
        from sidecar.server.sessions.intake import Intake

        return Intake(self.host, self.store, self.dialect, self.dialect_watch)

    @cached_property
    def reconciler(self) -> Reconciler:
        """Tells what of a host's transcript is known."""
        from sidecar.server.sessions.reconcile import Reconciler

        return Reconciler(self.store, self.dialect_watch)

    @cached_property
    def models(self) -> Models:
        """The models that write for engines."""
        from sidecar.server.engines.host import Models

        return Models(self.settings, self.host.capabilities, self.counter)

    # Search

    @cached_property
    def meaning(self) -> SemanticIndex | None:
        """Vectors of what is stored, `None` where nothing is to be found by its meaning."""
        setting = self.settings.search_meaning
        if setting == "off":
            return None
        from sidecar.semantic.model import missing

        if lacking := missing():
            level = logging.WARNING if setting == "on" else logging.INFO
            logging.getLogger(__name__).log(level, "search is by words only: %s is not installed", lacking)
            return None
        from sidecar.semantic.index import SemanticIndex

        return SemanticIndex(self.store)

    @cached_property
    def searching(self) -> SessionSearch:
        """Finds messages of stored sessions."""
        store = cast("SearchableStore", self.store)
        if self.meaning is None:
            return store
        from sidecar.semantic.search import FusedSearch

        return FusedSearch(store, self.meaning)

    def committed(self, writes: list[Write]) -> None:
        """Take in what was stored, for the search by meaning and for engines that take note of it."""
        if self.closed:
            return
        if self.meaning is not None:
            self.meaning.watch(writes)
        if self.readiness is not None:
            self.readiness.watch(writes)

    def take_note(self) -> None:
        """From now on, let engines take note of what is stored."""
        if self.readiness is None:
            from sidecar.server.background.readiness import Readiness

            self.readiness = Readiness(self.engines.known, self.sessions.open)
            cast("Submitting", self.store).watch = self.committed

    # Memory

    @property
    def memory(self) -> SessionMemory | None:
        """The memory of sessions, `None` as long as there is no source of any."""
        if self._memory is None and self.settings.memory.sources:
            return self.use_memory()
        return self._memory

    async def memory_of(self, live: LiveSession) -> SessionMemory | None:
        """The memory of sessions, also where only an earlier process had a source for this one."""
        if self.memory is None and live.has_memory is None:
            from sidecar.server.sessions.live import MEMORY

            live.has_memory = await live.state(MEMORY) is not None
            if live.has_memory:
                return self.use_memory()
        return self.memory

    def use_memory(self) -> SessionMemory:
        """The memory of sessions, from now on in use."""
        if self._memory is None:
            from sidecar.server.sessions.memory import SessionMemory
            from sidecar.server.sessions.memory_sources import SourceParts

            parts = SourceParts(
                self.host, self.store, self.searching, self.episodes, self.counter, self.sessions.cached
            )
            self._memory = SessionMemory(parts, self.settings, self.models)
        return self._memory

    @cached_property
    def episodes(self) -> EpisodeTurns:
        """Takes turns in, for engines that buffer episodes."""
        from sidecar.server.background.episodes import EpisodeTurns

        return EpisodeTurns(self.settings.episodes, self.store, self.host.namespace)

    # Engines

    @cached_property
    def runner(self) -> EngineRunner:
        """Calls engines."""
        from sidecar.server.engines.runner import EngineRunner

        return EngineRunner(self.settings, self.engine_watch)

    def services(self, engine_id: str, settings: BaseModel | None = None) -> HostServices:
        """What an engine may use."""
        from sidecar.server.engines.host import HostServices

        return HostServices(
            engine_id,
            settings,
            host=self.host,
            models=lambda: self.models,
            store=lambda session, message: self.intake.store(session, message),
            compacted=self._compacted,
            recall_share=self.settings.recall_share,
        )

    def _compacted(self, session_id: str) -> None:
        """Take in that an engine has compacted a session without being asked."""
        if self.memory is not None:
            self.memory.compacted.add(session_id)
        self.session_changed(session_id, "compacted")

    async def _forget_session(self, session_id: str) -> None:
        """Let go of what is kept of a session that is gone."""
        self.sessions.forget(session_id)
        await self.episodes.forget(session_id)

    async def forget_pruned(self, pruned: Pruned) -> None:
        """Erase what is kept outside of the store of a session that retention has erased."""
        if pruned.namespace == self.host.namespace:
            self.engines.forget()
        await self.episodes.forget(pruned.session_id, pruned.namespace)

    def holds(self, ref: SessionRef) -> bool:
        """Whether the session is held in memory here: an engine may still need it."""
        return ref.namespace == self.host.namespace and self.sessions.cached(ref.session_id) is not None

    def session_changed(self, session_id: str, reason: SessionChange, agent_id: str | None = None) -> None:
        """Tell the host that something other than a stored message has changed a session of the agent.

        Those who watch the store in other processes see it by the time of the session's last change.
        """
        from sidecar.protocol.session import ChangedSessionParams

        self.host.peer.notify("session/changed", ChangedSessionParams(session_id=session_id, reason=reason))
        if reason != "deleted":
            self.store.submit(Touch(self.host.ref(session_id), agent_id=agent_id), _passed_over)

    async def dispose_engines(self) -> None:
        """Flush and release every engine; the next call makes a fresh instance."""
        served = list(self.engines.buffering())
        if self.shadow is not None and not self.closed:
            await self.shadow.release()
        self.engines.forget()
        retired = self.registry.retire()
        idle = [instance for instance in retired if not instance.calls]
        if idle:
            await asyncio.gather(*(self.runner.release(instance) for instance in idle))
        if any(instance.buffers_episodes for instance in retired):
            await self.episodes.flush_rest(filter(None, map(self.sessions.cached, served)))

    async def close(self) -> None:
        """Release engines, then the store."""
        self.closed = True
        if "spawns" in vars(self):
            self.spawns.close()
        if "sessions" in vars(self):
            self.sessions.close()
        if self.retention is not None:
            await self.retention.close()
        if self.watch is not None:
            await self.watch.close()
        if self.shadow is not None:
            await self.shadow.close()
        if self.readiness is not None:
            await self.readiness.close()
        await self.dispose_engines()
        await self.episodes.close()
        if (meaning := self.__dict__.get("meaning")) is not None:
            await meaning.close()
        if "models" in vars(self):
            await self.models.close()
        await self.store.close()


def _passed_over(_: Write) -> None:
    pass
