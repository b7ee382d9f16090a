"""Types of the base methods that come from the Language Server Protocol."""

from typing import Literal

from sidecar.protocol.base import JsonValue, ProgressToken, Wire


class ShutdownParams(Wire, frozen=True, kw_only=True):
    """Params of `shutdown`: nothing."""


class ExitParams(Wire, frozen=True, kw_only=True):
    """Params of `exit`: nothing."""


class CancelRequestParams(Wire, frozen=True, kw_only=True):
    """Params of `$/cancelRequest`."""

    id: int | str
    """Id of the request that is no longer wanted."""


class ProgressParams(Wire, frozen=True, kw_only=True):
    """Params of `$/progress`."""

    token: ProgressToken
    """The token that was given for the work."""
    value: JsonValue
    """A WorkDoneProgressBegin, WorkDoneProgressReport or WorkDoneProgressEnd."""


class WorkDoneProgressBegin(Wire, frozen=True, kw_only=True, tag_field="kind", tag="begin"):
    """Progress value: work has begun."""

    title: str
    """What is being done, such as `Compacting`."""
    cancellable: bool | None = None
    """Whether cancelling the request stops the work."""
    message: str | None = None
    """Detail that may change as the work goes on."""
    percentage: int | None = None
    """Share that is done, 0 to 100; absent where it cannot be told."""


class WorkDoneProgressReport(Wire, frozen=True, kw_only=True, tag_field="kind", tag="report"):
    """Progress value: work goes on."""

    cancellable: bool | None = None
    """Whether cancelling the request stops the work."""
    message: str | None = None
    """Detail of the present step."""
    percentage: int | None = None
    """Share that is done, 0 to 100, never falling."""


class WorkDoneProgressEnd(Wire, frozen=True, kw_only=True, tag_field="kind", tag="end"):
    """Progress value: work has ended."""

    message: str | None = None
    """How it ended."""


class SetTraceParams(Wire, frozen=True, kw_only=True):
    """Params of `$/setTrace`."""

    value: str
    """`off`, `messages` or `verbose`."""


class LogMessageWindowParams(Wire, frozen=True, kw_only=True):
    """Params of `window/logMessage`."""

    type: Literal[1, 2, 3, 4, 5]
    """1 error, 2 warning, 3 info, 4 log, 5 debug."""
    message: str
    """The line to log."""


class CreateWindowWorkDoneProgressParams(Wire, frozen=True, kw_only=True):
    """Params of `window/workDoneProgress/create`."""

    token: ProgressToken
    """Token under which the server will report progress."""


class CancelWindowWorkDoneProgressParams(Wire, frozen=True, kw_only=True):
    """Params of `window/workDoneProgress/cancel`."""

    token: ProgressToken
    """Token of the work that the user wants stopped."""
