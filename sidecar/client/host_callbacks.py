"""What a host does when the sidecar asks it or tells it something."""

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
    """What a host may answer or hear; a request that is answered here is declared at the handshake."""

    on_complete: Callable[[CompleteRuntimeParams], Awaitable[CompleteRuntimeResult | str]]
    """Answers `runtime/complete`: the text of a model."""
    on_compact: Callable[[CompactRuntimeParams], Awaitable[CompactRuntimeResult]]
    """Answers `runtime/compact`: the host's own compaction."""
    on_rewrite_transcript: Callable[
        [RewriteTranscriptRuntimeParams], Awaitable[RewriteTranscriptRuntimeResult]
    ]
    """Answers `runtime/rewriteTranscript`."""
    on_memory_context: Callable[
        [GetContextMemoryParams], Awaitable[GetContextMemoryResult | list[MemoryFragment]]
    ]
    """Answers `memory/getContext` for the sources that were registered."""
    on_session_changed: Callable[[ChangedSessionParams], None]
    """Hears `session/changed`."""
    on_tools_changed: Callable[[ListChangedToolsParams], None]
    """Hears `tools/listChanged`."""
    on_context_injected: Callable[[ContextInjectedMemoryParams], None]
    """Hears `memory/contextInjected`."""
    on_progress: Callable[[ProgressParams], None]
    """Hears `$/progress`."""
    on_log_message: Callable[[LogMessageWindowParams], None]
    """Hears `window/logMessage`."""
    on_stderr: Callable[[str], None]
    """Takes each line of the sidecar's standard error; by default it is logged."""


def declared(callbacks: HostCallbacks) -> list[str]:
    """The `hostCapabilities` that the callbacks amount to."""
    requests = {
        "runtime/complete": "on_complete",
        "runtime/compact": "on_compact",
        "runtime/rewriteTranscript": "on_rewrite_transcript",
        "memory/getContext": "on_memory_context",
    }
    return [method for method, name in requests.items() if name in callbacks]


def take_stderr(callbacks: HostCallbacks) -> Callable[[str], None]:
    """What gets the lines of standard error."""
    return callbacks.get("on_stderr") or (lambda line: _stderr_log.warning("%s", line))


def serve_callbacks(router: Router, callbacks: HostCallbacks) -> None:
    """Register the callbacks with the router of a connection."""
    if (complete := callbacks.get("on_complete")) is not None:

        async def completed(params: CompleteRuntimeParams) -> CompleteRuntimeResult:
            said = await complete(params)
            return CompleteRuntimeResult(text=said) if isinstance(said, str) else said

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
    """What the sidecar is told when a callback raises: it falls back, and may show the reason."""
    _log.warning("the callback for %s failed", call.method, exc_info=problem)
    return RpcError(
        INTERNAL_ERROR, f"{type(problem).__name__}: {problem}", hint="the callback of the host raised this"
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
