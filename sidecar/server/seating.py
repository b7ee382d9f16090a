"""Makes engines ready to serve: found, loaded, configured, in this process or in one of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import json

from sidecar.engine.contract import ContextEngine
from sidecar.engine.loading import EngineNotLoadable, load_engine
from sidecar.engine.sources import EngineSources, Found
from sidecar.protocol.base import FallbackFor
from sidecar.server.configuration.settings import Settings
from sidecar.server.engine_kinds import (
    SettingsRefused,
    optional_members,
    stores_plainly,
    validated_settings,
)
from sidecar.server.seat import Seat

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sidecar.protocol.base import MessageFormat
    from sidecar.server.host_services import HostServices
    from sidecar.server.isolation.process import ProcessPlan

MakeHost = Callable[[str, "BaseModel | None"], "HostServices"]


SELECT_ANOTHER = "select an engine that `context-sidecar engines list` shows as available"
MEND_SETTING = "correct that setting; `context-sidecar config validate` checks the configuration file"
MEND_ENGINE = "mend the engine, or select another one of `context-sidecar engines list`"


class EngineUnavailable(Exception):
    """Raised when the selected engine cannot serve; the text says what to fix (error 1001)."""

    def __init__(
        self, engine_id: str, reason: str, missing: tuple[str, ...] = (), *, fix: str = SELECT_ANOTHER
    ) -> None:
        super().__init__(reason)
        self.engine_id = engine_id
        self.missing = missing
        self.fix = fix
        """What to do about it."""


class Seating:
    """Makes a seat for an engine, whenever it is asked for one."""

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
        self.sources = EngineSources(links=settings.links_file, paths=settings.load_paths)

    def isolates(self, found: Found) -> bool:
        """Whether the engine runs in a process of its own."""
        wanted = self._settings.entry(found.id).isolation
        return wanted == "process" or (wanted is None and not found.is_built_in)

    async def made(
        self, found: Found, config: bytes | None = None, fallback_for: FallbackFor | None = None
    ) -> Seat:
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
        return Seat(
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

    async def _isolated(self, found: Found, config: bytes | None) -> Seat:
        from sidecar.server.isolation.process import EngineRefused, ProcessFailed
        from sidecar.server.isolation.remote import RemoteEngine

        if found.problem:
            raise EngineUnavailable(found.id, found.problem)
        try:
            engine = await RemoteEngine.start(self._make_host(found.id, None), self._plan(found, config))
        except (EngineRefused, ProcessFailed) as error:
            raise EngineUnavailable(found.id, str(error), fix=_fix(str(error))) from error
        try:
            self._meets_requirements(found.id, engine.info.host_requirements)
        except EngineUnavailable:
            await engine.dispose()
            raise
        return Seat(
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
        from sidecar.server.isolation.process import ProcessPlan

        return ProcessPlan(
            found=found,
            config=self._values(found.id, config),
            memory_limit_mb=self._settings.entry(found.id).memory_limit_mb,
            message_format=self._message_format,
            capabilities=self._capabilities,
            counter=self._settings.token_counter,
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
            raise EngineUnavailable(engine_id, f"there is no engine {engine_id!r}; installed are: {names}")
        return found

    def loaded(self, found: Found) -> type[ContextEngine]:
        """The class of the engine.

        Raises:
            EngineUnavailable: it does not load, or needs what the host does not offer.
        """
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
            raise EngineUnavailable(kind.info.id, str(error), fix=_fix(str(error))) from None

    def _values(self, engine_id: str, config: bytes | None) -> Mapping[str, Any]:
        above: dict[str, Any] = json.decode(config) if config else {}
        return {**self._settings.entry(engine_id).config, **above}


def _fix(problem: str) -> str:
    """What to do about an engine that does not begin to serve."""
    return MEND_SETTING if problem.startswith("plugins.entries.") else MEND_ENGINE
