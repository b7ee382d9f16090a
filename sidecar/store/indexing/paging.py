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


def encode_page(page: Page) -> str:
    """The cursor for what comes behind."""
    return "s" + ".".join(map(str, page))


def decode_page(cursor: str) -> Page:
    """What a cursor says.

    Raises:
        SearchError: it is not one of ours.
    """
    parts = cursor[1:].split(".")
    known = cursor[:1] == "s" and len(parts) == len(Page._fields)
    if not known or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        raise SearchError(f"{cursor[:60]!r} is no cursor of a search; leave it out to begin anew")
    return Page(*map(int, parts))
