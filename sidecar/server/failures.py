"""Turns what layers below raise into errors of the protocol."""

from __future__ import annotations

import re

from sidecar.engine.calls import Overflow
from sidecar.engine.host import HostCapabilityMissing
from sidecar.messages.contract import MessageError
from sidecar.protocol import errors as codes
from sidecar.rpc.errors import InternalError, InvalidParams, RequestCancelled, RpcError
from sidecar.store.errors import (
    FormatMismatch,
    MessageMissing,
    SessionExists,
    SessionMissing,
    SessionTaken,
    StoreUnavailable,
    WriteWithdrawn,
    files_used_up,
)

_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.@+~-]+){2,}")

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


class SettingsWrong(EngineUnavailable):
    """Raised where an engine refuses its settings; the text names the setting."""


class EngineFailed(RpcError):
    """Raised when an engine raised, answered nonsense, or took too long (error 1005)."""

    hint = "look at the sidecar's log, or select another engine"

    unforeseen = False
    """True where the engine raised what it should not, so that the traceback is worth a look."""
    quarantined = False
    """True where the engine was not asked at all."""

    def __init__(self, engine_id: str, method: str, message: str, *, retryable: bool | None = None) -> None:
        message = without_paths(message)
        super().__init__(
            codes.ENGINE_FAILED,
            f"engine {engine_id} failed in {method}: {message}",
            {"engineId": engine_id, "method": method, "message": message},
            retryable=retryable,
        )


class SessionNotFound(RpcError):
    """Raised when a session is unknown, or another agent's (error 1003)."""

    hint = "ingest or bootstrap the session first, with the agentId that owns it"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            codes.SESSION_NOT_FOUND, f"there is no session {session_id[:200]!r}", {"sessionId": session_id}
        )


class SessionIdTaken(RpcError):
    """Raised when a session would be made under an id that another agent's session has (error 1003)."""

    hint = "choose another id, or name the agentId that the session belongs to"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            codes.SESSION_NOT_FOUND, f"the id {session_id[:200]!r} is taken", {"sessionId": session_id}
        )


class ContextOverflow(RpcError):
    """Raised when the minimum does not fit the budget (error 1002)."""

    hint = "send the same request with a tokenBudget of at least `required`"

    def __init__(self, required: int, token_budget: int) -> None:
        super().__init__(
            codes.CONTEXT_OVERFLOW,
            f"the smallest possible answer needs {required} tokens, the budget is {token_budget}",
            {"required": required, "tokenBudget": token_budget},
        )


def to_rpc_error(error: BaseException, session_id: str = "") -> RpcError:
    """The error that the peer is told for what a layer below raised."""
    if not isinstance(error, RpcError) and (used_up := files_used_up(error)):
        # Nothing may be imported here any more.
        return RpcError(codes.STORE_UNAVAILABLE, str(used_up), retryable=used_up.retryable, hint=used_up.hint)
    match error:
        case RpcError():
            return error
        case SessionTaken(session_id=taken):
            return SessionIdTaken(taken)
        case SessionMissing():
            return SessionNotFound(session_id)
        case FormatMismatch(message_format=message_format):
            return InvalidParams(
                f"the session holds {message_format} messages, this connection speaks another format",
                path="/sessionId",
                messageFormat=message_format,
                hint=f"open a connection with messageFormat {message_format!r}",
            )
        case MessageMissing():
            return InvalidParams(f"{error}", hint="use an id that session/export lists")
        case SessionExists():
            return InvalidParams(f"{error}", path="/newSessionId", hint="choose an id that is not taken")
        case StoreUnavailable(hint=hint, retryable=retryable):
            return RpcError(
                codes.STORE_UNAVAILABLE,
                f"the store is not available: {without_paths(str(error))}",
                retryable=retryable,
                hint=without_paths(hint) or "run `context-sidecar doctor`",
            )
        case WriteWithdrawn():
            return RequestCancelled()
        case HostCapabilityMissing(capability=capability):
            return RpcError(
                codes.HOST_CAPABILITY_MISSING,
                f"this needs a host that answers {capability}",
                {"capability": capability},
                hint=f"declare {capability} in hostCapabilities, or select an engine that compacts itself",
            )
        case EngineUnavailable(engine_id=engine_id, missing=missing, fix=fix):
            data: dict[str, object] = {"engineId": engine_id}
            if missing:
                data["missingCapabilities"] = list(missing)
            return RpcError(
                codes.ENGINE_UNAVAILABLE,
                without_paths(str(error)),
                data,
                hint=fix,
            )
        case MessageError(reason=reason, pointer=pointer):
            return InvalidParams(f"message: {reason}", path=f"/message{pointer}")
        case _:
            return InternalError()


def overflow(error: Overflow, reserved: int, token_budget: int) -> ContextOverflow:
    """The overflow in terms of the request: what the prompt needs is part of what is required."""
    return ContextOverflow(error.required + reserved, token_budget)


def without_paths(text: str) -> str:
    """The text with local paths cut down to their last part, and without secrets."""
    from sidecar.secrecy import masked_text

    return _PATH.sub(lambda match: re.split(r"[\\/]", match[0])[-1], masked_text(text))
