"""Finds `<terse>` tags in complete texts and in streams.

An assistant ends its answer with `<terse>what was done</terse>`. Tags are ASCII and case-insensitive. A tag
begins at the nearest opening before its closing. Unclosed tags, and everything in a code fence, are text; a
fence that begins inside an open tag leaves the tag unclosed. A fence is a line that begins, after any
indentation, with three or more backticks or tildes; a line of at least as many ends it.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from typing import Literal, NamedTuple

OPENING = "<terse>"
CLOSING = "</terse>"
_NAME = b"terse"
"""JSON without these letters, in any case, has no tag: no encoder escapes them."""

_SHORTEST_FENCE = 3
_BLANKS = re.compile(r"[ \t\r]*")
_NEXT = re.compile(r"[<\n]")
_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
"""Control characters and everything that some program treats as a line break."""

_Line = Literal["indent", "run", "trail", "text"]


class Tag(NamedTuple):
    """One tag in a text; offsets are in characters."""

    start: int
    stop: int
    """End of the closing."""
    content: str
    """The text between opening and closing."""


class TerseStripper:
    """Removes tags from a text that arrives in pieces, so that no part of a tag is ever shown.

    However a text is split, the joined output equals `strip_tags` of the whole.
    """

    def __init__(self) -> None:
        self._scanner = _Scanner()
        self._held: list[str] = []
        self._given = 0
        """Characters of the whole text already returned or removed."""

    def feed(self, chunk: str) -> str:
        """The text up to here that can be shown and was not returned yet."""
        self._held.append(chunk)
        tags = list(self._scanner.feed(chunk))
        if not tags and self._scanner.decided == self._given:
            return ""
        return self._release("".join(self._held), tags, self._scanner.decided)

    def close(self) -> str:
        """The rest: text held back because it might have begun a tag."""
        held = "".join(self._held)
        return self._release(held, [], self._given + len(held))

    def _release(self, held: str, tags: Sequence[tuple[int, int]], until: int) -> str:
        shown: list[str] = []
        base = self._given
        for start, stop in (*tags, (until, until)):
            shown.append(held[self._given - base : start - base])
            self._given = stop
        self._held = [held[self._given - base :]]
        return "".join(shown)


def may_have_tags(raw: bytes) -> bool:
    """Whether a message may contain a tag, judging by its bytes; false is certain."""
    return _NAME in raw.lower()


def find_tags(text: str) -> list[Tag]:
    """The tags of a text, in order."""
    if "terse" not in text.lower():
        return []
    return [
        Tag(start, stop, text[start + len(OPENING) : stop - len(CLOSING)])
        for start, stop in _Scanner().feed(text)
    ]


def strip_tags(text: str) -> str:
    """The text without its tags; everything else stays, including white space."""
    return strip_parts([text])[0]


def strip_parts(parts: Sequence[str]) -> list[str]:
    """The text parts of one message without tags; tags are found as if line breaks joined the parts."""
    tags = find_tags("\n".join(parts))
    stripped: list[str] = []
    begin = 0
    for part in parts:
        kept: list[str] = []
        at = 0
        for tag in tags:
            start, stop = max(tag.start - begin, at), min(tag.stop - begin, len(part))
            if start < stop:
                kept.append(part[at:start])
                at = stop
        stripped.append("".join(kept) + part[at:])
        begin += len(part) + 1
    return stripped


def summaries(text: str) -> list[str]:
    """The contents of the tags in an assistant's text, one line each; empty tags are skipped."""
    lines = (one_line(tag.content) for tag in find_tags(text))
    return [line for line in lines if line]


def one_line(text: str) -> str:
    """The text with each run of line breaks, control characters and adjacent blanks as one space."""
    parts = (part.strip() for part in _BREAKS.split(text))
    return " ".join(part for part in parts if part)


class _Scanner:
    """Separates tags from text as the text arrives; positions count from its start."""

    def __init__(self) -> None:
        self.decided = 0
        """Everything before this position is text, except the tags already reported."""
        self._seen = 0
        """Position after all text received."""
        self._partial = ""
        """The newest characters, if they may become an opening or a closing."""
        self._open: int | None = None
        """Where the open tag begins."""
        self._line: _Line = "indent"
        self._run = ("", 0)
        """The character that the line begins with, and how often it repeats."""
        self._fence: tuple[str, int] | None = None

    def feed(self, chunk: str) -> Iterator[tuple[int, int]]:
        """Start and stop of every tag that the chunk completes."""
        text, self._partial = self._partial + chunk, ""
        base = self._seen - (len(text) - len(chunk))
        self._seen = base + len(text)
        at = 0
        while at < len(text):
            if self._line == "text":
                at = yield from self._within(text, at, base)
            else:
                at = self._at_start(text, at)
        self.decided = self._seen - len(self._partial) if self._open is None else self._open

    def _within(self, text: str, at: int, base: int) -> Generator[tuple[int, int], None, int]:
        """Scan a line that is not a fence, up to the next tag or line break."""
        found = text.find("\n", at) if self._fence else _next(text, at)
        if found < 0:
            return len(text)
        if text[found] == "\n":
            self._line = "indent"
            return found + 1
        opening = _begins(text, found, OPENING)
        closing = _begins(text, found, CLOSING)
        if opening == "maybe" or closing == "maybe":
            self._partial = text[found:]
            return len(text)
        if opening == "yes":
            self._open = base + found
            return found + len(OPENING)
        if closing == "yes":
            if self._open is not None:
                yield self._open, base + found + len(CLOSING)
                self._open = None
            return found + len(CLOSING)
        return found + 1

    def _at_start(self, text: str, at: int) -> int:
        """Scan the start of a line, which may yet begin or end a fence."""
        if self._line == "run":
            return self._count_run(text, at)
        at = _after_blanks(text, at)
        if at == len(text):
            return at
        letter = text[at]
        if self._line == "trail":
            if letter == "\n":
                self._fence = None
            self._line = "text"
        elif letter in "`~":
            self._line, self._run = "run", (letter, 0)
        else:
            self._line = "text"
        return at

    def _count_run(self, text: str, at: int) -> int:
        letter, count = self._run
        stop = at
        while stop < len(text) and text[stop] == letter:
            stop += 1
        count += stop - at
        self._run = (letter, count)
        if self._fence is None and count >= _SHORTEST_FENCE:
            self._open = None
        if stop == len(text):
            return stop
        if self._fence is None:
            self._fence = self._run if count >= _SHORTEST_FENCE else None
            self._line = "text"
        else:
            ends = letter == self._fence[0] and count >= self._fence[1]
            self._line = "trail" if ends else "text"
        return stop


def _next(text: str, at: int) -> int:
    found = _NEXT.search(text, at)
    return found.start() if found else -1


def _after_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _begins(text: str, at: int, mark: str) -> Literal["yes", "no", "maybe"]:
    """Whether `mark` is at a position; `maybe` if the text ends too early to decide."""
    piece = text[at : at + len(mark)]
    if not piece.isascii() or piece.lower() != mark[: len(piece)]:
        return "no"
    return "yes" if len(piece) == len(mark) else "maybe"
