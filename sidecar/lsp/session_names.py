"""Names under which editors know stored sessions, whose messages they show one a line."""

from __future__ import annotations

from urllib.parse import quote, unquote

_PREFIX = "context-sidecar://session/"


def session_uri(session_id: str) -> str:
    """The name of a session."""
    return _PREFIX + quote(session_id, safe="")


def session_of(uri: str) -> str | None:
    """The id of the session that a document shows, `None` where it shows none."""
    return unquote(uri.removeprefix(_PREFIX).partition("#")[0]) if uri.startswith(_PREFIX) else None
