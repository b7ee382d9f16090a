"""Turns messages into the bytes that travel, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import cast

import msgspec
from msgspec import Raw, Struct

Message = bytes | bytearray | Raw | Mapping[str, object] | Struct
"""A message as a caller has it: its JSON bytes, which arrive as they are, or something to encode."""

_decode_any = msgspec.json.Decoder(Raw).decode


def encode_message(message: Message) -> Raw:
    """The JSON of one message; bytes are checked, and otherwise left as they are.

    Raises:
        ValueError: the bytes are no JSON object.
        TypeError: the message is of no type that can be encoded.
    """
    if isinstance(message, (bytes, bytearray, Raw)):
        return Raw(_checked(bytes(message)))
    if isinstance(message, (Mapping, Struct)):  # pyright: ignore[reportUnnecessaryIsInstance]
        return Raw(_encoded(message))
    raise TypeError(f"a message is a mapping, a Struct or JSON bytes, not {type(message).__name__}")


def encode_messages(messages: Iterable[Message] | None) -> list[Raw] | None:
    """The JSON of each message; `None` stays `None`."""
    return None if messages is None else [encode_message(message) for message in messages]


def decode_message(message: bytes | Raw) -> dict[str, object]:
    """The message as a dictionary; halves of surrogate pairs, which hosts produce by cutting, survive."""
    try:
        return msgspec.json.decode(message, type=dict[str, object])
    except msgspec.DecodeError:
        return cast("dict[str, object]", json.loads(bytes(message)))


def encode_object(value: Mapping[str, object] | Struct | bytes | Raw) -> Raw:
    """The JSON of an object that is no message, such as settings or arguments.

    Raises:
        ValueError: the bytes are no JSON object.
    """
    return encode_message(value)


def encode_value(value: object) -> Raw:
    """The JSON of any value; bytes count as JSON already."""
    return Raw(value) if isinstance(value, (bytes, Raw)) else Raw(_encoded(value))


def _encoded(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value) if isinstance(value, Struct) else value
        return json.dumps(plain, separators=(",", ":")).encode()


def _checked(message: bytes) -> bytes:
    """Anything but one JSON object would break the request that carries it."""
    if message.lstrip(b" \t\r\n")[:1] != b"{":
        raise ValueError("a message must be a JSON object")
    try:
        message.decode()
        _decode_any(message)
    except UnicodeDecodeError:
        raise ValueError("a message must be UTF-8") from None
    except msgspec.DecodeError as problem:
        try:
            json.loads(message)
        except ValueError:
            raise ValueError(f"a message must be valid JSON: {problem}") from None
    return message
