"""Types of the `subagent/*` methods."""

from typing import Literal

from sidecar.protocol.base import Id, Name, PositiveInt, ProgressToken, SessionId, Wire


class PrepareSpawnSubagentParams(Wire, frozen=True, kw_only=True):
    """Params of `subagent/prepareSpawn`."""

    parent_session_key: Name
    """Key of the session that spawns."""
    child_session_key: Name
    """Key of the session that is about to begin."""
    context_mode: Literal["isolated", "fork"]
    """`fork` starts the child from a snapshot of the parent, `isolated` starts it empty."""
    parent_session_id: SessionId | None = None
    """Id of the parent's session, where the host knows it."""
    child_session_id: SessionId | None = None
    """Id of the child's session, where the host knows it."""
    parent_session_file: str | None = None
    """The host's locator of the parent's transcript; never opened."""
    child_session_file: str | None = None
    """The host's locator of the child's transcript; never opened."""
    ttl_ms: PositiveInt | None = None
    """The preparation is swept after so many milliseconds."""
    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress."""


class PrepareSpawnSubagentResult(Wire, frozen=True, kw_only=True):
    """Result of `subagent/prepareSpawn`."""

    preparation_id: str | None = None
    """What to roll back by; absent where nothing was prepared."""


class RollbackSpawnSubagentParams(Wire, frozen=True, kw_only=True):
    """Params of `subagent/rollbackSpawn`."""

    preparation_id: Id
    """The preparation to take back."""
    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress."""


class RollbackSpawnSubagentResult(Wire, frozen=True, kw_only=True):
    """Result of `subagent/rollbackSpawn`."""

    rolled_back: bool
    """False where the preparation is unknown, or the child has stored something already."""


class EndedSubagentParams(Wire, frozen=True, kw_only=True):
    """Params of `subagent/ended`."""

    child_session_key: Name
    """Key of the session that has ended."""
    reason: Literal["deleted", "completed", "swept", "released"]
    """`deleted` erases the child's data; the other reasons keep it."""
    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress."""


class EndedSubagentResult(Wire, frozen=True, kw_only=True):
    """Result of `subagent/ended`: nothing."""
