"""The exclusive slot: which engine serves a session, with which settings, in which process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, json

from sidecar.engine.contract import ContextEngine, Session
from sidecar.engine.loading import EngineNotLoadable, load_engine
from sidecar.engine.signature import digest
from sidecar.engine.sources import BUILT_IN, EngineSources, Found
from sidecar.protocol.base import EngineInfo, FallbackFor
from sidecar.server.configuration.settings import Settings
from sidecar.server.engine_kinds import (
    SettingsRefused,
    describe,
    optional_members,
    stores_plainly,
    validated_settings,
)
from sidecar.server.health import EngineHealth
from sidecar.server.lending import LentSession

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sidecar.protocol.base import MessageFormat
    from sidecar.protocol.engine import EngineListing
    from sidecar.server.engine_session import EngineSession
    from sidecar.server.host_services import HostServices
    from sidecar.server.isolation.process import ProcessPlan

LEGACY = "legacy"
FALLBACK_ENGINE = "default"
_WAITS_FOR_A_LISTING_S = 30.0


class EngineUnavailable(Exception):
    """Raised when the selected engine cannot serve; the text says what to fix (error 1001)."""

    def __init__(self, engine_id: str, reason: str, missing: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.engine_id = engine_id
        self.missing = missing


class Seat(Struct, kw_only=True):
    """An engine that serves, and how many calls it is serving."""

    engine: ContextEngine
    own: tuple[str, ...] = ()
    """Optional members that the engine has itself, in Python's spelling."""
    stores: bool = False
    """True where messages go straight to the store, without being shown to the engine."""
    trusted: bool = True
    """True for built-in engines, which get our own objects and are called without a task of their own."""
    isolated: bool = False
    """True where the engine runs in a process of its own."""
    buffers_episodes: bool = False
    """True where its turns are buffered for a back end."""
    health: EngineHealth = field(default_factory=EngineHealth)
    config: bytes = b""
    """What was configured above the general settings, as a JSON object."""
    fallback_for: FallbackFor | None = None
    calls: int = 0
    retired: bool = False

    @property
    def id(self) -> str:
        """The engine's id."""
        return self.engine.info.id

    @property
    def signature(self) -> str:
        """Changes whenever another engine, or other settings, may answer in another way."""
        return f"{self.id} {self.config and digest(self.config.decode('utf-8', 'replace'))}"

    def has(self, member: str) -> bool:
        """Whether the engine has this optional member itself."""
        return member in self.own

    def lend(self, session: EngineSession) -> Session:
        """The session as this engine is to be given it."""
        return session if self.trusted else LentSession(session, copies=not self.isolated)

    def describe(self) -> EngineInfo:
        """What the host is told about the engine."""
        return describe(self.engine.info, self.own, self.fallback_for)


MakeHost = Callable[[str, "BaseModel | None"], "HostServices"]


class EngineSlot:
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
        self._make_host = make_host
        self._message_format: MessageFormat = message_format
        self._sources = EngineSources(links=settings.links_file, paths=settings.load_paths)
        self._seats: dict[tuple[str, bytes], Seat] = {}
        self._opening: dict[tuple[str, bytes], asyncio.Task[Seat]] = {}

    @property
    def default_id(self) -> str:
        """The engine of sessions for which nothing else was configured."""
        if self._settings.engine:
            return self._settings.engine
        return LEGACY if "runtime/compact" in self._capabilities else FALLBACK_ENGINE

    @property
    def seats(self) -> list[Seat]:
        """The engines that serve at present."""
        return list(self._seats.values())

    async def take(self, engine_id: str | None = None, config: bytes | None = None) -> Seat:
        """The engine by that id, with `config` (JSON object) above its configured settings.

        Raises:
            EngineUnavailable: it cannot be loaded or configured, or needs what the host does not offer.
        """
        engine_id = engine_id or self.default_id
        key = (engine_id, config or b"")
        seat = self._seats.get(key)
        if seat is not None:
            return seat
        if engine_id in BUILT_IN and self._settings.entry(engine_id).isolation != "process":
            seat = self._seats[key] = await self._seat(engine_id, config)
            return seat
        opening = self._opening.get(key)
        if opening is None:
            opening = self._opening[key] = asyncio.create_task(self._open(key, engine_id, config))
        return await asyncio.shield(opening)

    async def check(self, engine_id: str, config: bytes | None) -> None:
        """Raise as `take` would if there were no fallback; an engine from outside is started for it."""
        found = self._usable(engine_id)
        if not self.isolates(found):
            self._configured(self._loaded(found), config)
        elif (engine_id, config or b"") not in self._seats:
            seat = await self._made(found, config, None)
            await seat.engine.dispose()

    def isolates(self, found: Found) -> bool:
        """Whether the engine runs in a process of its own."""
        wanted = self._settings.entry(found.id).isolation
        return wanted == "process" or (wanted is None and not found.is_built_in)

    def retire(self) -> list[Seat]:
        """Make room for fresh instances; returns the old ones, which may still be serving calls."""
        old = list(self._seats.values())
        self._seats.clear()
        for seat in old:
            seat.retired = True
        return old

    async def listing(self, active: str) -> list[EngineListing]:
        """Every installed engine, with whether it could be selected."""
        return list(await asyncio.gather(*(self._listed(found, active) for found in self._sources.all())))

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
        seated = next((seat for (id, _), seat in self._seats.items() if id == found.id), None)
        if seated is not None and seated.fallback_for is None:
            return seated.describe()
        found = self._usable(found.id)
        if self.isolates(found):
            try:
                async with asyncio.timeout(_WAITS_FOR_A_LISTING_S):
                    seat = await self._made(found, None, None)
            except TimeoutError:
                reason = f"{found.id} did not load within {_WAITS_FOR_A_LISTING_S:.0f} s"
                raise EngineUnavailable(found.id, reason) from None
            await seat.engine.dispose()
            return seat.describe()
        kind = self._loaded(found)
        self._configured(kind, None)
        return describe(kind.info, optional_members(kind))

    async def _open(self, key: tuple[str, bytes], engine_id: str, config: bytes | None) -> Seat:
        try:
            seat = self._seats[key] = await self._seat(engine_id, config)
            return seat
        finally:
            self._opening.pop(key, None)

    async def _seat(self, engine_id: str, config: bytes | None) -> Seat:
        try:
            return await self._made(self._usable(engine_id), config, None)
        except EngineUnavailable as error:
            if self._settings.on_engine_failure != LEGACY or engine_id == LEGACY:
                raise
            fallback = FallbackFor(id=engine_id, reason=str(error))
            return await self._made(self._usable(LEGACY), None, fallback)

    async def _made(self, found: Found, config: bytes | None, fallback_for: FallbackFor | None) -> Seat:
        if self.isolates(found):
            return await self._isolated(found, config)
        kind = self._loaded(found)
        settings = self._configured(kind, config)
        try:
            engine = kind(self._make_host(found.id, settings))
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            raise EngineUnavailable(found.id, f"{found.id} does not start: {error}") from error
        return Seat(
            engine=engine,
            own=optional_members(kind),
            stores=stores_plainly(kind),
            buffers_episodes=kind.buffers_episodes,
            trusted=found.is_built_in,
            config=config or b"",
            fallback_for=fallback_for,
        )

    async def _isolated(self, found: Found, config: bytes | None) -> Seat:
        from sidecar.server.isolation.process import EngineRefused, ProcessFailed
        from sidecar.server.isolation.remote import RemoteEngine

        if found.problem:
            raise EngineUnavailable(found.id, found.problem)
        try:
            engine = await RemoteEngine.start(self._make_host(found.id, None), self._plan(found, config))
        except (EngineRefused, ProcessFailed) as error:
            raise EngineUnavailable(found.id, str(error)) from error
        try:
            self._meets_requirements(found.id, engine.info.host_requirements)
        except EngineUnavailable:
            await engine.dispose()
            raise
        return Seat(
            engine=engine,
            own=engine.own_members,
            stores=engine.stores_plainly,
            buffers_episodes=engine.buffers,
            trusted=False,
            isolated=True,
            config=config or b"",
        )

    def _plan(self, found: Found, config: bytes | None) -> ProcessPlan:
        from sidecar.server.isolation.process import ProcessPlan

        return ProcessPlan(
            found=found,
            config=self._values(found.id, config),
            memory_limit_mb=self._settings.entry(found.id).memory_limit_mb,
            message_format=self._message_format,
            capabilities=self._capabilities,
            counter=self._settings.token_counter,
        )

    def _usable(self, engine_id: str) -> Found:
        """Where the engine comes from."""
        if not self._settings.entry(engine_id).enabled:
            raise EngineUnavailable(
                engine_id, f"{engine_id} is switched off: set plugins.entries.{engine_id}.enabled to true"
            )
        found = self._sources.named(engine_id)
        if found is None:
            names = ", ".join(sorted(known.id for known in self._sources.all()))
            raise EngineUnavailable(engine_id, f"there is no engine {engine_id!r}; installed are: {names}")
        return found

    def _loaded(self, found: Found) -> type[ContextEngine]:
        try:
            kind = load_engine(found)
        except EngineNotLoadable as error:
            raise EngineUnavailable(found.id, str(error)) from error
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

    def _configured(self, kind: type[ContextEngine], config: bytes | None) -> BaseModel | None:
        try:
            return validated_settings(kind, self._values(kind.info.id, config))
        except (SettingsRefused, EngineNotLoadable) as error:
            raise EngineUnavailable(kind.info.id, str(error)) from None

    def _values(self, engine_id: str, config: bytes | None) -> Mapping[str, Any]:
        above: dict[str, Any] = json.decode(config) if config else {}
        return {**self._settings.entry(engine_id).config, **above}


def _unknown(engine_id: str) -> EngineInfo:
    return EngineInfo(
        id=engine_id,
        name=engine_id,
        version="unknown",
        owns_compaction=engine_id in BUILT_IN,
        turn_maintenance_mode="foreground",
        implements=[],
    )
