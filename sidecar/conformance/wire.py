"""Wire messages, independent of the server's own code: encoding, framing, and checks against the schema."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Literal, cast

import msgspec

from sidecar.conformance.kit import Violation, expect
from sidecar.protocol.base import Wire
from sidecar.protocol.errors import ERRORS
from sidecar.protocol.methods import METHODS, Method

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""A JSON value."""
Object = dict[str, Json]
"""A JSON object."""


def frame(body: bytes | str | Json) -> bytes:
    """A body with its header; bytes and text are sent as they are, anything else as JSON."""
    data = encode(body)
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data)


def encode(body: bytes | str | Json) -> bytes:
    """The bytes of a body; anything but bytes and text is encoded as JSON."""
    if isinstance(body, bytes):
        return body
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def request(id: int | str, method: str, params: Json = None) -> Object:
    """A request."""
    message: Object = {"jsonrpc": "2.0", "id": id, "method": method}
    return message if params is None else {**message, "params": params}


def notification(method: str, params: Json = None) -> Object:
    """A notification."""
    message: Object = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


class Message:
    """A message that the peer under test sent, with its raw bytes."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        try:
            value: Json = json.loads(raw.decode())
        except (ValueError, RecursionError) as error:
            raise Violation(f"{shown(raw)} is not UTF-8 JSON") from error
        if not isinstance(value, dict):
            raise Violation(f"{shown(raw)} is not a JSON object")
        self.body: Object = value

    @property
    def id(self) -> Json:
        """The id; `None` if it is `null` or missing."""
        return self.body.get("id")

    @property
    def method(self) -> str | None:
        """The method of a request or a notification; `None` for a response."""
        method = self.body.get("method")
        return method if isinstance(method, str) else None

    @property
    def is_response(self) -> bool:
        """Whether the message is a response."""
        return "method" not in self.body

    @property
    def code(self) -> Json:
        """The error code; `None` for a result."""
        return self.at("/error/code", None)

    @property
    def error_text(self) -> str:
        """The error message; empty for a result."""
        text = self.at("/error/message", "")
        return text if isinstance(text, str) else ""

    def at(self, pointer: str, default: Json | type[Violation] = Violation) -> Json:
        """The value at a JSON Pointer.

        Raises:
            Violation: there is no such value, and no default was given.
        """
        value: Json = self.body
        for part in pointer.split("/")[1:]:
            if isinstance(value, dict) and part in value:
                value = value[part]
            elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
                value = value[int(part)]
            elif isinstance(default, type):
                raise Violation(f"the answer has no {pointer}: {shown(self.raw)}")
            else:
                return default
        return value

    def result(self, pointer: str = "") -> Json:
        """The value at a JSON Pointer inside the result.

        Raises:
            Violation: the response is an error, or there is no such value.
        """
        if "error" in self.body:
            raise Violation(f"expected a result, found an error: {shown(self.raw)}")
        return self.at("/result" + pointer)

    def objects(self, pointer: str) -> list[Object]:
        """A list of objects inside the result.

        Raises:
            Violation: the value is not a list of objects.
        """
        value = self.result(pointer)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise Violation(f"{pointer} is not a list of objects: {shown(self.raw)}")
        return cast(list[Object], value)

    def text(self, pointer: str) -> str:
        """A string inside the result.

        Raises:
            Violation: the value is not a string.
        """
        value = self.result(pointer)
        if not isinstance(value, str):
            raise Violation(f"{pointer} is not a string: {shown(self.raw)}")
        return value

    def number(self, pointer: str) -> int:
        """An integer inside the result.

        Raises:
            Violation: the value is not an integer.
        """
        value = self.result(pointer)
        if not isinstance(value, int) or isinstance(value, bool):
            raise Violation(f"{pointer} is not an integer: {shown(self.raw)}")
        return value


def shown(raw: bytes, limit: int = 300) -> str:
    """Bytes as text for a report, cut after `limit` bytes."""
    text = raw[:limit].decode(errors="backslashreplace")
    return text if len(raw) <= limit else f"{text}... ({len(raw)} bytes)"


_CHUNK = 65536
_HEADER_LIMIT = 8192


class Inbox:
    """Splits the bytes that a thread reads from a peer into messages. Every wait is bounded."""

    def __init__(self, read: Callable[[int], bytes], *, lines: bool, limit_s: float) -> None:
        """`read` returns the next bytes, empty at the end; `lines` selects one message per line."""
        self._read = read
        self._lines = lines
        self._limit_s = limit_s
        self._input = bytearray()
        self._chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._run, daemon=True)
        self._reader.start()

    def receive(self) -> Message | None:
        """The next message; `None` at the end of the stream.

        Raises:
            Violation: nothing arrives within the limit, or the bytes are not a message.
        """
        deadline = time.monotonic() + self._limit_s
        while (raw := self._take()) is None:
            try:
                chunk = self._chunks.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise Violation(f"nothing arrived within {self._limit_s:g} s") from None
            if not chunk:
                self._chunks.put(b"")
                if self._input.strip():
                    raise Violation(f"not a message: {shown(bytes(self._input))}")
                return None
            self._input += chunk
        return Message(raw)

    def join(self) -> None:
        """Wait for the reading thread after the stream has ended."""
        self._reader.join(self._limit_s)

    def _run(self) -> None:
        with suppress(OSError):
            while chunk := self._read(_CHUNK):
                self._chunks.put(chunk)
        self._chunks.put(b"")

    def _take(self) -> bytes | None:
        """The bytes of the next message if it is complete, else `None`."""
        if self._lines:
            line, newline, rest = self._input.partition(b"\n")
            if not newline:
                return None
            self._input = rest
            return bytes(line)
        head = self._input.find(b"\r\n\r\n")
        if head < 0:
            if len(self._input) > _HEADER_LIMIT:
                raise Violation(f"not a frame: {shown(bytes(self._input))}")
            return None
        end = head + 4 + _content_length(bytes(self._input[:head]))
        if len(self._input) < end:
            return None
        raw = bytes(self._input[head + 4 : end])
        del self._input[:end]
        return raw


def _content_length(head: bytes) -> int:
    fields = [line.partition(b":") for line in head.split(b"\r\n")]
    lengths = {value.strip() for name, _, value in fields if name.strip().lower() == b"content-length"}
    if (
        len(lengths) != 1
        or not all(colon for _, colon, _ in fields)
        or not (length := lengths.pop()).isdigit()
    ):
        raise Violation(f"expected exactly one Content-Length: {shown(head)}")
    return int(length)


Side = Literal["server", "client"]
_METHODS = {method.name: method for method in METHODS}
_NOT_SENT: dict[Side, str] = {"server": "hostToServer", "client": "serverToHost"}
_ERROR_CODES = frozenset(error.code for error in ERRORS)


def check_message(message: Message, side: Side, answered: str | None = None) -> None:
    """Check a message of one side against the schema; `answered` is the method that a response answers.

    Raises:
        Violation: a member is missing, of the wrong type, or out of place.
    """
    body = message.body
    if body.get("jsonrpc") != "2.0":
        raise Violation(f"jsonrpc is not 2.0: {shown(message.raw)}")
    if not message.is_response:
        _check_sent(message, side)
    elif ("result" in body) == ("error" in body):
        raise Violation(f"a response needs either result or error: {shown(message.raw)}")
    elif "error" in body:
        _check_error(message, side)
    elif (known := _METHODS.get(answered or "")) is not None:
        check_result(known.name, message)


def check_result(method: str, message: Message) -> None:
    """Check a result against its type in the method table.

    Raises:
        Violation: the result has another type.
    """
    known = _METHODS[method]
    if known.result is not None:
        _decode(known, known.result, message.body["result"], f"the result of {method}")
    elif message.body["result"] is not None:
        raise Violation(f"the result of {method} must be null: {shown(message.raw)}")


def _check_sent(message: Message, side: Side) -> None:
    method, body = message.method or "", message.body
    known = _METHODS.get(method)
    if known is None or known.direction == _NOT_SENT[side]:
        if side == "server" and method.startswith("$/"):
            return
        raise Violation(f"the {side} sent {method}, which a {side} does not send")
    if (known.kind == "request") != ("id" in body):
        raise Violation(f"{method} is a {known.kind}: {shown(message.raw)}")
    if "id" in body and (isinstance(message.id, bool) or not isinstance(message.id, int | str)):
        raise Violation(f"an id must be a string or an integer: {shown(message.raw)}")
    params = body.get("params")
    if params is not None and not isinstance(params, dict):
        raise Violation(f"params must be an object: {shown(message.raw)}")
    _decode(known, known.params, params or {}, f"the params of {method}")


def _check_error(message: Message, side: Side) -> None:
    text, data = message.at("/error/message", None), message.at("/error/data", None)
    code = message.code
    if not isinstance(code, int) or not isinstance(text, str):
        raise Violation(f"an error needs a code and a message: {shown(message.raw)}")
    if side == "client":
        return
    if not text:
        raise Violation(f"an error needs a code and a message: {shown(message.raw)}")
    if code not in _ERROR_CODES:
        raise Violation(f"error code {code} is not in the error table")
    if not isinstance(data, dict):
        raise Violation(f"error {code} has no data: {shown(message.raw)}")
    if not isinstance(data.get("retryable"), bool) or not isinstance(data.get("hint"), str):
        raise Violation(f"data of error {code} lacks retryable or hint: {shown(message.raw)}")


def _decode(method: Method, type_name: str, value: Json, what: str) -> None:
    try:
        # Hosts send lone surrogates and get them back, but UTF-8 cannot encode them.
        raw = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        decoded: Wire = msgspec.json.decode(raw, type=method.load(type_name))
        decoded.require_choice()
    except (msgspec.ValidationError, ValueError) as error:
        raise Violation(f"{what}: {error}") from None


_PROBLEMS_SHOWN = 5


def expect_no_problems(problems: Sequence[str]) -> None:
    """Require that every message of a run matched the schema.

    Raises:
        Violation: at least one did not.
    """
    more = len(problems) - _PROBLEMS_SHOWN
    rest = f"; and {more} more" if more > 0 else ""
    expect(not problems, "; ".join(problems[:_PROBLEMS_SHOWN]) + rest)
