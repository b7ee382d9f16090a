"""What an engine's process tells the sidecar when its engine has raised, and what the sidecar makes of it."""

from __future__ import annotations

import logging

from sidecar.engine.host import HostCapabilityMissing
from sidecar.engine.overflow import Overflow
from sidecar.protocol import errors as codes
from sidecar.rpc.errors import RemoteError, RpcError
from sidecar.server.answer_checks import NonsenseAnswer
from sidecar.server.contained import described
from sidecar.server.failures import without_paths

_log = logging.getLogger(__name__)


def told(error: BaseException) -> RpcError:
    """The error that travels for what an engine raised."""
    match error:
        case HostCapabilityMissing(capability=capability):
            return RpcError(codes.HOST_CAPABILITY_MISSING, str(error), {"capability": capability})
        case Overflow(required=required):
            return RpcError(codes.CONTEXT_OVERFLOW, str(error), {"required": required})
        case RemoteError(code=codes.ENGINE_FAILED | codes.INTERNAL_ERROR):
            return RpcError(codes.ENGINE_FAILED, error.message)
        case RemoteError():
            # The sidecar itself has refused something: what it said goes back as it came.
            return error
        case NonsenseAnswer():
            return RpcError(codes.ENGINE_FAILED, str(error))
        case _:
            _log.error("the engine failed", exc_info=error)
            return RpcError(codes.ENGINE_FAILED, without_paths(described(error)))


def understood(error: RemoteError) -> BaseException | None:
    """The exception that an error of the process stands for, `None` where the engine has failed."""
    match error.code:
        case codes.HOST_CAPABILITY_MISSING:
            return HostCapabilityMissing(str(error.data.get("capability", "")))
        case codes.CONTEXT_OVERFLOW if isinstance(required := error.data.get("required"), int):
            return Overflow(required)
        case codes.STORE_UNAVAILABLE | codes.SESSION_NOT_FOUND:
            return RpcError(error.code, error.message, error.data)
        case _:
            return None
