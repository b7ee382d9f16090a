"""The engine registry: which engine serves a session, and how it is found, loaded and configured."""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import json

from sidecar.engine.contract import ContextEngine
from sidecar.engine.loading import EngineNotLoadable, load_engine
from sidecar.engine.sources import BUILT_IN, EngineSources, Found
from sidecar.protocol.base import EngineInfo, FallbackFor
from sidecar.server.configuration.settings import Settings
from sidecar.server.engines.instance import (
    LEGACY,
    EngineInstance,
    SettingsRefused,
    describe,
    optional_members,
    stores_plainly,
    validated_settings,
)
from sidecar.server.failures import MEND_ENGINE, MEND_SETTING, EngineUnavailable, SettingsWrong
from sidecar.store.admission import is_foreign
from sidecar.store.spawn import BeginSpawn
from sidecar.store.stored import SessionSettings, SessionSnapshot

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sidecar.protocol.base import MessageFormat
    from sidecar.protocol.engine import EngineListing
    from sidecar.server.engines.host import HostServices
    from sidecar.server.engines.proxy.process import ProcessPlan
    from sidecar.server.profile import Host
    from sidecar.server.sessions.exempt import ExemptSessions
    from sidecar.store.contract import SessionStore


FALLBACK_ENGINE = "default"
OWNS_HISTORY = ("runtime/compact", "ownsHistory")
"""What a host declares that keeps and compacts the history itself and wants no engine unless it names one."""
_WAITS_FOR_A_LISTING_S = 30.0

MOST = 20_000
"""Sessions whose configured engine is remembered without asking the store."""
MakeHost = Callable[[str, "BaseModel | None"], "HostServices"]


class EngineRegistry:
    """Loads engines on demand and keeps one instance for each engine with its settings."""

    def __init__(
        self,
        settings: Settings,
        host_capabilities: frozenset[str],
        make_host: MakeHost,
        message_format: MessageFormat = "openai",
    ) -> None:
        self._settings = settings
        self._capabilities = host_capabilities
        self._loader = EngineLoader(settings, host_capabilities, make_host, message_format)
        self._instances: dict[tuple[str, bytes], EngineInstance] = {}
        self._opening: dict[tuple[str, bytes], asyncio.Task[EngineInstance]] = {}

    @property
    def default_id(self) -> str:
        """The engine of sessions for which nothing else was configured."""
        if self._settings.engine:
            return self._settings.engine
        return LEGACY if self._capabilities.issuperset(OWNS_HISTORY) else FALLBACK_ENGINE

    @property
    def instances(self) -> list[EngineInstance]:
        """The engines that serve at present."""
        return list(self._instances.values())

    async def take(self, engine_id: str | None = None, config: bytes | None = None) -> EngineInstance:
        """The engine by that id, with `config` (JSON object) above its configured settings.

        Raises:
            EngineUnavailable: it cannot be loaded or configured, or needs what the host does not offer.
        """
        engine_id = engine_id or self.default_id
        key = (engine_id, config or b"")
        instance = self._instances.get(key)
        if instance is not None:
            return instance
        if engine_id in BUILT_IN and self._settings.entry(engine_id).isolation != "process":
            instance = self._instances[key] = await self._instance(engine_id, config)
            return instance
        opening = self._opening.get(key)
        if opening is None:
            opening = self._opening[key] = asyncio.create_task(self._open(key, engine_id, config))
        return await asyncio.shield(opening)

    def ready(self, engine_id: str | None, config: bytes | None) -> EngineInstance | None:
        """The same engine, if it serves already."""
        return self._instances.get((engine_id or self.default_id, config or b""))

    async def check(self, engine_id: str, config: bytes | None) -> None:
        """Raise as `take` would if there were no fallback; an engine from outside is started for it."""
        found = self._loader.usable(engine_id)
        if not self.isolates(found):
            self._loader.configured(self._loader.loaded(found), config)
        elif (engine_id, config or b"") not in self._instances:
            instance = await self._loader.made(found, config)
            await instance.engine.dispose()

    def check_settings(self, engine_id: str) -> None:
        """Raise as `check` would, without starting an engine from outside.

        Raises:
            EngineUnavailable: it cannot be loaded, or its settings are wrong.
        """
        found = self._loader.usable(engine_id)
        if found.is_built_in or self._loader.sources.interpreter.is_this or not self.isolates(found):
            self._loader.configured(self._loader.loaded(found), None)

    def isolates(self, found: Found) -> bool:
        """Whether the engine runs in a process of its own."""
        return self._loader.isolates(found)

    async def python(self) -> tuple[str | None, str]:
        """The Python that runs engines from outside, `None` where it is this one, and why there is none."""
        interpreter = self._loader.sources.interpreter
        if interpreter.is_this:
            return None, ""
        # It is started once, and must not be waited for on the loop.
        problem = await asyncio.to_thread(interpreter.complaint)
        return interpreter.described(), problem

    def retire(self) -> list[EngineInstance]:
        """Make room for fresh instances; returns the old ones, which may still be serving calls."""
        old = list(self._instances.values())
        self._instances.clear()
        for instance in old:
            instance.retired = True
        return old

    async def listing(self, active: str) -> list[EngineListing]:
        """Every installed engine, with whether it could be selected."""
        await self.python()
        return list(
            await asyncio.gather(*(self._listed(found, active) for found in self._loader.sources.all()))
        )

    async def _listed(self, found: Found, active: str) -> EngineListing:
        from sidecar.protocol.engine import EngineListing

        try:
            info, reason = await self._described(found), None
        except EngineUnavailable as error:
            info, reason = _unknown(found.id), str(error)
        return EngineListing(
            id=info.id,
            name=info.name,
            version=info.version,
            owns_compaction=info.owns_compaction,
            turn_maintenance_mode=info.turn_maintenance_mode,
            implements=info.implements,
            host_requirements=info.host_requirements,
            active=found.id == active,
            available=reason is None,
            reason=reason,
        )

    async def _described(self, found: Found) -> EngineInfo:
        known = next((instance for (id, _), instance in self._instances.items() if id == found.id), None)
        if known is not None and known.fallback_for is None:
            return known.describe()
        found = self._loader.usable(found.id)
        if self.isolates(found):
            try:
                async with asyncio.timeout(_WAITS_FOR_A_LISTING_S):
                    instance = await self._loader.made(found)
            except TimeoutError:
                reason = f"{found.id} did not load within {_WAITS_FOR_A_LISTING_S:.0f} s"
                raise EngineUnavailable(found.id, reason) from None
            await instance.engine.dispose()
            return instance.describe()
        kind = self._loader.loaded(found)
        self._loader.configured(kind, None)
        return describe(kind.info, optional_members(kind))

    async def _open(self, key: tuple[str, bytes], engine_id: str, config: bytes | None) -> EngineInstance:
        try:
            instance = self._instances[key] = await self._instance(engine_id, config)
            return instance
        finally:
            self._opening.pop(key, None)

    async def _instance(self, engine_id: str, config: bytes | None) -> EngineInstance:
        if engine_id not in BUILT_IN:
            await self.python()
        try:
            return await self._loader.made(self._loader.usable(engine_id), config)
        except EngineUnavailable as error:
            if self._settings.on_engine_failure != LEGACY or engine_id == LEGACY:
                raise
            fallback = FallbackFor(id=engine_id, reason=str(error))
            return await self._loader.made(self._loader.usable(LEGACY), None, fallback)


def _unknown(engine_id: str) -> EngineInfo:
    return EngineInfo(
        id=engine_id,
        name=engine_id,
        version="unknown",
        owns_compaction=engine_id in BUILT_IN,
        turn_maintenance_mode="foreground",
        implements=[],
    )


class SessionLookup(Protocol):
    """Finds what the store has of sessions."""

    async def snapshot(self, session_id: str, agent_id: str | None) -> SessionSnapshot:
        """What the store has of a session, for a request of the agent."""
        ...

    async def owner(self, session_id: str, agent_id: str | None) -> str | None:
        """The agent that a session belongs to."""
        ...

    def owner_by(self, session_id: str, snapshot: SessionSnapshot) -> str | None:
        """The same by a snapshot of the session."""
        ...


class SessionEngines:
    """Finds the engine of a session, and remembers it for what must not wait for the store."""

    def __init__(
        self,
        host: Host,
        store: SessionStore,
        registry: EngineRegistry,
        *,
        exempt: ExemptSessions | None,
        sessions: Callable[[], SessionLookup],
        take_note: Callable[[], None],
    ) -> None:
        """`take_note` is called once an engine wants to see new messages."""
        self._host = host
        self._store = store
        self._registry = registry
        self._exempt = exempt
        self._sessions = sessions
        self._take_note = take_note
        self._known: OrderedDict[tuple[str, str | None], EngineInstance] = OrderedDict()

    def known(self, session_id: str, agent_id: str | None) -> EngineInstance | None:
        """The engine of a session, if that is known without asking the store."""
        return self._known.get((session_id, agent_id))

    async def of(self, session_id: str, agent_id: str | None) -> EngineInstance:
        """The engine that serves a session, by what this process or another one has set.

        Raises:
            EngineUnavailable: the engine that was configured for it cannot serve.
        """
        instance, _ = await self.begin(session_id, agent_id, None)
        return instance

    async def begin(
        self, session_id: str, agent_id: str | None, session_key: str | None
    ) -> tuple[EngineInstance, SessionSnapshot]:
        """The engine for a request, and what the store has of its session.

        A session that was prepared for a subagent under `session_key` begins with this.

        Raises:
            EngineUnavailable: the engine that was configured for it cannot serve.
        """
        sessions = self._sessions()
        exemption = self._exempt and self._exempt.of(session_id, session_key, agent_id)
        if exemption is not None and exemption.ignores:
            return await self._registry.take(LEGACY), await sessions.snapshot(session_id, agent_id)
        known = exemption is not None or (session_id, agent_id) in self._known
        if session_key is not None and not known:
            await self._begin_spawned(session_id, session_key, agent_id)
        snapshot = await sessions.snapshot(session_id, agent_id)
        own, agents = self.set_for(session_id, agent_id, snapshot), snapshot.agents
        engine_id, config = own.engine or agents.engine, own.config or agents.config
        instance = self._registry.ready(engine_id, config)
        if instance is None:
            instance = await self._registry.take(engine_id, config)
            # Much may have happened while it was loaded.
            snapshot = await sessions.snapshot(session_id, agent_id)
        if instance.takes_note:
            self._take_note()
        self._known[session_id, agent_id] = instance
        if len(self._known) > MOST:
            self._known.popitem(last=False)
        return instance, snapshot

    async def set_for_agent(self, agent_id: str) -> SessionSettings:
        """What `session/configure` has set for an agent."""
        return await self._store.settings(self._host.namespace, "agent", agent_id)

    def set_for(self, session_id: str, agent_id: str | None, snapshot: SessionSnapshot) -> SessionSettings:
        """What `session/configure` has set for a session, as far as the agent is concerned."""
        owner = self._sessions().owner_by(session_id, snapshot)
        own = SessionSettings(None, None) if is_foreign(owner, agent_id) else snapshot.own
        if agent_id is None or owner == agent_id:
            return own
        waiting = snapshot.waiting
        return SessionSettings(waiting.engine or own.engine, waiting.config or own.config)

    def forget(self) -> None:
        """Ask the store again which engine serves which session."""
        self._known.clear()

    def buffering(self) -> Iterator[str]:
        """Ids of sessions whose engine has their turns handed over as episodes."""
        return (session_id for (session_id, _), instance in self._known.items() if instance.buffers_episodes)

    async def _begin_spawned(self, session_id: str, session_key: str, agent_id: str | None) -> None:
        """Let the session be the child that waits for the agent under its key, if one does."""
        waiting = await self._store.spawns_of_key(self._host.namespace, session_key)
        if not any(spawn.child_id is None for spawn in waiting):
            return
        if not is_foreign(await self._sessions().owner(session_id, agent_id), agent_id):
            await self._store.write(BeginSpawn(self._host.ref(session_id), session_key, agent_id=agent_id))


class EngineLoader:
    """Finds, loads and configures engines, in this process or in one of their own."""

    def __init__(
        self,
        settings: Settings,
        host_capabilities: frozenset[str],
        make_host: MakeHost,
        message_format: MessageFormat,
    ) -> None:
        self._settings = settings
        self._capabilities = host_capabilities
        self._make_host = make_host
        self._message_format: MessageFormat = message_format
        self.sources = EngineSources(
            links=settings.links_file, paths=settings.load_paths, python=settings.engines_python
        )

    def isolates(self, found: Found) -> bool:
        """Whether the engine runs in a process of its own."""
        wanted = self._settings.entry(found.id).isolation
        return wanted == "process" or (wanted is None and not found.is_built_in)

    async def made(
        self, found: Found, config: bytes | None = None, fallback_for: FallbackFor | None = None
    ) -> EngineInstance:
        """The engine with an instance of its own, in this process or another one.

        Raises:
            EngineUnavailable: it does not load, its settings are wrong, or the host lacks what it needs.
        """
        if self.isolates(found):
            return await self._isolated(found, config)
        kind = self.loaded(found)
        settings = self.configured(kind, config)
        try:
            engine = kind(self._make_host(found.id, settings))
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            raise EngineUnavailable(found.id, f"{found.id} does not start: {error}") from error
        return EngineInstance(
            engine=engine,
            own=optional_members(kind),
            stores=stores_plainly(kind),
            buffers_episodes=kind.buffers_episodes,
            shortens_results=kind.shortens_results,
            takes_note=found.is_built_in and kind.take_note is not ContextEngine.take_note,
            trusted=found.is_built_in,
            config=config or b"",
            fallback_for=fallback_for,
        )

    async def _isolated(self, found: Found, config: bytes | None) -> EngineInstance:
        from sidecar.server.engines.proxy.engine import RemoteEngine
        from sidecar.server.engines.proxy.process import EngineRefused, ProcessFailed

        if found.problem:
            raise EngineUnavailable(found.id, found.problem)
        try:
            engine = await RemoteEngine.start(self._make_host(found.id, None), self._plan(found, config))
        except (EngineRefused, ProcessFailed) as error:
            raise _refused(found.id, str(error)) from error
        try:
            self._meets_requirements(found.id, engine.info.host_requirements)
        except EngineUnavailable:
            await engine.dispose()
            raise
        return EngineInstance(
            engine=engine,
            own=engine.own_members,
            stores=engine.stores_plainly,
            own_tools=engine.own_tools,
            buffers_episodes=engine.buffers,
            shortens_results=engine.shortens,
            trusted=False,
            isolated=True,
            config=config or b"",
        )

    def _plan(self, found: Found, config: bytes | None) -> ProcessPlan:
        from sidecar.engine.interpreter import NoPython
        from sidecar.server.engines.proxy.process import ProcessPlan

        try:
            python = sys.executable if found.is_built_in else self.sources.interpreter.path
        except NoPython as error:
            raise EngineUnavailable(found.id, str(error), fix=MEND_ENGINE) from None
        return ProcessPlan(
            found=found,
            python=python,
            config=self._values(found.id, config),
            memory_limit_mb=self._settings.entry(found.id).memory_limit_mb,
            hidden=self._settings.private_places,
            environment=self._settings.entry(found.id).environment,
            message_format=self._message_format,
            capabilities=self._capabilities,
            counter=self._settings.token_counter,
            recall_share=self._settings.recall_share,
        )

    def usable(self, engine_id: str) -> Found:
        """Where the engine comes from.

        Raises:
            EngineUnavailable: there is none of that id, or it is switched off.
        """
        if not self._settings.entry(engine_id).enabled:
            raise EngineUnavailable(
                engine_id, f"{engine_id} is switched off: set plugins.entries.{engine_id}.enabled to true"
            )
        found = self.sources.named(engine_id)
        if found is None:
            names = ", ".join(sorted(known.id for known in self.sources.all()))
            said = f"there is no engine {engine_id!r}; installed are: {names}"
            complaint = self.sources.interpreter.complaint()
            raise EngineUnavailable(engine_id, f"{said}. {complaint}" if complaint else said)
        return found

    def loaded(self, found: Found) -> type[ContextEngine]:
        """The class of the engine.

        Raises:
            EngineUnavailable: it does not load, or needs what the host does not offer.
        """
        if not (found.is_built_in or self.sources.interpreter.is_this):
            said = f"{found.id} runs in another Python (engines.python), so its isolation cannot be `inline`"
            raise EngineUnavailable(found.id, said, fix=MEND_ENGINE)
        try:
            kind = load_engine(found)
        except EngineNotLoadable as error:
            raise EngineUnavailable(found.id, str(error), fix=MEND_ENGINE) from error
        self._meets_requirements(found.id, kind.info.host_requirements)
        return kind

    def _meets_requirements(self, engine_id: str, requirements: tuple[str, ...]) -> None:
        missing = tuple(r for r in requirements if r not in self._capabilities)
        if missing:
            raise EngineUnavailable(
                engine_id,
                f"{engine_id} needs a host that answers {', '.join(missing)}: declare it in hostCapabilities",
                missing,
            )

    def configured(self, kind: type[ContextEngine], config: bytes | None) -> BaseModel | None:
        """The settings of the engine, `config` above the general ones.

        Raises:
            EngineUnavailable: they are wrong; the text names the key.
        """
        try:
            return validated_settings(kind, self._values(kind.info.id, config))
        except (SettingsRefused, EngineNotLoadable) as error:
            raise _refused(kind.info.id, str(error)) from None

    def _values(self, engine_id: str, config: bytes | None) -> Mapping[str, Any]:
        above: dict[str, Any] = json.decode(config) if config else {}
        return {**self._settings.entry(engine_id).config, **above}


def _refused(engine_id: str, problem: str) -> EngineUnavailable:
    """Why an engine does not begin to serve, and what to do about it."""
    if problem.startswith("plugins.entries."):
        return SettingsWrong(engine_id, problem, fix=MEND_SETTING)
    return EngineUnavailable(engine_id, problem, fix=MEND_ENGINE)
