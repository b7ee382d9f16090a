"""The memory sources of one connection, in the order in which ties are broken."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from sidecar.memory.coordinator import Asked
from sidecar.server.memory.host_source import HostSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sidecar.memory.contract import InjectionPoint
    from sidecar.server.sidecar import Sidecar

_log = logging.getLogger(__name__)


class SourceList:
    """Configured sources first, in the order of the slot, then those of the host as they were registered."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._configured: list[Asked] | None = None
        self._registered: dict[str, Asked] = {}
        self._problems: dict[str, str] = {}

    def register(self, name: str, points: Sequence[InjectionPoint], token_budget: int | None) -> None:
        """Ask the host too; the same name replaces an earlier registration."""
        settings = self._sidecar.settings.memory
        source = HostSource(name, points, self._sidecar.peer, settings.source_timeout_ms)
        self._registered[name] = Asked(source, token_budget)

    def unregister(self, name: str) -> bool:
        """Ask the host no longer; false where it was not asked."""
        return self._registered.pop(name, None) is not None

    def at(self, point: InjectionPoint) -> list[Asked]:
        """The sources that want to be asked at this point."""
        known = [*self._loaded(), *self._registered.values()]
        return [asked for asked in known if point in asked.source.injection_points]

    def problems(self) -> dict[str, str]:
        """Why sources that are configured cannot be asked, by their ids."""
        self._loaded()
        return self._problems

    def _loaded(self) -> list[Asked]:
        """The configured sources; one that cannot be loaded is told of in the log, and left out."""
        if self._configured is None:
            self._configured = []
            for source_id in self._sidecar.settings.memory.sources:
                asked = self._load(source_id)
                if asked is not None:
                    self._configured.append(asked)
        return self._configured

    def _load(self, source_id: str) -> Asked | None:
        from sidecar.memory.contract import SourceUnavailable
        from sidecar.memory.loading import load_source
        from sidecar.server.memory.source_host import ServerSourceHost

        entry = self._sidecar.settings.entry(source_id)
        if not entry.enabled:
            return None
        try:
            host = ServerSourceHost(self._sidecar, source_id, entry.config)
            return load_source(source_id, host, entry.config)
        except SourceUnavailable as error:
            why = f" ({error.__cause__})" if error.__cause__ else ""
            _log.error("memory source %s: %s%s", source_id, error, why)
            self._problems[source_id] = str(error)
            return None
