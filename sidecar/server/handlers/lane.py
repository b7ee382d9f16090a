"""The queue that a request belongs to: that of its session."""

from __future__ import annotations

from typing import Protocol


class OfSession(Protocol):
    """Params that name a session."""

    @property
    def session_id(self) -> str:
        """The host's key of the session."""
        ...


def session_lane(params: OfSession) -> str:
    """Requests of one session take effect in the order received."""
    return params.session_id
