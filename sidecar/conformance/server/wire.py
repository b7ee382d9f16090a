"""Messages as a stranger to the server's code writes them and reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from sidecar.conformance.expecting import Violation

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
