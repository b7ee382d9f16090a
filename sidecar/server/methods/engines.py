"""`engine/list`, `engine/doctor`: installed engines, and the state of every part."""

from __future__ import annotations

import asyncio
import shutil
import sys
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sidecar import __version__
from sidecar.origin import install_command
from sidecar.plurals import counted
from sidecar.protocol.engine import (
    DoctorCheck,
    DoctorEngineParams,
    DoctorEngineResult,
    ListEngineParams,
    ListEngineResult,
    ShadowReport,
)
from sidecar.protocol.lifecycle import LATEST
from sidecar.rpc.router import Call, Router
from sidecar.secrecy import masked_text
from sidecar.server.configuration.settings import ModelSettings, Settings
from sidecar.server.engines.instance import LEGACY
from sidecar.server.engines.registry import FALLBACK_ENGINE
from sidecar.server.failures import without_paths
from sidecar.server.sidecar import Sidecar

if TYPE_CHECKING:
    from sidecar.server.background.episodes import EpisodeOutbox
    from sidecar.server.configuration.settings import ExemptionSettings
    from sidecar.server.sessions.exempt import ExemptSessions
    from sidecar.store.search import SearchState


LITTLE_DISK_MB = 256
MANY_WAITING = 5_000
"""Messages that are not indexed, from which on that is worth a word."""

LIMIT_S = 8.0
"""Longest wait for one of them."""
_INSTALL = f"install the extra `http`: {install_command('http')}"
QUESTION = "Answer with the word: yes"


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
        registry = self._sidecar.registry
        return ListEngineResult(engines=await registry.listing((await registry.take()).id))

    async def doctor(self, params: DoctorEngineParams, call: Call) -> DoctorEngineResult:
        """What was looked at, in a stable order."""
        del params, call
        checks = [await self._engine(), self._settings(), await self._store(), self._tokens(), self._host()]
        checks.append(await self._search())
        checks += await self._python()
        checks += [self._disk(), self._versions(), self._health(), *self._methods()]
        services = [check async for check in service_checks(self._sidecar.settings)]
        checks += services
        outbox = self._sidecar.episodes.outbox
        if outbox is not None and all(check.name != "episodes" for check in services):
            checks.append(await self._episodes(outbox))
        if self._sidecar.settings.memory.sources:
            checks.append(self._memory())
        if self._sidecar.exempt is not None:
            checks.append(_sessions(self._sidecar.exempt, self._sidecar.settings.exemptions))
        retention = self._sidecar.retention
        if retention is not None and retention.problem is not None:
            said = f"no session is erased: {retention.problem}"
            fix = "set the clock; `context-sidecar db prune --trust-clock` erases all the same"
            checks.append(DoctorCheck(name="retention", ok=False, message=said, fix=fix))
        shadow = self._sidecar.shadow
        report = shadow.report() if shadow is not None else None
        if report is not None:
            checks.append(_shadow(report))
        return DoctorEngineResult(ok=all(check.ok for check in checks), checks=checks, shadow=report)

    async def _engine(self) -> DoctorCheck:
        instance = await self._sidecar.registry.take()
        info = instance.engine.info
        if instance.fallback_for is not None:
            return DoctorCheck(
                name="engine",
                ok=False,
                message=f"{info.id} stands in for {instance.fallback_for.id}: {instance.fallback_for.reason}",
                fix="repair the selected engine, or select another one",
            )
        what = {
            LEGACY: "the host keeps its own context, nothing is stored",
            FALLBACK_ENGINE: "one summary of older messages, recent ones intact",
        }.get(info.id, info.name)
        why = ""
        if not self._sidecar.settings.engine:
            owns = info.id == LEGACY
            why = (
                f"; none is selected, and the host {'says' if owns else 'does not say'} that it owns history"
            )
        if instance.isolated:
            why += f"; {_confinement()}"
        return DoctorCheck(name="engine", ok=True, message=f"{info.id} {info.version}: {what}{why}")

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
        warnings = [*self._sidecar.settings.warnings]
        if (mismatch := self._sidecar.dialect_watch.warning) is not None:
            warnings.append(mismatch)
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
        heads, more = await store.sessions(self._sidecar.host.namespace, 100, None)
        count = f"{len(heads)} or more sessions" if more else counted(len(heads), "session")
        volatile = store.kind == "memory"
        return DoctorCheck(
            name="store",
            ok=True,
            message=f"{store.kind} is open, {count} in this namespace"
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
        indexed = _indexed(await self._sidecar.store.search_state())
        if setting == "off":
            return DoctorCheck(name="search", ok=True, message=f"by words{indexed}")
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
            name="search",
            ok=True,
            message=f"by words and meaning, {counted(waiting, 'message')} without a vector yet{indexed}",
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

    async def _python(self) -> list[DoctorCheck]:
        """Which Python runs engines from outside, where that is not this one."""
        python, problem = await self._sidecar.registry.python()
        if python is None:
            return []
        if not problem:
            return [DoctorCheck(name="python", ok=True, message=f"engines from outside run in {python}")]
        needed = self._sidecar.settings.engines_python is not None
        said = f"engines from outside cannot be run, those built in can: {problem}"
        return [DoctorCheck(name="python", ok=not needed, message=said)]

    def _versions(self) -> DoctorCheck:
        python = ".".join(map(str, sys.version_info[:3]))
        return DoctorCheck(
            name="versions",
            ok=True,
            message=f"context-sidecar {__version__}, protocol {LATEST}, Python {python}",
        )

    def _health(self) -> DoctorCheck:
        """Whether an engine is kept away from sessions in which it failed again and again."""
        instances = self._sidecar.registry.instances
        failures = sum(instance.health.failures for instance in instances)
        away = [(instance.id, one) for instance in instances for one in instance.health.quarantined()]
        if not away:
            return DoctorCheck(
                name="health", ok=True, message=f"{counted(failures, 'call')} of engines failed"
            )
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

    async def _episodes(self, outbox: EpisodeOutbox) -> DoctorCheck:
        courier, waiting = outbox.courier, await outbox.waiting()
        if courier.problem:
            return DoctorCheck(
                name="episodes",
                ok=False,
                message=f"{waiting} wait, {courier.backend.name} did not take them: {courier.problem}",
                fix="see that the back end of `episodes` can be reached; nothing is lost meanwhile",
            )
        return DoctorCheck(name="episodes", ok=True, message=f"{waiting} wait for {courier.backend.name}")

    def _host(self) -> DoctorCheck:
        capabilities = sorted(self._sidecar.host.capabilities)
        return DoctorCheck(
            name="host",
            ok=True,
            message="answers " + ", ".join(capabilities) if capabilities else "answers no requests",
        )


def _indexed(state: SearchState) -> str:
    """What the index has still to do, as the end of a sentence."""
    said = ""
    if state.waiting > MANY_WAITING:
        said += f"; {state.waiting} messages are still being indexed, until then searches read them"
    if state.erased_since_ms is not None:
        hours = max(0.0, time.time() - state.erased_since_ms / 1000) / 3600
        said += f"; fragments of text erased {hours:.1f} hours ago leave the index file within 24 hours, "
        said += "or with `context-sidecar db vacuum`"
    return said


def _confinement() -> str:
    """What keeps an engine in a process of its own away from the store."""
    from sidecar.server.engines.proxy.confinement import landlock_version

    if landlock_version():
        return "its process cannot open the store"
    return (
        "its process is not confined: that takes Linux with Landlock, so select only engines that you trust"
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


async def service_checks(settings: Settings) -> AsyncGenerator[DoctorCheck]:
    """One check for each service; each is really asked."""
    if settings.model is not None:
        yield await _model(settings.model)
    if settings.telemetry:
        yield await _collector()
    if settings.episodes is not None and settings.episodes.url is not None and find_spec("aiohttp") is None:
        said = "nothing is delivered: the webhook needs aiohttp"
        yield DoctorCheck(name="episodes", ok=False, message=said, fix=_INSTALL)


async def _model(settings: ModelSettings) -> DoctorCheck:
    from sidecar.summarize.endpoint import EndpointModel, EndpointSettings, ModelFailed

    address = masked_text(settings.base_url)
    if find_spec("aiohttp") is None:
        said = "a model at an endpoint needs aiohttp"
        return DoctorCheck(name="model", ok=False, message=said, fix=_INSTALL)
    model = EndpointModel(
        EndpointSettings(
            base_url=settings.base_url,
            model=settings.name,
            api_key=settings.api_key,
            timeout_seconds=min(LIMIT_S, settings.timeout_ms / 1000),
            retries=0,
        )
    )
    began = time.perf_counter()
    try:
        await model("query", [("user", QUESTION)], "", 16)
    except ModelFailed as error:
        return DoctorCheck(
            name="model",
            ok=False,
            message=f"{settings.name} at {address} gives no answer: {error}; summaries are made by rules",
            fix="check model.baseUrl, model.name and model.apiKey, and whether the endpoint can be reached",
        )
    finally:
        await model.close()
    milliseconds = (time.perf_counter() - began) * 1000
    return DoctorCheck(
        name="model", ok=True, message=f"{settings.name} at {address} answered after {milliseconds:.0f} ms"
    )


async def _collector() -> DoctorCheck:
    """Whether the collector takes an export with nothing in it."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import SpanExportResult
    except ImportError:
        fix = f"install the extra `otel`: {install_command('otel')}"
        return DoctorCheck(name="telemetry", ok=False, message="nothing is sent", fix=fix)
    loop, taken = asyncio.get_running_loop(), asyncio.Event()
    results: list[object] = []

    def export() -> None:
        exporter = OTLPSpanExporter(timeout=int(LIMIT_S) - 2)
        try:
            results.append(exporter.export([]))
        except Exception as error:
            results.append(error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(taken.set)

    threading.Thread(target=export, name="telemetry-check", daemon=True).start()
    try:
        await asyncio.wait_for(taken.wait(), LIMIT_S)
    except TimeoutError:
        results.append(None)
    if results[0] is SpanExportResult.SUCCESS:
        return DoctorCheck(name="telemetry", ok=True, message="the collector takes what is sent")
    return DoctorCheck(
        name="telemetry",
        ok=False,
        message="the collector does not take what is sent; it is lost",
        fix="start a collector, or set OTEL_EXPORTER_OTLP_ENDPOINT (default: port 4318 of this machine)",
    )
