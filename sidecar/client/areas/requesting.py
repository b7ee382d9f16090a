"""What the methods of every area have in common."""

from __future__ import annotations

from typing import TypedDict, TypeVar

from sidecar.protocol.base import ProgressToken

T = TypeVar("T")


class AboutSession(TypedDict, total=False):
    """What may be said about a session beside its id."""

    session_key: str
    """Alias of the session."""
    agent_id: str
    """Owner of the session."""
    work_done_token: ProgressToken
    """Token under which progress is reported."""


class Requesting:
    """Sends requests; the client is one."""

    async def request(
        self, method: str, params: object, result_type: type[T], *, timeout_s: float | None = None
    ) -> T:
        """The result of any request; `timeout_s` is in seconds, the client's own by default, 0 means none."""
        raise NotImplementedError
