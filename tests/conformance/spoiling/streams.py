"""Cuts the bytes that a host or a server writes into messages, and leaves alone what it cannot read."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_HEAD = re.compile(rb"\r?\n\r?\n")
_LENGTH = re.compile(rb"^content-length:\s*(\d{1,9})\s*$", re.IGNORECASE | re.MULTILINE)


class Piece(NamedTuple):
    """A part of the stream as it came, with the message that it carries, if it is one."""

    raw: bytes
    message: dict[str, Any] | None


class Cutter:
    """Hands out pieces as soon as they are complete; nothing of the stream is lost or changed."""

    def __init__(self) -> None:
        self.lines: bool | None = None
        """Whether messages stand in lines; `None` before the first byte that tells."""
        self._kept = b""
        self._lost = False

    def feed(self, data: bytes) -> Iterator[Piece]:
        """The pieces that are complete with these bytes."""
        self._kept += data
        if self.lines is None and (start := self._kept.removeprefix(b"\xef\xbb\xbf").lstrip()):
            self.lines = start[:1] in b"{["
        while self._kept and not self._lost and (end := self._end()):
            yield self._taken(end)
        if self._lost and self._kept:
            yield self._taken(len(self._kept))

    def rest(self) -> bytes:
        """What came and was no whole piece."""
        kept, self._kept = self._kept, b""
        return kept

    def written(self, message: dict[str, Any]) -> bytes:
        """A message in the framing of the stream."""
        body = json.dumps(message, separators=(",", ":")).encode()
        return body + b"\n" if self.lines else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)

    def _end(self) -> int:
        if self.lines is not False:
            return self._kept.find(b"\n") + 1
        head = _HEAD.search(self._kept)
        if head is None:
            return 0
        lengths = set(_LENGTH.findall(self._kept[: head.end()].replace(b"\r", b"")))
        if len(lengths) != 1:
            self._lost = True
            return 0
        end = head.end() + int(lengths.pop())
        return end if len(self._kept) >= end else 0

    def _taken(self, end: int) -> Piece:
        raw, self._kept = self._kept[:end], self._kept[end:]
        head = _HEAD.search(raw) if self.lines is False else None
        body = raw[head.end() :] if head else raw
        try:
            message = json.loads(body.removeprefix(b"\xef\xbb\xbf"))
        except (ValueError, RecursionError):
            message = None
        return Piece(raw, message if isinstance(message, dict) else None)
