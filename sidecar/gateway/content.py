"""Reads bodies of requests and answers, whatever their content encoding: usage, errors about length."""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Protocol

import aiohttp

from sidecar.gateway.request import Usage, usage_of

MOST_BYTES = 256 << 20
"""Bytes of a request, as the sidecar's own limit for a frame."""
MOST_PARTS = 1000
"""Compressed parts in one piece: each costs a copy of what is behind it."""
MOST_ERROR_BYTES = 1 << 16
LONGEST_START_S = 30.0
"""Seconds that the start of a stream may take to tell whether the prompt was too long."""

_OVERFLOW = re.compile(
    rb"prompt is too long|context_length_exceeded|maximum context length|context window|"
    rb"input length and `max_tokens` exceed|too many tokens",
    re.IGNORECASE,
)
_BEFORE_OUTPUT = re.compile(rb"event: *response\.(created|in_progress|queued)\b")


class Unreadable(Exception):
    """Raised where a body cannot be decompressed."""


class _Part(Protocol):
    """One compressed part of a body, which may have several."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /, max_length: int = ...) -> bytes: ...


def _inflater() -> _Part:
    return zlib.decompressobj(zlib.MAX_WBITS | 32)


def _kinds() -> Iterator[tuple[str, Callable[[], _Part] | None]]:
    yield from (("", None), ("identity", None), ("gzip", _inflater), ("deflate", _inflater))
    with suppress(ModuleNotFoundError):  # bodies in zstd then go upstream unread
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
        yield "zstd", zstd.ZstdDecompressor


KINDS = dict(_kinds())
"""What undoes a content encoding, where anything is to be done."""


class Unpacker:
    """Decompresses a body piece by piece.

    Raises:
        Unreadable: the encoding is unknown here.
    """

    def __init__(self, encoding: str) -> None:
        try:
            self._kind = KINDS[encoding.strip().lower()]
        except KeyError:
            raise Unreadable(f"content encoding {encoding}") from None
        self._part: _Part | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing is missing at the end."""
        return self._part is None

    def feed(self, data: bytes, most: int = MOST_BYTES) -> bytes:
        """What a piece comes to.

        Raises:
            Unreadable: it is damaged, or comes to more than `most` bytes.
        """
        if self._kind is None:
            return data
        plain, parts = b"", 0
        try:
            while data:
                parts += 1
                if parts > MOST_PARTS:
                    raise Unreadable(f"more than {MOST_PARTS} parts")
                self._part = self._part or self._kind()
                plain += self._part.decompress(data, most + 1 - len(plain))
                if len(plain) > most:
                    raise Unreadable(f"more than {most} bytes")
                if not self._part.eof:
                    break
                data, self._part = self._part.unused_data, None
        except Unreadable:
            raise
        except Exception as problem:  # each module has an error of its own
            raise Unreadable(str(problem)) from problem
        return plain


def plain_body(body: bytes, encoding: str) -> bytes | None:
    """The body of a request as JSON; `None` where it cannot be read here."""
    try:
        unpacker = Unpacker(encoding)
        plain = unpacker.feed(body)
    except Unreadable:
        return None
    return plain if unpacker.complete else None


class UsageCopy:
    """Reads usage from a copy of an answer, as far as its encoding can be undone."""

    def __init__(self, upstream: aiohttp.ClientResponse) -> None:
        self._streams = upstream.content_type == "text/event-stream"
        self._rest = bytearray()
        self._newest: Usage | None = None
        try:
            self._unpacker: Unpacker | None = Unpacker(upstream.headers.get("Content-Encoding", ""))
        except Unreadable:
            self._unpacker = None

    def feed(self, chunk: bytes) -> None:
        """Take in a piece."""
        if self._unpacker is None:
            return
        try:
            plain = self._unpacker.feed(chunk)
        except Unreadable:
            self._unpacker = None
            return
        self._rest += plain
        if self._streams and b"\n" in plain:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                if line.startswith(b"data:") and b'"usage"' in line:
                    self._newest = usage_of(bytes(line[5:])) or self._newest
        if len(self._rest) > MOST_BYTES:
            self._unpacker = None

    def usage(self) -> Usage | None:
        """The newest usage of a prompt."""
        if not self._streams and self._unpacker is not None:
            return usage_of(bytes(self._rest))
        return self._newest


async def start_of(upstream: aiohttp.ClientResponse, *, peeks: bool) -> bytes:
    """As much of an answer as tells whether the prompt was too long.

    An error is read whole. The Responses API may say so in a stream, before its first output.
    """
    start = b""
    if upstream.status in (400, 413):
        while len(start) < MOST_ERROR_BYTES and (piece := await upstream.content.readany()):
            start += piece
    elif peeks and upstream.status == 200 and not upstream.headers.get("Content-Encoding"):
        since = monotonic()
        while monotonic() - since < LONGEST_START_S and len(start) < MOST_ERROR_BYTES:
            whole = start[: start.rfind(b"\n\n") + 1].split(b"\n\n")
            if start and not all(_BEFORE_OUTPUT.search(event) for event in whole if event.strip()):
                break
            piece = await upstream.content.readany()
            if not piece:
                break
            start += piece
    return start


def says_too_long(start: bytes, upstream: aiohttp.ClientResponse) -> bool:
    """Whether an answer that begins so refuses the prompt for its length."""
    failed = b"event: response.failed" in start or b"event: error" in start
    if upstream.status not in (400, 413) and not failed:
        return False
    plain = plain_body(start, upstream.headers.get("Content-Encoding", ""))
    return plain is not None and _OVERFLOW.search(plain) is not None
