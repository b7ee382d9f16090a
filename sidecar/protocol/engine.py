"""Types of the `engine/*` methods."""

from sidecar.protocol.base import EngineInfo, ProgressToken, Wire


class ListEngineParams(Wire, frozen=True, kw_only=True):
    """Params of `engine/list`: nothing."""


class EngineListing(EngineInfo, frozen=True, kw_only=True):
    """An engine that the server knows, usable or not."""

    active: bool
    """True for the engine that serves this connection."""
    available: bool
    """True where the engine could be selected now."""
    reason: str | None = None
    """Why it is not available, and what to fix."""


class ListEngineResult(Wire, frozen=True, kw_only=True):
    """Result of `engine/list`."""

    engines: list[EngineListing]
    """Every engine that is installed or configured."""


class DoctorEngineParams(Wire, frozen=True, kw_only=True):
    """Params of `engine/doctor`."""

    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress."""


class DoctorCheck(Wire, frozen=True, kw_only=True):
    """One thing that was looked at."""

    name: str
    """Short stable name, such as `store`."""
    ok: bool
    """True where nothing has to be done."""
    message: str
    """What was found."""
    fix: str | None = None
    """What to do about it."""


class DoctorEngineResult(Wire, frozen=True, kw_only=True):
    """Result of `engine/doctor`."""

    ok: bool
    """True where every check is."""
    checks: list[DoctorCheck]
    """What was looked at, in a stable order."""
