"""Caches the log lines of stored messages, so that each message is parsed for them only once.

In memory, the lines of a session reach from some position to the newest turn that has left the window. Part
of them is also stored in the engine's session state, with bookmarks that identify places in the history.
After a restart, a rewind or a fork, the lines up to the last valid bookmark are reused, and only later
messages are read again.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable

from msgspec import MsgspecError, Struct, json

from sidecar.engine.entry import Entry
from sidecar.engine.session import Session
from sidecar.engine.signature import digest
from sidecar.engines.terse.log import LogLine, Scribe

STATE = "log"
NEAR, FARTHEST = 2_000, 20_000
"""Maximum new messages read for one answer; earlier ones are left out of the log.

`NEAR` applies if the lines of that many messages already fill the available tokens.
"""
PIECE = 500
"""Messages read before yielding to other sessions."""
BOOKMARK_EVERY = 1000
"""Minimum messages between two bookmarks, which are set at the ends of turns."""
KEPT_BOOKS = 128


class Bookmark(Struct, frozen=True, array_like=True):
    """A recognisable place in the history."""

    position: int
    message_id: str
    body: str
    """Hash of the message's bytes."""


class Kept(Struct, frozen=True, array_like=True):
    """The stored state: all lines up to the newest bookmark."""

    untagged: bool
    first: int
    bookmarks: list[Bookmark]
    lines: list[LogLine]


class Book:
    """The lines of one session for one view; how far they reach back depends on its budget."""

    def __init__(self, version: str, first: int, scribe: Scribe) -> None:
        self.version = version
        self.first = first
        """Position of the first message read."""
        self.last = first - 1
        self.lines: list[LogLine] = []
        self.bookmarks: list[Bookmark] = []
        self.scribe = scribe
        self.kept_to = 0
        """Position of the newest bookmark in the session state."""

    def add(self, entries: list[Entry], before: Entry | None) -> None:
        """Add the lines of these messages, which follow `before`."""
        for entry in entries:
            self.lines += self.scribe.add(entry)
            if before is not None and before.position and entry.turn != before.turn:
                marked = self.bookmarks[-1].position if self.bookmarks else self.first
                if before.position - marked >= BOOKMARK_EVERY:
                    self.bookmarks.append(bookmark(before))
            before = entry
        if entries:
            self.last = entries[-1].position or self.last

    def forget(self, floor: int) -> None:
        """Drop the lines before a position, if they are more than half."""
        gone = bisect_left(self.lines, floor, key=_position)
        if gone > len(self.lines) // 2:
            del self.lines[:gone]
            self.bookmarks = [mark for mark in self.bookmarks if mark.position >= floor]
            self.first = max(self.first, floor)

    def upto(self, last: int, floor: int) -> list[LogLine]:
        """The lines of messages at positions `floor` to `last`."""
        begin = bisect_left(self.lines, floor, key=_position)
        return self.lines[begin : bisect_right(self.lines, last, key=_position)]

    def encoded(self, floor: int) -> bytes:
        """The lines from `floor` to the newest bookmark, encoded for storage."""
        last = self.bookmarks[-1].position
        bookmarks = [mark for mark in self.bookmarks if mark.position >= floor]
        untagged = self.scribe.untagged
        return json.encode(Kept(untagged, max(self.first, floor), bookmarks, self.upto(last, floor)))


class Books:
    """The books of the most recently used sessions and views."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._books: OrderedDict[tuple[str, str], Book] = OrderedDict()

    async def lines(
        self, session: Session, last: int, floor: int, *, next_turn: int, untagged: bool, enough: int
    ) -> list[LogLine]:
        """The lines of the stored messages at positions `floor` to `last`.

        `next_turn` is the turn that follows; earlier turns are finished. At most `enough` tokens of lines can
        be shown.
        """
        book = await self._book(session, last, floor, untagged, enough)
        lines = book.upto(last, floor)
        if book.last == last and book.scribe.turn < next_turn:
            lines += book.scribe.end_of_turn()
        return lines

    async def _book(self, session: Session, last: int, floor: int, untagged: bool, enough: int) -> Book:
        version = session.history.version
        key = (session.session_id, session.view.id if session.view else "")
        book = self._books.get(key)
        if book is None or book.version != version or book.scribe.untagged != untagged:
            book = await self._restored(session, untagged)
        behind = last - book.last
        if floor > book.last + 1 or behind > (FARTHEST if book.lines else NEAR):
            book = await self._rebuilt(session, last, floor, untagged, enough)
        else:
            await self._read_on(session, book, last)
        self._books[key] = book
        self._books.move_to_end(key)
        if len(self._books) > KEPT_BOOKS:
            self._books.popitem(last=False)
        if book.bookmarks and book.bookmarks[-1].position > book.kept_to:
            book.kept_to = book.bookmarks[-1].position
            await session.save_state(STATE, book.encoded(floor))
        book.forget(floor)
        return book

    async def _rebuilt(self, session: Session, last: int, floor: int, untagged: bool, enough: int) -> Book:
        """A new book that reaches back to `floor`, or as far as its lines can be shown."""
        book = self._fresh(session.history.version, max(last - NEAR + 1, floor), untagged)
        await self._read_on(session, book, last)
        if book.first > floor and sum(line.tokens for line in book.lines) <= enough:
            book = self._fresh(session.history.version, max(last - FARTHEST + 1, floor), untagged)
            await self._read_on(session, book, last)
        return book

    async def _read_on(self, session: Session, book: Book, last: int) -> None:
        """Add the messages up to `last`; after an error, reading can resume."""
        before: Entry | None = book.scribe.newest
        while book.last < last:
            entries = await session.history.read(book.last + 1, min(book.last + PIECE, last))
            if not entries:
                return
            book.add(entries, before)
            before = entries[-1]
            if book.last < last:
                await asyncio.sleep(0)

    async def _restored(self, session: Session, untagged: bool) -> Book:
        """A book restored from the session state, up to the last valid bookmark."""
        version = session.history.version
        kept = _decoded(await session.state(STATE))
        if kept is None or kept.untagged != untagged:
            return self._fresh(version, 1, untagged)
        for number in range(len(kept.bookmarks), 0, -1):
            mark = kept.bookmarks[number - 1]
            there = await session.history.read(mark.position, mark.position)
            if there and bookmark(there[0]) == mark:
                book = self._fresh(version, kept.first, untagged)
                book.last = mark.position
                book.bookmarks = kept.bookmarks[:number]
                book.lines = kept.lines[: bisect_right(kept.lines, mark.position, key=_position)]
                book.kept_to = mark.position if number == len(kept.bookmarks) else 0
                return book
        return self._fresh(version, 1, untagged)

    def _fresh(self, version: str, first: int, untagged: bool) -> Book:
        return Book(version, first, Scribe(self._count, untagged=untagged))


def bookmark(entry: Entry) -> Bookmark:
    """A bookmark at a stored message."""
    return Bookmark(entry.position or 0, entry.message_id, digest(entry.raw.decode("utf-8", "replace")))


def _position(line: LogLine) -> int:
    return line.position


def _decoded(value: bytes | None) -> Kept | None:
    try:
        return json.decode(value, type=Kept) if value else None
    except MsgspecError:
        return None
