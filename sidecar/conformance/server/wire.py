"""Messages as a stranger to the server's code writes them and reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import cast

import msgspec

from sidecar.conformance.kit import Violation
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
    """A message of the server, with its bytes."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        try:
            value: Json = json.loads(raw.decode())
        except (ValueError, RecursionError) as error:
            raise Violation(f"the server sent {shown(raw)}, which is no JSON in UTF-8") from error
        if not isinstance(value, dict):
            raise Violation(f"the server sent {shown(raw)}, which is no object")
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


_BY_NAME = {method.name: method for method in METHODS}
_SENT = {method.name: method for method in METHODS if method.direction != "hostToServer"}


def check_message(message: Message) -> None:
    """Hold a message to what every message of a server must be.

    Raises:
        Violation: a member is missing, of the wrong type, or out of place.
    """
    if message.body.get("jsonrpc") != "2.0":
        raise Violation(f"no jsonrpc 2.0 in {shown(message.raw)}")
    if not message.is_response:
        _check_sent(message)
        return
    if ("result" in message.body) == ("error" in message.body):
        raise Violation(f"neither result nor error, or both, in {shown(message.raw)}")
    if "error" in message.body:
        _check_error(message)


def check_result(method: str, message: Message) -> None:
    """Hold the result of a request to the type that the method table names.

    Raises:
        Violation: it is of another type.
    """
    known = _BY_NAME.get(method)
    if known is None or "error" in message.body:
        return
    if known.result is None:
        if message.body["result"] is not None:
            raise Violation(f"the result of {method} is null, not {shown(message.raw)}")
        return
    _decode(known, known.result, message.body["result"], f"the result of {method}")


def _check_sent(message: Message) -> None:
    method = message.method or ""
    if method.startswith("$/") and method not in _SENT:
        return
    known = _SENT.get(method)
    if known is None:
        raise Violation(f"the server sent {method}, which is none of its methods")
    if (known.kind == "request") != ("id" in message.body):
        raise Violation(f"{method} is a {known.kind}: {shown(message.raw)}")
    params: Json = message.body.get("params") or {}
    _decode(known, known.params, params, f"the params of {method}")


def _check_error(message: Message) -> None:
    error = message.body["error"]
    if not isinstance(error, dict):
        raise Violation(f"error is no object in {shown(message.raw)}")
    code, text, data = error.get("code"), error.get("message"), error.get("data")
    if not isinstance(code, int) or not isinstance(text, str) or not text:
        raise Violation(f"an error needs a code and a message: {shown(message.raw)}")
    if code not in _error_codes():
        raise Violation(f"error code {code} is not in the table of errors")
    if not isinstance(data, dict):
        raise Violation(f"error {code} has no data: {shown(message.raw)}")
    if not isinstance(data.get("retryable"), bool) or not isinstance(data.get("hint"), str):
        raise Violation(f"data of error {code} lacks retryable or hint: {shown(message.raw)}")


@cache
def _error_codes() -> frozenset[int]:
    return frozenset(error.code for error in ERRORS)


def _decode(method: Method, type_name: str, value: Json | Object, what: str) -> None:
    try:
        # Lone surrogates, which hosts send and get back, have no UTF-8.
        raw = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        decoded: Wire = msgspec.json.decode(raw, type=method.load(type_name))
        decoded.require_choice()
    except (msgspec.ValidationError, ValueError) as error:
        raise Violation(f"{what}: {error}") from None
