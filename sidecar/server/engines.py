"""The exclusive slot: which engine serves a session, with which settings, in which process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sidecar.engine.sources import BUILT_IN, Found
from sidecar.protocol.base import EngineInfo, FallbackFor
from sidecar.server.configuration.settings import Settings
from sidecar.server.engine_kinds import describe, optional_members
from sidecar.server.seat import Seat
from sidecar.server.seating import EngineUnavailable, MakeHost, Seating

if TYPE_CHECKING:
    from sidecar.protocol.base import MessageFormat
    from sidecar.protocol.engine import EngineListing

LEGACY = "legacy"
FALLBACK_ENGINE = "default"
_WAITS_FOR_A_LISTING_S = 30.0


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
        self._seating = Seating(settings, host_capabilities, make_host, message_format)
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
        found = self._seating.usable(engine_id)
        if not self.isolates(found):
            self._seating.configured(self._seating.loaded(found), config)
        elif (engine_id, config or b"") not in self._seats:
            seat = await self._seating.made(found, config)
            await seat.engine.dispose()

    def check_settings(self, engine_id: str) -> None:
        """Raise as `check` would, without starting an engine from outside.

        Raises:
            EngineUnavailable: it cannot be loaded, or its settings are wrong.
        """
        self._seating.configured(self._seating.loaded(self._seating.usable(engine_id)), None)

    def isolates(self, found: Found) -> bool:
        """Whether the engine runs in a process of its own."""
        return self._seating.isolates(found)

    def retire(self) -> list[Seat]:
        """Make room for fresh instances; returns the old ones, which may still be serving calls."""
        old = list(self._seats.values())
        self._seats.clear()
        for seat in old:
            seat.retired = True
        return old

    async def listing(self, active: str) -> list[EngineListing]:
        """Every installed engine, with whether it could be selected."""
        return list(
            await asyncio.gather(*(self._listed(found, active) for found in self._seating.sources.all()))
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
        seated = next((seat for (id, _), seat in self._seats.items() if id == found.id), None)
        if seated is not None and seated.fallback_for is None:
            return seated.describe()
        found = self._seating.usable(found.id)
        if self.isolates(found):
            try:
                async with asyncio.timeout(_WAITS_FOR_A_LISTING_S):
                    seat = await self._seating.made(found)
            except TimeoutError:
                reason = f"{found.id} did not load within {_WAITS_FOR_A_LISTING_S:.0f} s"
                raise EngineUnavailable(found.id, reason) from None
            await seat.engine.dispose()
            return seat.describe()
        kind = self._seating.loaded(found)
        self._seating.configured(kind, None)
        return describe(kind.info, optional_members(kind))

    async def _open(self, key: tuple[str, bytes], engine_id: str, config: bytes | None) -> Seat:
        try:
            seat = self._seats[key] = await self._seat(engine_id, config)
            return seat
        finally:
            self._opening.pop(key, None)

    async def _seat(self, engine_id: str, config: bytes | None) -> Seat:
        try:
            return await self._seating.made(self._seating.usable(engine_id), config)
        except EngineUnavailable as error:
            if self._settings.on_engine_failure != LEGACY or engine_id == LEGACY:
                raise
            fallback = FallbackFor(id=engine_id, reason=str(error))
            return await self._seating.made(self._seating.usable(LEGACY), None, fallback)


def _unknown(engine_id: str) -> EngineInfo:
    return EngineInfo(
        id=engine_id,
        name=engine_id,
        version="unknown",
        owns_compaction=engine_id in BUILT_IN,
        turn_maintenance_mode="foreground",
        implements=[],
    )
