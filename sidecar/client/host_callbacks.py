"""Callbacks for requests and notifications of the sidecar."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypedDict, TypeVar

from msgspec import Struct

from sidecar.protocol.engine import ListChangedToolsParams
from sidecar.protocol.lifecycle import (
    CreateWindowWorkDoneProgressParams,
    LogMessageWindowParams,
    ProgressParams,
)
from sidecar.protocol.memory import (
    ContextInjectedMemoryParams,
    GetContextMemoryParams,
    GetContextMemoryResult,
    MemoryFragment,
)
from sidecar.protocol.runtime import (
    CompactRuntimeParams,
    CompactRuntimeResult,
    CompleteRuntimeParams,
    CompleteRuntimeResult,
    RewriteTranscriptRuntimeParams,
    RewriteTranscriptRuntimeResult,
)
from sidecar.protocol.session import ChangedSessionParams
from sidecar.rpc.errors import INTERNAL_ERROR, RpcError
from sidecar.rpc.router import Call, Router

P = TypeVar("P", bound=Struct)

_log = logging.getLogger(__name__)
_stderr_log = logging.getLogger("sidecar.stderr")


class HostCallbacks(TypedDict, total=False):
    """Callbacks of a host; those that answer a request declare its capability at the handshake."""

    on_complete: Callable[[CompleteRuntimeParams], Awaitable[CompleteRuntimeResult | str]]
    """Answers `runtime/complete` with the text of a model."""
    on_compact: Callable[[CompactRuntimeParams], Awaitable[CompactRuntimeResult]]
    """Answers `runtime/compact` with the host's own compaction."""
    on_rewrite_transcript: Callable[
        [RewriteTranscriptRuntimeParams], Awaitable[RewriteTranscriptRuntimeResult]
    ]
    """Answers `runtime/rewriteTranscript`."""
    on_memory_context: Callable[
        [GetContextMemoryParams], Awaitable[GetContextMemoryResult | list[MemoryFragment]]
    ]
    """Answers `memory/getContext` for the registered sources."""
    on_session_changed: Callable[[ChangedSessionParams], None]
    """Receives `session/changed`."""
    on_tools_changed: Callable[[ListChangedToolsParams], None]
    """Receives `tools/listChanged`."""
    on_context_injected: Callable[[ContextInjectedMemoryParams], None]
    """Receives `memory/contextInjected`."""
    on_progress: Callable[[ProgressParams], None]
    """Receives `$/progress`."""
    on_log_message: Callable[[LogMessageWindowParams], None]
    """Receives `window/logMessage`."""
    on_stderr: Callable[[str], None]
    """Receives each line of the sidecar's standard error; by default it is logged."""


def declared(callbacks: HostCallbacks) -> list[str]:
    """The `hostCapabilities` that the callbacks provide."""
    requests = {
        "runtime/complete": "on_complete",
        "runtime/compact": "on_compact",
        "runtime/rewriteTranscript": "on_rewrite_transcript",
        "memory/getContext": "on_memory_context",
    }
    return [method for method, name in requests.items() if name in callbacks]


def take_stderr(callbacks: HostCallbacks) -> Callable[[str], None]:
    """The callback for lines of standard error; by default it logs them."""
    return callbacks.get("on_stderr") or (lambda line: _stderr_log.warning("%s", line))


def serve_callbacks(router: Router, callbacks: HostCallbacks) -> None:
    """Register the callbacks with the router of a connection."""
    if (complete := callbacks.get("on_complete")) is not None:

        async def completed(params: CompleteRuntimeParams) -> CompleteRuntimeResult:
            answer = await complete(params)
            return CompleteRuntimeResult(text=answer) if isinstance(answer, str) else answer

        _answer(router, "runtime/complete", CompleteRuntimeParams, completed)
    if (compact := callbacks.get("on_compact")) is not None:
        _answer(router, "runtime/compact", CompactRuntimeParams, compact)
    if (rewrite := callbacks.get("on_rewrite_transcript")) is not None:
        _answer(router, "runtime/rewriteTranscript", RewriteTranscriptRuntimeParams, rewrite)
    if (remember := callbacks.get("on_memory_context")) is not None:

        async def remembered(params: GetContextMemoryParams) -> GetContextMemoryResult:
            found = await remember(params)
            return GetContextMemoryResult(fragments=found) if isinstance(found, list) else found

        _answer(router, "memory/getContext", GetContextMemoryParams, remembered)
    router.request("window/workDoneProgress/create", CreateWindowWorkDoneProgressParams, _agree)
    _hear(router, "session/changed", ChangedSessionParams, callbacks.get("on_session_changed"))
    _hear(router, "tools/listChanged", ListChangedToolsParams, callbacks.get("on_tools_changed"))
    _hear(router, "memory/contextInjected", ContextInjectedMemoryParams, callbacks.get("on_context_injected"))
    _hear(router, "$/progress", ProgressParams, callbacks.get("on_progress"))
    _hear(router, "window/logMessage", LogMessageWindowParams, callbacks.get("on_log_message"))


def callback_fault(call: Call, problem: Exception) -> RpcError:
    """The error that the sidecar gets when a callback raises; it falls back, and may show the reason."""
    _log.warning("the callback for %s failed", call.method, exc_info=problem)
    return RpcError(
        INTERNAL_ERROR, f"{type(problem).__name__}: {problem}", hint="a callback of the host raised this"
    )


def _answer(
    router: Router, method: str, params_type: type[P], callback: Callable[[P], Awaitable[Struct]]
) -> None:
    async def run(params: P) -> Struct:
        return await callback(params)

    def handle(params: P, call: Call) -> Coroutine[object, object, Struct]:
        del call
        return run(params)

    router.request(method, params_type, handle)


def _hear(router: Router, method: str, params_type: type[P], callback: Callable[[P], None] | None) -> None:
    if callback is not None:
        router.notification(method, params_type, callback)


def _agree(params: CreateWindowWorkDoneProgressParams, call: Call) -> None:
    del params, call
