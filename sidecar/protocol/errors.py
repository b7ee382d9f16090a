"""The errors that a peer can receive: their numbers, names, data and advice.

Errors of JSON-RPC and the Language Server Protocol keep their numbers. This protocol's own start at 1001,
outside every range that those two reserve; a number is never reused.
"""

from typing import NamedTuple

from sidecar.protocol.base import AnyMessageFormat, EngineId, SessionId, Wire

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_NOT_INITIALIZED = -32002
REQUEST_CANCELLED = -32800
ENGINE_UNAVAILABLE = 1001
CONTEXT_OVERFLOW = 1002
SESSION_NOT_FOUND = 1003
HOST_CAPABILITY_MISSING = 1004
ENGINE_FAILED = 1005
STORE_UNAVAILABLE = 1006
BUSY = 1007


class ErrorData(Wire, frozen=True, kw_only=True):
    """What every error carries as `data`."""

    retryable: bool
    """True if the same request may succeed later unchanged."""
    hint: str
    """What the caller can do about it, in one sentence."""


class FrameErrorData(ErrorData, frozen=True, kw_only=True):
    """Data of ParseError and InvalidRequest."""

    limit: int | None = None
    """The bound that was exceeded, in bytes."""


class InvalidParamsData(ErrorData, frozen=True, kw_only=True):
    """Data of InvalidParams."""

    path: str | None = None
    """JSON Pointer into the params; empty for the params as a whole."""
    supported: list[str] | None = None
    """Values that would be accepted, such as protocol versions."""
    message_format: AnyMessageFormat | None = None
    """Dialect of the session, if the connection has another one."""


class EngineUnavailableData(ErrorData, frozen=True, kw_only=True):
    """Data of EngineUnavailable."""

    engine_id: EngineId | None = None
    """The engine that was selected."""
    missing_capabilities: list[str] | None = None
    """Host capabilities that the engine requires and the host did not declare."""


class ContextOverflowData(ErrorData, frozen=True, kw_only=True):
    """Data of ContextOverflow."""

    required: int
    """The smallest budget with which the same request succeeds, in tokens."""
    token_budget: int
    """The budget that was requested, in tokens."""


class SessionNotFoundData(ErrorData, frozen=True, kw_only=True):
    """Data of SessionNotFound."""

    session_id: SessionId | None = None
    """The session that was requested."""


class HostCapabilityMissingData(ErrorData, frozen=True, kw_only=True):
    """Data of HostCapabilityMissing."""

    capability: str
    """What the host must declare in `hostCapabilities`."""


class EngineFailedData(ErrorData, frozen=True, kw_only=True):
    """Data of EngineFailed."""

    engine_id: EngineId
    """The engine that failed."""
    method: str
    """The method that failed."""
    message: str
    """Its error message, without traceback and local paths."""


class BusyData(ErrorData, frozen=True, kw_only=True):
    """Data of Busy."""

    limit: int | None = None
    """The bound that was reached, in bytes."""


class ErrorEntry(NamedTuple):
    """One line of the error table."""

    code: int
    name: str
    when: str
    data: type[ErrorData]
    retryable: bool
    """Default of `data.retryable`."""
    hint: str
    """Default of `data.hint`."""


ERRORS = (
    ErrorEntry(
        PARSE_ERROR,
        "ParseError",
        "The body is not JSON text in UTF-8, is empty, or has another charset.",
        FrameErrorData,
        False,
        "Send one JSON-RPC 2.0 message as JSON text in UTF-8.",
    ),
    ErrorEntry(
        INVALID_REQUEST,
        "InvalidRequest",
        "The message is not a single JSON-RPC request, its length is unusable, its id is taken, "
        "or it comes at the wrong time.",
        FrameErrorData,
        False,
        "Send one request at a time as an object with jsonrpc, id, method and params.",
    ),
    ErrorEntry(
        METHOD_NOT_FOUND,
        "MethodNotFound",
        "The server has no method of this name.",
        ErrorData,
        False,
        "Use one of the methods that the initialize answer lists.",
    ),
    ErrorEntry(
        INVALID_PARAMS,
        "InvalidParams",
        "The params are not an object, or a member is missing, of the wrong type, or not acceptable.",
        InvalidParamsData,
        False,
        "Correct the member that data.path names.",
    ),
    ErrorEntry(
        INTERNAL_ERROR,
        "InternalError",
        "The server has a defect.",
        ErrorData,
        False,
        "Report it, with the log of the server.",
    ),
    ErrorEntry(
        SERVER_NOT_INITIALIZED,
        "ServerNotInitialized",
        "A request came before initialize has succeeded.",
        ErrorData,
        False,
        "Send initialize first.",
    ),
    ErrorEntry(
        REQUEST_CANCELLED,
        "RequestCancelled",
        "The request was cancelled and has had no effect.",
        ErrorData,
        True,
        "Send it again if you still need it.",
    ),
    ErrorEntry(
        ENGINE_UNAVAILABLE,
        "EngineUnavailable",
        "The selected engine cannot be found, is configured wrongly, or needs a capability of the host.",
        EngineUnavailableData,
        False,
        "Select another engine, or correct what the message names.",
    ),
    ErrorEntry(
        CONTEXT_OVERFLOW,
        "ContextOverflow",
        "Not even the smallest valid context fits the token budget.",
        ContextOverflowData,
        False,
        "Ask again with at least data.required tokens.",
    ),
    ErrorEntry(
        SESSION_NOT_FOUND,
        "SessionNotFound",
        "The session does not exist in this namespace, or belongs to another agent.",
        SessionNotFoundData,
        False,
        "Send the messages with the request, or bootstrap the session first.",
    ),
    ErrorEntry(
        HOST_CAPABILITY_MISSING,
        "HostCapabilityMissing",
        "The request needs a capability that the host does not declare.",
        HostCapabilityMissingData,
        False,
        "Declare data.capability at initialize, or use an engine that does not need it.",
    ),
    ErrorEntry(
        ENGINE_FAILED,
        "EngineFailed",
        "The engine raised an error or took too long.",
        EngineFailedData,
        False,
        "See the server's log; engine/doctor describes the engine's state.",
    ),
    ErrorEntry(
        STORE_UNAVAILABLE,
        "StoreUnavailable",
        "The store cannot be opened, read or written.",
        ErrorData,
        False,
        "Run engine/doctor; nothing in the store was removed.",
    ),
    ErrorEntry(
        BUSY,
        "Busy",
        "The server's queue of waiting requests is full.",
        BusyData,
        True,
        "Wait for outstanding answers, then resend the request.",
    ),
)
"""Every error of the protocol."""
