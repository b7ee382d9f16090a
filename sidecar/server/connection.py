"""Makes a sidecar ready on `initialize`: settings, store, engine, then the methods."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Raw, json, structs

from sidecar import __version__
from sidecar.import_path import complaint
from sidecar.messages.dialects import DIALECTS
from sidecar.messages.fence import OPENING_BYTES
from sidecar.protocol import errors as codes
from sidecar.protocol.lifecycle import (
    LATEST,
    SUPPORTED,
    ContextEngineCapabilities,
    ContextEngineOptions,
    ExperimentalCapabilities,
    InitializeParams,
    InitializeResult,
    Limits,
    PeerInfo,
    ServerCapabilities,
)
from sidecar.rpc.errors import InvalidParams, RpcError
from sidecar.rpc.peer import Peer
from sidecar.rpc.router import Call, Router
from sidecar.server.configuration.resolve import ConfigurationError, resolve
from sidecar.server.configuration.settings import Settings
from sidecar.server.engines.instance import EngineInstance
from sidecar.server.engines.tools import offered
from sidecar.server.failures import EngineUnavailable, to_rpc_error, without_paths
from sidecar.server.host_mistakes import misplaced, warn
from sidecar.server.log import RequestWatch, log_to_stderr
from sidecar.server.profile import Host
from sidecar.server.sidecar import Sidecar
from sidecar.store import open_store
from sidecar.store.contract import SessionStore
from sidecar.store.errors import StoreError
from sidecar.store.search import Searchable, SearchableStore

if TYPE_CHECKING:
    from sidecar.server.background.telemetry import Telemetry
    from sidecar.store.records import SessionRecord
    from sidecar.store.submitting import Submitting


CONFIG_PATH = "/initializationOptions/contextEngine/config"

SWEEP_AFTER_S = 1.0
"""Seconds after the handshake until is looked for what has expired meanwhile; the start has other work."""

AREAS = {
    "ingest": ("context/ingest", "context/ingestBatch"),
    "assemble": ("context/assemble",),
    "bootstrap": ("context/bootstrap",),
    "turns": ("context/afterTurn", "context/commitTurn"),
    "compact": ("context/compact", "context/maintain", "context/preflight"),
    "explain": ("context/explain", "context/dispose"),
    "sessions": (
        *("session/list", "session/get", "session/export", "session/summaries"),
        *("session/configure", "session/truncate", "session/fork", "session/delete"),
        *("session/pin", "session/unpin", "session/pins"),
    ),
    "subagents": ("subagent/prepareSpawn", "subagent/rollbackSpawn", "subagent/ended"),
    "memory": ("memory/register", "memory/unregister", "memory/compile"),
    "tools": ("tools/list", "tools/call"),
    "engines": ("engine/list", "engine/doctor"),
}
"""Which module of `methods` serves which methods; each is imported when one of them is first asked for."""

_log = logging.getLogger(__name__)


class SidecarApplication:
    """What the lifecycle drives: `initialize` makes a sidecar, `close` releases it."""

    def __init__(
        self,
        router: Router,
        peer: Peer,
        *,
        config_file: Path | None = None,
        log: Mapping[str, str] | None = None,
    ) -> None:
        """`log` has what the command line says about the log."""
        self._router = router
        self._peer = peer
        self._config_file = config_file
        self._log = log or {}
        self._sidecar: Sidecar | None = None
        self._watch = RequestWatch()
        peer.on_fault = _fault
        peer.observer = self._watch

    async def initialize(self, params: InitializeParams) -> InitializeResult:
        """Settings are validated and the store is open before this answers.

        Raises:
            RpcError: -32602 for wrong params, 1001 for the engine, 1006 for the store.
        """
        given = params.initialization_options
        options = (given.context_engine if given else None) or ContextEngineOptions()
        version = options.protocol_version or LATEST
        if version not in SUPPORTED:
            raise InvalidParams(
                f"protocolVersion: {version[:50]!r} is not supported",
                path="/initializationOptions/contextEngine/protocolVersion",
                supported=list(SUPPORTED),
            )
        settings = self._settings(options)
        self._follow_log(settings)
        mistakes = tuple(misplaced(params))
        for mistake in mistakes:
            warn(self._peer, mistake)
        if (warning := complaint(os.environ)) is not None:
            _log.warning("%s", warning)
            mistakes = (*mistakes, warning)
        if settings.telemetry and self._watch.telemetry is None:
            self._watch.telemetry = _open_telemetry()
        for warning in settings.warnings:
            _log.warning("%s", warning)
        settings = structs.replace(settings, warnings=(*settings.warnings, *mistakes))
        host = _host(self._peer, settings, options, params.capabilities)
        store = await self._store(settings)
        try:
            sidecar = Sidecar(settings, store, host)
            instance = await sidecar.registry.take()
        except EngineUnavailable as error:
            await store.close()
            raise to_rpc_error(error) from None
        except BaseException:
            await store.close()
            raise
        self._sidecar = sidecar
        if settings.search_meaning != "off":
            cast("Submitting", store).watch = sidecar.committed
        _register_methods(self._router, sidecar)
        self._apply_limits(settings)
        asyncio.get_running_loop().call_later(SWEEP_AFTER_S, _sweep, sidecar)
        sidecar.engine_watch.telemetry = self._watch.telemetry
        if settings.shadow is not None:
            from sidecar.server.background.shadow import Shadow

            self._watch.shadow = sidecar.shadow = Shadow(sidecar, settings.shadow)
        if settings.retention.is_set:
            from sidecar.server.background.retention import Retention

            sidecar.retention = Retention(
                store,
                settings.retention,
                self._peer,
                in_use=sidecar.holds,
                forget=sidecar.forget_pruned,
            )
            sidecar.retention.begin()
        if "session/changed" in host.capabilities:
            from sidecar.server.background.change_watch import SessionWatch

            sidecar.watch = SessionWatch(store, host.namespace, self._peer)
            await sidecar.watch.begin()
        answer = _answer(version, sidecar, instance, self._router.methods)
        if _object(params.capabilities).get("textDocument") is None:
            return answer
        from sidecar.lsp.attach import Stored, attach_editor
        from sidecar.server.methods.explain import standings

        stored = Stored(
            cast("SearchableStore", store),
            host.namespace,
            settings.limits.default_token_budget,
            partial(standings, sidecar),
        )
        return attach_editor(self._router, self._peer, params, answer, stored)

    async def close(self) -> None:
        """Release engines and the store."""
        sidecar, self._sidecar, self._watch.shadow = self._sidecar, None, None
        telemetry, self._watch.telemetry = self._watch.telemetry, None
        if sidecar is not None:
            await sidecar.close()
        if telemetry is not None:
            await telemetry.close()

    def _settings(self, options: ContextEngineOptions) -> Settings:
        overrides = _object(options.config)
        try:
            return resolve(file=self._config_file, overrides=overrides, engine=options.engine)
        except ConfigurationError as error:
            if error.source == "config":
                pointer = "".join(f"/{step}" for step in error.path)
                raise InvalidParams(str(error), path=CONFIG_PATH + pointer) from None
            raise RpcError(
                codes.ENGINE_UNAVAILABLE,
                without_paths(str(error)),
                hint="mend the configuration file; `context-sidecar config validate` checks it",
            ) from None

    async def _store(self, settings: Settings) -> SessionStore:
        kind, url = settings.store.kind, settings.store.url
        if kind == "postgres" and url is None:
            raise RpcError(
                codes.STORE_UNAVAILABLE,
                "store.kind is postgres, but store.url is not set",
                hint="set store.url to postgresql://user:password@host:5432/database",
            )
        path = settings.store.path or settings.state_dir / "context.db"

        def extract(session: SessionRecord, body: bytes) -> Searchable:
            return searched(store, session, body)

        by_host = settings.store.url_by_host
        try:
            store = open_store(
                kind,
                path,
                url=url,
                extract=extract,
                url_by_host=by_host,
                parts=settings.search_substrings,
                connections=settings.store.connections,
                prepare=settings.store.prepare,
            )
            store.gather = self._peer.cork
            await store.open()
        except StoreError as error:
            raise to_rpc_error(error) from None
        return store

    def _follow_log(self, settings: Settings) -> None:
        asked = structs.replace(settings.log, **self._log)
        log_to_stderr(asked.level, asked.format)
        self._watch.follow(asked.slow_call_ms)

    def _apply_limits(self, settings: Settings) -> None:
        limits = self._peer.limits
        limits.max_message_bytes = settings.limits.max_message_bytes
        limits.max_in_flight = settings.limits.max_in_flight
        limits.max_parked_bytes = settings.limits.max_parked_bytes
        limits.request_timeout_ms = settings.limits.host_request_timeout_ms


def _register_methods(router: Router, sidecar: Sidecar) -> None:
    """Serve all methods of the protocol that work on a sidecar."""
    for module, methods in AREAS.items():
        router.later(methods, partial(_register, module, router, sidecar))


def _register(module: str, router: Router, sidecar: Sidecar) -> None:
    handlers = import_module(f"sidecar.server.methods.{module}")
    if sidecar.exempt is not None:
        from sidecar.server.sessions.exempt import ExemptAnswers

        router.answer_first(
            ExemptAnswers(sidecar.exempt, sidecar.intake, sidecar.host.capabilities).by_method()
        )
    handlers.register(router, sidecar)


def _answer(version: str, sidecar: Sidecar, instance: EngineInstance, methods: list[str]) -> InitializeResult:
    limits = sidecar.settings.limits
    return InitializeResult(
        capabilities=ServerCapabilities(
            experimental=ExperimentalCapabilities(
                context_engine=ContextEngineCapabilities(
                    protocol_version=version,
                    engine=instance.describe(),
                    methods=methods,
                    tools=offered(instance, sidecar.models),
                    message_formats=cast(Any, list(DIALECTS)),
                    limits=Limits(
                        max_message_bytes=limits.max_message_bytes,
                        max_in_flight=limits.max_in_flight,
                        max_parked_bytes=limits.max_parked_bytes,
                        host_request_timeout_ms=limits.host_request_timeout_ms,
                        default_token_budget=limits.default_token_budget,
                    ),
                )
            )
        ),
        server_info=PeerInfo(name="context-sidecar", version=__version__),
    )


def _host(peer: Peer, settings: Settings, options: ContextEngineOptions, capabilities: Raw) -> Host:
    window = _object(capabilities).get("window")
    progress = isinstance(window, dict) and bool(cast("dict[str, object]", window).get("workDoneProgress"))
    return Host(
        peer,
        namespace=options.namespace or (options.host.id if options.host else "default"),
        message_format=options.message_format,
        capabilities=frozenset(options.host_capabilities or ()),
        supports_progress=progress,
        timeout_ms=settings.limits.host_request_timeout_ms,
    )


def _object(raw: Raw) -> dict[str, Any]:
    given = bytes(raw)
    if given in (b"", b"null"):
        return {}
    value = json.decode(given)
    if not isinstance(value, dict):
        raise InvalidParams("config: expected an object", path=CONFIG_PATH)
    return cast("dict[str, Any]", value)


def searched(store: SessionStore, session: SessionRecord, body: bytes) -> Searchable:
    """What is searched of a message; the store itself knows nothing of messages."""
    from sidecar.messages.dialects import dialect, dialect_of_family
    from sidecar.messages.text import searchable

    if OPENING_BYTES in body:
        reader = dialect_of_family(session.message_format, store.secrets, session.root)
    else:
        reader = dialect(session.message_format)
    return Searchable(*searchable(reader, body))


def _open_telemetry() -> Telemetry | None:
    """Telemetry by the standard variables `OTEL_*`; `None`, with a line in the log, where it is not there."""
    try:
        from sidecar.server.background.telemetry import Telemetry
    except ImportError:
        from sidecar.origin import install_command

        _log.warning("telemetry.enabled needs the extra `otel`: %s", install_command("otel"))
        return None
    return Telemetry()


def _sweep(sidecar: Sidecar) -> None:
    if not sidecar.closed:
        sidecar.spawns.begin(0.0)
        sidecar.episodes.deliver()


def _fault(call: Call, error: Exception) -> RpcError | None:
    """What the peer is told; `None` leaves an internal error, which is logged with its traceback."""
    session_id = getattr(call.params, "session_id", None)
    told = to_rpc_error(error, session_id or "")
    return None if told.code == codes.INTERNAL_ERROR and not isinstance(error, RpcError) else told
