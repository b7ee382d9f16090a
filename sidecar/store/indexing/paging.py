"""Where a search goes on: cursors that stay true while messages are added."""

from typing import NamedTuple

from sidecar.store.search import SearchError


class Page(NamedTuple):
    """What the page before looked at, and how far it came."""

    revision: int
    """Of the session; positions mean something else once it has changed."""
    last: int
    """The newest position that is searched."""
    reached: int
    """For words the number of hits so far, otherwise the position that was looked at last."""


class SessionsPage(NamedTuple):
    """The same of a search in many sessions, which goes through them by uid."""

    uid: int
    """The session that was looked at last."""
    newest: int
    """The newest session that is searched."""
    revision: int
    last: int
    """0 where the session was looked at to its end."""
    reached: int


def encode_page(page: Page | SessionsPage) -> str:
    """The cursor for what comes behind."""
    return ("s" if isinstance(page, Page) else "a") + ".".join(map(str, page))


def decode_page(cursor: str) -> Page:
    """What a cursor of one session says.

    Raises:
        SearchError: it is none.
    """
    return Page(*_numbers(cursor, "s", len(Page._fields)))


def decode_sessions_page(cursor: str) -> SessionsPage:
    """What a cursor of many sessions says.

    Raises:
        SearchError: it is none.
    """
    return SessionsPage(*_numbers(cursor, "a", len(SessionsPage._fields)))


def _numbers(cursor: str, kind: str, count: int) -> list[int]:
    parts = cursor[1:].split(".")
    known = cursor[:1] == kind and len(parts) == count
    if not known or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        raise SearchError(f"{cursor[:60]!r} is no cursor of this search; leave it out to begin anew")
    return list(map(int, parts))
