"""Message framing on a byte stream, in both directions, and the transport that carries it.

`Content-Length` headers or line ends delimit the bodies. A refused body of known length is skipped exactly.
If the length is unknown, the stream is dead: scanning for the next header would let text inside a message
forge requests.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from sidecar.rpc.errors import InvalidRequest, ParseError, RpcError

DEFAULT_LIMIT = 256 * 1024 * 1024
"""Default for the largest body accepted, in bytes."""

MAX_HEADER = 8192
"""Longest header block accepted, in bytes."""

FATAL_FACTOR = 4
"""A body more than this many times over the limit is not even skipped."""

_BOM = b"\xef\xbb\xbf"
_WHITE = b" \t\r\n"
_LINE_ENDS = b"\r\n"
_NAME_START = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_PLAIN_HEADER = re.compile(rb"Content-Length: ([1-9][0-9]{0,11})\r\n\r\n")
_HEADER_END = re.compile(rb"\r?\n\r?\n")


class FrameFault(NamedTuple):
    """A refused frame; after a fatal one, nothing more can be read."""

    error: RpcError
    fatal: bool


class _Step(IntEnum):
    START = 0
    HEADER = 1
    BODY = 2
    SKIP = 3
    LINE = 4
    SKIP_LINE = 5
    DEAD = 6


class FrameReader:
    """Splits a stream of arbitrary chunks into bodies."""

    __slots__ = ("_held", "_missing", "_parts", "_rest", "_step", "limit", "newline")

    def __init__(self, limit: int = DEFAULT_LIMIT, *, newline: bool | None = None) -> None:
        self.limit = limit
        self.newline = newline
        """Whether messages are lines; `None` until the first non-whitespace byte decides."""
        self._step = _Step.START if newline is None else (_Step.LINE if newline else _Step.HEADER)
        self._rest = b""
        """The start of an incomplete header block."""
        self._parts: list[bytes] = []
        """The start of an incomplete body; joined once the body is complete."""
        self._held = 0
        self._missing = 0

    def feed(self, chunk: bytes) -> list[bytes | FrameFault]:
        """The bodies that this chunk completes, in order; each refused one is replaced by a fault."""
        items: list[bytes | FrameFault] = []
        if self._rest:
            chunk = self._rest + chunk
            self._rest = b""
        position, size = 0, len(chunk)
        while position < size:
            position = self._advance(chunk, position, items)
        return items

    def finish(self) -> tuple[list[bytes | FrameFault], bool]:
        """End the input. Returns an unterminated last line, and whether input ended inside a message."""
        step, self._step = self._step, _Step.DEAD
        if step is _Step.LINE:
            line = b"".join(self._parts)
            self._parts = []
            return ([line] if line and not line.isspace() else []), False
        return [], step in (_Step.BODY, _Step.SKIP, _Step.SKIP_LINE) or bool(self._rest)

    @property
    def inside(self) -> bool:
        """Whether a message has been read only in part."""
        return self._step in (_Step.BODY, _Step.SKIP, _Step.SKIP_LINE) or bool(self._rest or self._parts)

    def _advance(self, chunk: bytes, position: int, items: list[bytes | FrameFault]) -> int:
        step = self._step
        if step is _Step.HEADER:
            return self._read_headers(chunk, position, items)
        if step is _Step.LINE:
            return self._read_lines(chunk, position, items)
        if step is _Step.BODY:
            return self._read_body(chunk, position, items)
        if step is _Step.SKIP:
            return self._skip_body(chunk, position)
        if step is _Step.SKIP_LINE:
            return self._skip_line(chunk, position, items)
        if step is _Step.START:
            return self._detect(chunk, position)
        return len(chunk)

    def _detect(self, chunk: bytes, position: int) -> int:
        head = chunk[position:].lstrip(_WHITE)
        if head.startswith(_BOM):
            head = head[len(_BOM) :].lstrip(_WHITE)
        elif _BOM.startswith(head):
            self._rest = head
            return len(chunk)
        if head:
            self.newline = head[0] in b"{["
            self._step = _Step.LINE if self.newline else _Step.HEADER
        return len(chunk) - len(head)

    def _read_headers(self, chunk: bytes, position: int, items: list[bytes | FrameFault]) -> int:
        size, limit = len(chunk), self.limit
        while (plain := _PLAIN_HEADER.match(chunk, position)) is not None:
            start = plain.end()
            length = int(plain[1])
            if length > limit:
                break
            end = start + length
            if end > size:
                return self._begin_body(chunk, start, length)
            items.append(chunk[start:end])
            position = end
            if position == size:
                return size
        return self._read_odd_header(chunk, position, items)

    def _read_odd_header(self, chunk: bytes, position: int, items: list[bytes | FrameFault]) -> int:
        size = len(chunk)
        while position < size and chunk[position] in _LINE_ENDS:
            position += 1
        if position == size:
            return size
        if chunk[position] not in _NAME_START:
            return self._die(items, size, "expected a header such as Content-Length, got other bytes")
        end = _HEADER_END.search(chunk, position, position + MAX_HEADER + 4)
        if end is None:
            block = chunk[position:]
            if len(block) > MAX_HEADER:
                return self._die(items, size, f"the headers are longer than {MAX_HEADER} bytes")
            if any(b":" not in line for line in block.split(b"\n")[:-1]):
                return self._die(items, size, "a header line has no colon")
            self._rest = block
            return size
        try:
            length, charset = parse_headers(chunk[position : end.start()])
        except ValueError as problem:
            return self._die(items, size, str(problem))
        return self._begin_odd_body(chunk, end.end(), length, charset, items)

    def _begin_odd_body(
        self, chunk: bytes, start: int, length: int, charset: str, items: list[bytes | FrameFault]
    ) -> int:
        if length > self.limit * FATAL_FACTOR:
            return self._die(
                items,
                len(chunk),
                f"a body of {length} bytes is more than {FATAL_FACTOR} times the limit of {self.limit} bytes",
                limit=self.limit,
            )
        if length > self.limit:
            items.append(FrameFault(self._too_long(length), False))
        elif charset not in ("utf-8", "utf8"):
            items.append(
                FrameFault(ParseError(f"charset {charset[:40]!r} is not supported, only utf-8"), False)
            )
        elif length == 0:
            items.append(FrameFault(ParseError("the body is empty (Content-Length: 0)"), False))
        elif start + length <= len(chunk):
            items.append(chunk[start : start + length])
            return start + length
        else:
            return self._begin_body(chunk, start, length)
        self._missing = length
        self._step = _Step.SKIP if length else _Step.HEADER
        return start

    def _begin_body(self, chunk: bytes, start: int, length: int) -> int:
        self._parts = [chunk[start:]]
        self._missing = length - (len(chunk) - start)
        self._step = _Step.BODY
        return len(chunk)

    def _read_body(self, chunk: bytes, position: int, items: list[bytes | FrameFault]) -> int:
        available = len(chunk) - position
        if available < self._missing:
            self._parts.append(chunk[position:] if position else chunk)
            self._missing -= available
            return len(chunk)
        end = position + self._missing
        self._parts.append(chunk[position:end])
        parts, self._parts = self._parts, []
        self._step = _Step.HEADER
        items.append(b"".join(parts))
        return end

    def _skip_body(self, chunk: bytes, position: int) -> int:
        skipped = min(self._missing, len(chunk) - position)
        self._missing -= skipped
        if not self._missing:
            self._step = _Step.HEADER
        return position + skipped

    def _read_lines(self, chunk: bytes, position: int, items: list[bytes | FrameFault]) -> int:
        lines = (chunk[position:] if position else chunk).split(b"\n")
        rest = lines.pop()
        for line in lines:
            if self._parts:
                self._parts.append(line)
                line = b"".join(self._parts)
                self._parts, self._held = [], 0
            if len(line) > self.limit:
                items.append(FrameFault(self._too_long(len(line)), False))
            elif line and not line.isspace():
                items.append(line)
        if rest:
            self._parts.append(rest)
            self._held += len(rest)
            if self._held > self.limit:
                items.append(FrameFault(self._too_long(self._held), False))
                self._parts, self._step = [], _Step.SKIP_LINE
        return len(chunk)

    def _skip_line(self, chunk: bytes, position: int, items: list[bytes | FrameFault]) -> int:
        end = chunk.find(b"\n", position)
        self._held += (len(chunk) if end < 0 else end) - position
        if self._held > self.limit * FATAL_FACTOR:
            return self._die(
                items,
                len(chunk),
                f"a line is more than {FATAL_FACTOR} times the limit of {self.limit} bytes",
                limit=self.limit,
            )
        if end < 0:
            return len(chunk)
        self._held, self._step = 0, _Step.LINE
        return end + 1

    def _too_long(self, length: int) -> RpcError:
        return InvalidRequest(
            f"a body of {length} bytes is over the limit of {self.limit} bytes",
            limit=self.limit,
            hint="send less in one message",
        )

    def _die(self, items: list[bytes | FrameFault], size: int, reason: str, **members: object) -> int:
        hint = "frame each message as `Content-Length: <bytes>`, CR LF, CR LF, body; the connection is closed"
        items.append(FrameFault(InvalidRequest(f"bad frame: {reason}", hint=hint, **members), True))
        self._step = _Step.DEAD
        return size


def parse_headers(block: bytes) -> tuple[int, str]:
    """The length of the body in bytes, and its charset in lower case.

    Raises:
        ValueError: the length is missing, not a plain number, or given twice with different values.
    """
    length: int | None = None
    charset = "utf-8"
    for line in block.split(b"\n"):
        name, colon, value = line.partition(b":")
        if not colon:
            raise ValueError("a header line has no colon")
        key = name.strip().lower()
        if key == b"content-length":
            found = _plain_number(value.strip())
            if length is not None and found != length:
                raise ValueError("two different values of Content-Length")
            length = found
        elif key == b"content-type":
            charset = _charset(value)
    if length is None:
        raise ValueError("Content-Length is missing")
    return length, charset


def _plain_number(value: bytes) -> int:
    if not value.isdigit():
        raise ValueError("Content-Length is not a plain number of bytes")
    return int(value.lstrip(b"0")[:20] or b"0")


def _charset(value: bytes) -> str:
    for parameter in value.split(b";")[1:]:
        name, _, text = parameter.partition(b"=")
        if name.strip().lower() == b"charset":
            return text.strip().strip(b"\"'").decode("ascii", "replace").lower()
    return "utf-8"


_LARGE = 32768
"""Bodies of at least this many bytes stay separate buffers instead of being copied behind a header."""


class Outbox:
    """Frames bodies and batches them for the transport."""

    __slots__ = ("_frames", "_size", "_transport", "newline", "unsent")

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._frames: list[bytes] = []
        self._size = 0
        self.newline = False
        """Whether each message is one line."""
        self.unsent = 0
        """Bytes waiting here or in the transport; kept as a number because every request reads it."""

    def put(self, body: bytes) -> None:
        """Frame a body; the next `flush` sends it."""
        size = len(body)
        self._size += size
        self.unsent += size
        if self.newline:
            # Line breaks inside strings are escaped, so any found here are between tokens.
            if b"\n" in body or b"\r" in body:
                body = body.replace(b"\n", b" ").replace(b"\r", b" ")
            self._frames += (body, b"\n")
        elif size < _LARGE:
            self._frames.append(b"Content-Length: %d\r\n\r\n%b" % (size, body))
        else:
            self._frames += (b"Content-Length: %d\r\n\r\n" % size, body)

    def flush(self) -> None:
        """Hand everything to the transport in one write."""
        if self._frames:
            frames, self._frames, self._size = self._frames, [], 0
            self._transport.write(frames)
        self.count()

    def count(self) -> None:
        """Update `unsent` from the transport."""
        self.unsent = self._size + self._transport.unsent


class Receiver(Protocol):
    """Receives a transport's events, on the loop's thread only."""

    def received(self, chunk: bytes) -> None:
        """Bytes have arrived."""
        ...

    def ended(self) -> None:
        """No more bytes will come."""
        ...

    def drained(self) -> None:
        """Some pending bytes were sent."""
        ...

    def broken(self) -> None:
        """Nothing more can be sent; the other side stopped reading."""
        ...


class Transport(Protocol):
    """Carries bytes both ways without blocking the loop."""

    @property
    def unsent(self) -> int:
        """Bytes written but not sent yet."""
        ...

    def start(self, receiver: Receiver) -> None:
        """Start reading."""
        ...

    def write(self, buffers: Sequence[bytes]) -> None:
        """Send the buffers in order, now or as the other side reads."""
        ...

    def pause_reading(self) -> None:
        """Stop reading until `resume_reading`."""
        ...

    def resume_reading(self) -> None:
        """Resume reading."""
        ...

    def read_available(self) -> None:
        """Read what is available right now, without waiting for more."""
        ...

    async def flush(self, limit_s: float) -> bool:
        """Wait until everything is sent. Returns false if nothing moved for `limit_s` seconds."""
        ...

    def close(self) -> None:
        """Stop reading, drop unsent bytes, restore the descriptors' original state."""
        ...
