"""The exclusive slot: which engine serves a session, with which settings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct, json

from sidecar.engine.contract import OPTIONAL_MEMBERS, ContextEngine
from sidecar.engine.loading import BUILT_IN, EngineNotLoadable, find_engines, import_target, load_engine
from sidecar.engine.signature import digest
from sidecar.protocol.base import EngineInfo, FallbackFor
from sidecar.server.configuration.settings import Settings

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sidecar.protocol.engine import EngineListing
    from sidecar.server.host_services import HostServices

_log = logging.getLogger(__name__)

WIRE_NAMES = {
    "after_turn": "afterTurn",
    "prepare_spawn": "prepareSpawn",
    "spawn_ended": "subagentEnded",
}
LEGACY = "legacy"
FALLBACK_ENGINE = "default"


class EngineUnavailable(Exception):
    """Raised when the selected engine cannot serve; the text says what to fix (error 1001)."""

    def __init__(self, engine_id: str, reason: str, missing: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.engine_id = engine_id
        self.missing = missing


class Seat(Struct, kw_only=True):
    """An engine that serves, and how many calls it is serving."""

    engine: ContextEngine
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

    def describe(self) -> EngineInfo:
        """What the host is told about the engine."""
        return describe(type(self.engine), self.fallback_for)


MakeHost = Callable[[str, "BaseModel | None"], "HostServices"]


class EngineSlot:
    """Loads engines on demand and keeps one instance for each engine with its settings."""

    def __init__(self, settings: Settings, host_capabilities: frozenset[str], make_host: MakeHost) -> None:
        self._settings = settings
        self._capabilities = host_capabilities
        self._make_host = make_host
        self._seats: dict[tuple[str, bytes], Seat] = {}
        self._retired: list[Seat] = []

    @property
    def default_id(self) -> str:
        """The engine of sessions for which nothing else was configured."""
        if self._settings.engine:
            return self._settings.engine
        return LEGACY if "runtime/compact" in self._capabilities else FALLBACK_ENGINE

    def take(self, engine_id: str | None = None, config: bytes | None = None) -> Seat:
        """The engine by that id, with `config` (JSON object) above its configured settings.

        Raises:
            EngineUnavailable: it cannot be loaded or configured, or needs what the host does not offer.
        """
        engine_id = engine_id or self.default_id
        key = (engine_id, config or b"")
        seat = self._seats.get(key)
        if seat is None:
            seat = self._seats[key] = self._seat(engine_id, config)
        return seat

    def check(self, engine_id: str, config: bytes | None) -> None:
        """Raise as `take` would, without making an instance."""
        self._usable(engine_id)
        self._validated(load_engine(engine_id), config)

    def retire(self) -> list[Seat]:
        """Make room for fresh instances; returns the old ones, which may still be serving calls."""
        old = list(self._seats.values())
        self._seats.clear()
        for seat in old:
            seat.retired = True
        return old

    def listing(self, active: str) -> Iterator[EngineListing]:
        """Every installed engine, with whether it could be selected."""
        from sidecar.protocol.engine import EngineListing

        for found in find_engines():
            try:
                kind = self._usable(found.id)
                info, reason = describe(kind), None
            except EngineUnavailable as error:
                info, reason = _unknown(found.id), str(error)
            yield EngineListing(
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

    def _seat(self, engine_id: str, config: bytes | None) -> Seat:
        try:
            return self._made(engine_id, config, None)
        except EngineUnavailable as error:
            if self._settings.on_engine_failure != LEGACY or engine_id == LEGACY:
                raise
            return self._made(LEGACY, None, FallbackFor(id=engine_id, reason=str(error)))

    def _made(self, engine_id: str, config: bytes | None, fallback_for: FallbackFor | None) -> Seat:
        kind = self._usable(engine_id)
        settings = self._validated(kind, config)
        try:
            engine = kind(self._make_host(engine_id, settings))
        except Exception as error:
            raise EngineUnavailable(engine_id, f"{engine_id} does not start: {error}") from error
        return Seat(engine=engine, config=config or b"", fallback_for=fallback_for)

    def _usable(self, engine_id: str) -> type[ContextEngine]:
        if not self._settings.entry(engine_id).enabled:
            raise EngineUnavailable(
                engine_id, f"{engine_id} is switched off: set plugins.entries.{engine_id}.enabled to true"
            )
        try:
            kind = load_engine(engine_id)
        except EngineNotLoadable as error:
            raise EngineUnavailable(engine_id, str(error)) from error
        missing = tuple(r for r in kind.info.host_requirements if r not in self._capabilities)
        if missing:
            raise EngineUnavailable(
                engine_id,
                f"{engine_id} needs a host that answers {', '.join(missing)}: declare it in hostCapabilities",
                missing,
            )
        return kind

    def _validated(self, kind: type[ContextEngine], config: bytes | None) -> BaseModel | None:
        """The engine's settings, `None` where nothing is configured and its defaults hold."""
        above: dict[str, Any] = json.decode(config) if config else {}
        values = {**self._settings.entry(kind.info.id).config, **above}
        if not values or kind.settings_model is None:
            return None
        model = kind.settings_model
        if isinstance(model, str):
            model = import_target(model)
        from pydantic import ValidationError

        for name in values:
            if name not in model.model_fields:
                _log.warning("unknown setting plugins.entries.%s.config.%s", kind.info.id, name)
        try:
            return model.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            where = ".".join(map(str, ("plugins.entries", kind.info.id, "config", *first["loc"])))
            raise EngineUnavailable(kind.info.id, f"{where}: {first['msg']}") from None


def describe(kind: type[ContextEngine], fallback_for: FallbackFor | None = None) -> EngineInfo:
    """An engine in the words of the protocol."""
    info = kind.info
    own = [m for m in OPTIONAL_MEMBERS if getattr(kind, m) is not getattr(ContextEngine, m)]
    return EngineInfo(
        id=info.id,
        name=info.name,
        version=info.version,
        owns_compaction=info.owns_compaction,
        turn_maintenance_mode=info.turn_maintenance_mode,
        implements=[WIRE_NAMES.get(m, m) for m in ("ingest", "assemble", "compact", *own)],
        host_requirements=list(info.host_requirements) or None,
        fallback_for=fallback_for,
    )


def _unknown(engine_id: str) -> EngineInfo:
    return EngineInfo(
        id=engine_id,
        name=engine_id,
        version="unknown",
        owns_compaction=engine_id in BUILT_IN,
        turn_maintenance_mode="foreground",
        implements=[],
    )
