"""Messages as a stranger to our code writes them, cuts them out of a stream, and holds them to the schema."""

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
    """A body behind its header; bytes and text go as they are, anything else as JSON."""
    data = encode(body)
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data)


def encode(body: bytes | str | Json) -> bytes:
    """The bytes of a body; anything but bytes and text is written as JSON."""
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
    """A message of the peer under test, with its bytes."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        try:
            value: Json = json.loads(raw.decode())
        except (ValueError, RecursionError) as error:
            raise Violation(f"{shown(raw)} is not JSON in UTF-8") from error
        if not isinstance(value, dict):
            raise Violation(f"{shown(raw)} is not a JSON object")
        self.body: Object = value

    @property
    def id(self) -> Json:
        """The id, `None` where it is `null` or missing."""
        return self.body.get("id")

    @property
    def method(self) -> str | None:
        """The method of a request or a notification."""
        method = self.body.get("method")
        return method if isinstance(method, str) else None

    @property
    def is_response(self) -> bool:
        """Whether it answers a request."""
        return "method" not in self.body

    @property
    def code(self) -> Json:
        """The code of an error, `None` for a result."""
        return self.at("/error/code", None)

    @property
    def error_text(self) -> str:
        """The message of an error, empty for a result."""
        text = self.at("/error/message", "")
        return text if isinstance(text, str) else ""

    def at(self, pointer: str, default: Json | type[Violation] = Violation) -> Json:
        """The value at a JSON Pointer.

        Raises:
            Violation: there is none, and no default was given.
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
        """What a result has at a JSON Pointer.

        Raises:
            Violation: it is an error, or there is nothing.
        """
        if "error" in self.body:
            raise Violation(f"an error where a result is due: {shown(self.raw)}")
        return self.at("/result" + pointer)

    def objects(self, pointer: str) -> list[Object]:
        """The objects of a list in a result.

        Raises:
            Violation: it is no list of objects.
        """
        value = self.result(pointer)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise Violation(f"{pointer} is no list of objects: {shown(self.raw)}")
        return cast(list[Object], value)

    def text(self, pointer: str) -> str:
        """A string in a result.

        Raises:
            Violation: it is no string.
        """
        value = self.result(pointer)
        if not isinstance(value, str):
            raise Violation(f"{pointer} is no string: {shown(self.raw)}")
        return value

    def number(self, pointer: str) -> int:
        """An integer in a result.

        Raises:
            Violation: it is no integer.
        """
        value = self.result(pointer)
        if not isinstance(value, int) or isinstance(value, bool):
            raise Violation(f"{pointer} is no integer: {shown(self.raw)}")
        return value


def shown(raw: bytes, limit: int = 300) -> str:
    """Bytes for a report, cut to `limit`."""
    text = raw[:limit].decode(errors="backslashreplace")
    return text if len(raw) <= limit else f"{text}... ({len(raw)} bytes)"


_CHUNK = 65536
_HEADER_LIMIT = 8192


class Inbox:
    """The messages of a peer, cut out of the bytes that a thread reads. Every wait has a limit."""

    def __init__(self, read: Callable[[int], bytes], *, lines: bool, limit_s: float) -> None:
        """`read` returns the next bytes, none at the end; `lines` selects one message a line."""
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
            Violation: nothing comes within the limit, or bytes that are no message.
        """
        deadline = time.monotonic() + self._limit_s
        while (raw := self._take()) is None:
            try:
                chunk = self._chunks.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise Violation(f"nothing came within {self._limit_s:g} s") from None
            if not chunk:
                self._chunks.put(b"")
                if self._input.strip():
                    raise Violation(f"bytes that are no message: {shown(bytes(self._input))}")
                return None
            self._input += chunk
        return Message(raw)

    def join(self) -> None:
        """Wait for the end of the thread, once the stream has ended."""
        self._reader.join(self._limit_s)

    def _run(self) -> None:
        with suppress(OSError):
            while chunk := self._read(_CHUNK):
                self._chunks.put(chunk)
        self._chunks.put(b"")

    def _take(self) -> bytes | None:
        """The bytes of the next message, if they are all there."""
        if self._lines:
            line, newline, rest = self._input.partition(b"\n")
            if not newline:
                return None
            self._input = rest
            return bytes(line)
        head = self._input.find(b"\r\n\r\n")
        if head < 0:
            if len(self._input) > _HEADER_LIMIT:
                raise Violation(f"bytes that are no frame: {shown(bytes(self._input))}")
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
        raise Violation(f"a header block without one length: {shown(head)}")
    return int(length)


Side = Literal["server", "client"]
_METHODS = {method.name: method for method in METHODS}
_NOT_SENT: dict[Side, str] = {"server": "hostToServer", "client": "serverToHost"}
_ERROR_CODES = frozenset(error.code for error in ERRORS)


def check_message(message: Message, side: Side, answered: str | None = None) -> None:
    """Hold a message of one side to the schema; `answered` is the method of the request that it answers.

    Raises:
        Violation: a member is missing, of the wrong type, or out of place.
    """
    body = message.body
    if body.get("jsonrpc") != "2.0":
        raise Violation(f"no jsonrpc 2.0 in {shown(message.raw)}")
    if not message.is_response:
        _check_sent(message, side)
    elif ("result" in body) == ("error" in body):
        raise Violation(f"neither result nor error, or both, in {shown(message.raw)}")
    elif "error" in body:
        _check_error(message, side)
    elif (known := _METHODS.get(answered or "")) is not None:
        check_result(known.name, message)


def check_result(method: str, message: Message) -> None:
    """Hold a result to the type that the method table names.

    Raises:
        Violation: it is of another type.
    """
    known = _METHODS[method]
    if known.result is not None:
        _decode(known, known.result, message.body["result"], f"the result of {method}")
    elif message.body["result"] is not None:
        raise Violation(f"the result of {method} is null, not {shown(message.raw)}")


def _check_sent(message: Message, side: Side) -> None:
    method, body = message.method or "", message.body
    known = _METHODS.get(method)
    if known is None or known.direction == _NOT_SENT[side]:
        if side == "server" and method.startswith("$/"):
            return
        raise Violation(f"the {side} sent {method}, which is none of its methods")
    if (known.kind == "request") != ("id" in body):
        raise Violation(f"{method} is a {known.kind}: {shown(message.raw)}")
    if "id" in body and (isinstance(message.id, bool) or not isinstance(message.id, int | str)):
        raise Violation(f"an id is a string or an integer: {shown(message.raw)}")
    params = body.get("params")
    if params is not None and not isinstance(params, dict):
        raise Violation(f"params are an object: {shown(message.raw)}")
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
        raise Violation(f"error code {code} is not in the table of errors")
    if not isinstance(data, dict):
        raise Violation(f"error {code} has no data: {shown(message.raw)}")
    if not isinstance(data.get("retryable"), bool) or not isinstance(data.get("hint"), str):
        raise Violation(f"data of error {code} lacks retryable or hint: {shown(message.raw)}")


def _decode(method: Method, type_name: str, value: Json, what: str) -> None:
    try:
        # Lone surrogates, which hosts send and get back, have no UTF-8.
        raw = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        decoded: Wire = msgspec.json.decode(raw, type=method.load(type_name))
        decoded.require_choice()
    except (msgspec.ValidationError, ValueError) as error:
        raise Violation(f"{what}: {error}") from None


_PROBLEMS_SHOWN = 5


def expect_no_problems(problems: Sequence[str]) -> None:
    """Demand that no message of a run broke the schema.

    Raises:
        Violation: one did.
    """
    more = len(problems) - _PROBLEMS_SHOWN
    rest = f"; and {more} more" if more > 0 else ""
    expect(not problems, "; ".join(problems[:_PROBLEMS_SHOWN]) + rest)
