"""An asyncio client: starts a sidecar process and speaks with it."""

from sidecar.client.answers import AssembledContext, ExportedPage, IngestedMessage, StoredMessage
from sidecar.client.deltas import apply_edits
from sidecar.client.errors import (
    Busy,
    ClientClosed,
    ContextOverflow,
    EngineFailed,
    EngineUnavailable,
    HostCapabilityMissing,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ParseError,
    RequestCancelled,
    RequestFailed,
    RequestTimedOut,
    ServerNotInitialized,
    SessionNotFound,
    SidecarError,
    SidecarExited,
    SidecarNotStarted,
    SidecarUnavailable,
    StoreUnavailable,
    UnexpectedAnswer,
)
from sidecar.client.host_callbacks import HostCallbacks
from sidecar.client.message_bytes import Message, decode_message, encode_message
from sidecar.client.sidecar_client import SidecarClient
from sidecar.messages.terse_tags import TerseStripper

__all__ = [
    "AssembledContext",
    "Busy",
    "ClientClosed",
    "ContextOverflow",
    "EngineFailed",
    "EngineUnavailable",
    "ExportedPage",
    "HostCallbacks",
    "HostCapabilityMissing",
    "IngestedMessage",
    "InternalError",
    "InvalidParams",
    "InvalidRequest",
    "Message",
    "MethodNotFound",
    "ParseError",
    "RequestCancelled",
    "RequestFailed",
    "RequestTimedOut",
    "ServerNotInitialized",
    "SessionNotFound",
    "SidecarClient",
    "SidecarError",
    "SidecarExited",
    "SidecarNotStarted",
    "SidecarUnavailable",
    "StoreUnavailable",
    "StoredMessage",
    "TerseStripper",
    "UnexpectedAnswer",
    "apply_edits",
    "decode_message",
    "encode_message",
]
