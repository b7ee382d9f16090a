"""Names under which editors know stored sessions and what models see of them, a message a line."""

from __future__ import annotations

from urllib.parse import quote, unquote

_SESSION = "context-sidecar://session/"
_CONTEXT = "context-sidecar://context/"


def session_uri(session_id: str) -> str:
    """The name of a session."""
    return _SESSION + quote(session_id, safe="")


def session_of(uri: str) -> str | None:
    """The id of the session whose messages a document shows, `None` where it shows none."""
    return _named(uri, _SESSION)


def session_behind(uri: str) -> str | None:
    """The id of the session whose messages, or whose context, a document shows."""
    return _named(uri, _SESSION) or _named(uri, _CONTEXT)


def _named(uri: str, prefix: str) -> str | None:
    return unquote(uri.removeprefix(prefix).partition("#")[0]) if uri.startswith(prefix) else None
