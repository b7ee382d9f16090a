"""Times as models write and read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sidecar.tools.contract import ArgumentError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def read_time(text: str | None, name: str) -> int | None:
    """Milliseconds since 1970 of `2024-01-15T10:30:00Z` or `2024-01-15`, which is that day's start in UTC.

    Raises:
        ArgumentError: the text has another form.
    """
    if text is None:
        return None
    try:
        instant = datetime.fromisoformat(text.strip())
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=UTC)
        return (instant - _EPOCH) // _MS
    except (ValueError, OverflowError):
        raise ArgumentError("must be a time such as 2024-01-15T10:30:00Z", name) from None


def show_time(ms: int) -> str:
    """The instant in UTC, to the second."""
    try:
        return (_EPOCH + timedelta(milliseconds=ms)).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        return "unknown"
