"""Exceptions of the client.

- SidecarError
  - RequestFailed: the sidecar answered with an error; one subclass for each error of the protocol
    - ParseError (-32700), InvalidRequest (-32600), MethodNotFound (-32601), InvalidParams (-32602)
    - InternalError (-32603), ServerNotInitialized (-32002), RequestCancelled (-32800)
    - EngineUnavailable (1001), ContextOverflow (1002), SessionNotFound (1003)
    - HostCapabilityMissing (1004), EngineFailed (1005), StoreUnavailable (1006), Busy (1007)
  - RequestTimedOut: no answer arrived in time; the request was cancelled
  - UnexpectedAnswer: the answer violates the protocol
  - SidecarUnavailable: no sidecar is connected
    - SidecarNotStarted: the program could not be started
    - SidecarExited: the process has ended
    - ClientClosed: the client was closed, or never opened
"""

from __future__ import annotations

from typing import Generic, TypeVar, cast

import msgspec

from sidecar.protocol import errors as wire
from sidecar.rpc.errors import RemoteError

D = TypeVar("D", bound=wire.ErrorData)


class SidecarError(Exception):
    """Base class of the client's exceptions."""


class RequestFailed(SidecarError):
    """Raised when the sidecar answered a request with an error."""

    def __init__(self, code: int, message: str, data: wire.ErrorData) -> None:
        super().__init__(message)
        self.code = code
        """The error code of the protocol."""
        self.message = message
        """What happened, and which input caused it."""
        self._data = data

    @property
    def data(self) -> wire.ErrorData:
        """The error data; subclasses have members of their own."""
        return self._data

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later without a change."""
        return self.data.retryable

    @property
    def hint(self) -> str:
        """What to do about the error, in one sentence."""
        return self.data.hint


class _Detailed(RequestFailed, Generic[D]):
    """An error with its own data type."""

    @property
    def data(self) -> D:
        """The data of this kind of error."""
        return cast("D", self._data)


class ParseError(_Detailed[wire.FrameErrorData]):
    """Raised when the sidecar could not read a message as JSON."""


class InvalidRequest(_Detailed[wire.FrameErrorData]):
    """Raised when a request arrived at the wrong time or in an invalid envelope."""


class MethodNotFound(RequestFailed):
    """Raised when the sidecar has no such method."""


class InvalidParams(_Detailed[wire.InvalidParamsData]):
    """Raised when params are invalid; `path` is a JSON Pointer to the invalid member."""

    @property
    def path(self) -> str:
        """JSON Pointer into the params; empty for the params as a whole."""
        return self.data.path or ""


class InternalError(RequestFailed):
    """Raised when the sidecar has a defect; its log says more."""


class ServerNotInitialized(RequestFailed):
    """Raised when a request arrived before the handshake."""


class RequestCancelled(RequestFailed):
    """Raised when the sidecar dropped the request without effect."""


class EngineUnavailable(_Detailed[wire.EngineUnavailableData]):
    """Raised when the selected engine cannot serve; the message says what to fix."""


class ContextOverflow(_Detailed[wire.ContextOverflowData]):
    """Raised when not even the smallest valid context fits the budget."""

    @property
    def required(self) -> int:
        """The smallest budget with which the same request succeeds, in tokens."""
        return self.data.required

    @property
    def token_budget(self) -> int:
        """The requested budget, in tokens."""
        return self.data.token_budget


class SessionNotFound(_Detailed[wire.SessionNotFoundData]):
    """Raised when the session does not exist in this namespace, or belongs to another agent."""

    @property
    def session_id(self) -> str | None:
        """The requested session."""
        return self.data.session_id


class HostCapabilityMissing(_Detailed[wire.HostCapabilityMissingData]):
    """Raised when the request needs a capability that this host does not declare."""

    @property
    def capability(self) -> str:
        """The missing host capability."""
        return self.data.capability


class EngineFailed(_Detailed[wire.EngineFailedData]):
    """Raised when the engine raised an error or took too long."""

    @property
    def engine_id(self) -> str:
        """The engine that failed."""
        return self.data.engine_id


class StoreUnavailable(RequestFailed):
    """Raised when the store cannot be opened, read or written."""


class Busy(_Detailed[wire.BusyData]):
    """Raised when the sidecar cannot hold more waiting requests."""


class RequestTimedOut(SidecarError, TimeoutError):
    """Raised when no answer arrived in time; the client has cancelled the request."""

    def __init__(self, method: str, timeout_s: float) -> None:
        super().__init__(f"no answer to {method} within {timeout_s:g} s")
        self.method = method
        self.timeout_s = timeout_s
        """The time limit, in seconds."""


class UnexpectedAnswer(SidecarError):
    """Raised when an answer of the sidecar violates the protocol."""


class SidecarUnavailable(SidecarError):
    """Raised when no sidecar is connected."""


class SidecarNotStarted(SidecarUnavailable):
    """Raised when the sidecar program could not be started."""


class SidecarExited(SidecarUnavailable):
    """Raised when the sidecar process has ended or has closed its output."""

    def __init__(self, exit_code: int | None, stderr: list[str]) -> None:
        how = "has closed its output" if exit_code is None else _ending(exit_code)
        last = f": {stderr[-1]}" if stderr else ""
        super().__init__(f"the sidecar {how}{last}")
        self.exit_code = exit_code
        """The exit code; negative for a signal, `None` if the process still runs."""
        self.stderr = stderr
        """The last lines of its standard error."""


class ClientClosed(SidecarUnavailable):
    """Raised when a client is used before it was opened or after it was closed."""


_FAILURES: dict[str, type[RequestFailed]] = {
    kind.__name__: kind
    for kind in (
        ParseError,
        InvalidRequest,
        MethodNotFound,
        InvalidParams,
        InternalError,
        ServerNotInitialized,
        RequestCancelled,
        EngineUnavailable,
        ContextOverflow,
        SessionNotFound,
        HostCapabilityMissing,
        EngineFailed,
        StoreUnavailable,
        Busy,
    )
}
_ENTRIES = {entry.code: entry for entry in wire.ERRORS}


def request_failure(error: RemoteError) -> RequestFailed:
    """The exception for an error answer; a plain `RequestFailed` for an unknown code or invalid data."""
    entry = _ENTRIES.get(error.code)
    if entry is not None:
        try:
            data = msgspec.convert(error.data, entry.data)
        except msgspec.ValidationError:
            pass
        else:
            return _FAILURES[entry.name](error.code, error.message, data)
    plain = wire.ErrorData(
        retryable=error.data.get("retryable") is True, hint=str(error.data.get("hint") or "")
    )
    return RequestFailed(error.code, error.message, plain)


def _ending(exit_code: int) -> str:
    return f"was killed by signal {-exit_code}" if exit_code < 0 else f"has ended with exit code {exit_code}"
