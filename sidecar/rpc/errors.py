"""Errors that travel in JSON-RPC answers.

- RpcError
  - ParseError (-32700)
  - InvalidRequest (-32600)
  - MethodNotFound (-32601)
  - InvalidParams (-32602)
  - InternalError (-32603)
  - ServerNotInitialized (-32002)
  - RequestCancelled (-32800)
  - Busy (1007)
  - RemoteError: the peer answered our request with an error
  - RequestTimedOut: the peer did not answer in time
  - InvalidResult: the peer's result has the wrong type
  - ConnectionLost: the peer is gone
"""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_NOT_INITIALIZED = -32002
REQUEST_CANCELLED = -32800
BUSY = 1007

_DEFAULT_HINT = "see the server's log on stderr"


class ErrorBody(msgspec.Struct, omit_defaults=True):
    """The `error` member of an answer."""

    code: int
    message: str
    data: Mapping[str, object] | None = None


class RpcError(Exception):
    """Raised when a request fails; the peer receives `code`, `message` and `data`.

    `data` always has `retryable` and `hint`; they default to those of the class.
    """

    retryable: ClassVar[bool] = False
    hint: ClassVar[str] = _DEFAULT_HINT

    def __init__(
        self,
        code: int,
        message: str,
        data: Mapping[str, object] | None = None,
        *,
        retryable: bool | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data: dict[str, object] = {"retryable": self.retryable, "hint": self.hint}
        if data:
            self.data.update(data)
        if retryable is not None:
            self.data["retryable"] = retryable
        if hint is not None:
            self.data["hint"] = hint

    def body(self) -> ErrorBody:
        """The error as sent on the wire."""
        return ErrorBody(self.code, self.message, self.data)


class ParseError(RpcError):
    """Raised when a body is not JSON text in UTF-8."""

    hint = "send one JSON-RPC message as JSON text in UTF-8"

    def __init__(self, message: str, **members: object) -> None:
        super().__init__(PARSE_ERROR, message, members)


class InvalidRequest(RpcError):
    """Raised when a body is JSON but not a JSON-RPC 2.0 message, or arrives at the wrong time."""

    hint = "send a JSON-RPC 2.0 object with `jsonrpc`, `method` and, for a request, a string or integer `id`"

    def __init__(self, message: str, **members: object) -> None:
        super().__init__(INVALID_REQUEST, message, members)


class MethodNotFound(RpcError):
    """Raised when a request names an unknown method."""

    hint = "check the spelling; the answer to initialize lists the methods"

    def __init__(self, method: str, **members: object) -> None:
        shown = method if len(method) <= 200 else method[:200] + "..."
        super().__init__(METHOD_NOT_FOUND, f"unknown request method {shown!r}", members)


class InvalidParams(RpcError):
    """Raised when params are invalid; `data.path` is a JSON Pointer into params."""

    hint = "correct the params and send the request again"

    def __init__(self, message: str, *, path: str = "", **members: object) -> None:
        super().__init__(INVALID_PARAMS, message, {"path": path, **members})


class InternalError(RpcError):
    """Raised when this side fails; only its log has the details."""

    def __init__(self, message: str = "internal error", **members: object) -> None:
        super().__init__(INTERNAL_ERROR, message, members)


class ServerNotInitialized(RpcError):
    """Raised when a request arrives before a successful `initialize`."""

    hint = "send initialize first and wait for its result"

    def __init__(self) -> None:
        super().__init__(SERVER_NOT_INITIALIZED, "the server is not initialized")


class RequestCancelled(RpcError):
    """Raised when a request was cancelled and had no effect."""

    retryable = True
    hint = "the request had no effect; send it again if it is still wanted"

    def __init__(self, message: str = "the request was cancelled") -> None:
        super().__init__(REQUEST_CANCELLED, message)


class Busy(RpcError):
    """Raised when too many requests are already waiting."""

    retryable = True
    hint = "wait for answers before sending more"

    def __init__(self, message: str, **members: object) -> None:
        super().__init__(BUSY, message, members)


class RemoteError(RpcError):
    """Raised when the peer answered a request with an error."""


class RequestTimedOut(RpcError):
    """Raised when the peer did not answer in time; the request was cancelled."""

    retryable = True
    hint = "the other side did not answer in time"

    def __init__(self, method: str, timeout_ms: float) -> None:
        super().__init__(INTERNAL_ERROR, f"no answer to {method} within {timeout_ms:g} ms")


class InvalidResult(RpcError):
    """Raised when the peer's result has the wrong type."""

    hint = "the other side's answer does not match the protocol"

    def __init__(self, method: str, reason: str) -> None:
        super().__init__(INTERNAL_ERROR, f"invalid result of {method}: {reason}")


class ConnectionLost(RpcError):
    """Raised when the peer is gone and no answer can come."""

    hint = "the connection is closed; start it again"

    def __init__(self, message: str = "the connection is closed") -> None:
        super().__init__(INTERNAL_ERROR, message)
