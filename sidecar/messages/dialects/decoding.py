"""Decodes raw messages into typed Structs, and replaces single members byte for byte."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Generic, TypeVar, cast

import msgspec
from msgspec import Raw, Struct, ValidationError

from sidecar.messages.contract import MessageError

Shape = TypeVar("Shape", bound=Struct)
Wanted = TypeVar("Wanted")

_JSON_TOKEN = rb'"(?:[^"\\]|\\.)*"|[\[\]{}]'
_NAMING = (b'"role"', b'"type"')


class MessageDecoder(Generic[Shape]):
    """Decodes raw messages into `shape`; only a value that is not an object is an error."""

    __slots__ = ("_decode", "_shape")

    def __init__(self, shape: type[Shape]) -> None:
        self._shape = shape
        self._decode = msgspec.json.Decoder(shape).decode

    def __call__(self, raw: bytes) -> Shape:
        """The members of `raw` that `shape` names.

        Raises:
            MessageError: `raw` is not a JSON object.
        """
        try:
            return self._decode(raw)
        except ValidationError:
            return self._tolerant(raw)
        except RecursionError:
            return self._shallow(raw)
        except msgspec.DecodeError:
            return self._masked(raw)

    def _masked(self, raw: bytes) -> Shape:
        """Decode with lone surrogate escapes, left by hosts that cut strings inside a pair, as U+FFFD."""
        from sidecar.surrogates import mask

        masked = mask(raw)
        try:
            return self._decode(masked)
        except ValidationError:
            return self._tolerant(masked)
        except RecursionError:
            return self._shallow(masked)
        except msgspec.DecodeError:
            raise MessageError("a message must be valid JSON") from None

    def _tolerant(self, raw: bytes) -> Shape:
        if raw.lstrip()[:1] != b"{":
            raise MessageError("a message must be a JSON object")
        return tolerant(raw, self._shape) or self._shape()

    def _shallow(self, raw: bytes) -> Shape:
        """Extract the role of a message that is nested too deeply to decode."""
        if raw.lstrip()[:1] != b"{":
            raise MessageError("a message must be a JSON object")
        found = self._shape()
        for name, value in _outer_strings(raw):
            if name in self._shape.__struct_fields__:
                setattr(found, name, value)
        return found


def tolerant(raw: bytes, wanted: type[Wanted]) -> Wanted | None:
    """`raw` decoded as `wanted`, skipping members and items of the wrong type; `None` if nothing fits."""
    return cast("Wanted | None", _tolerant(raw, wanted))


def _tolerant(raw: bytes, wanted: object) -> object | None:
    try:
        return msgspec.json.decode(raw, type=wanted)
    except (msgspec.DecodeError, RecursionError):
        pass
    opening = raw.lstrip()[:1]
    if opening == b"{":
        return _tolerant_object(raw, wanted)
    if opening == b"[":
        return _tolerant_list(raw, wanted)
    return None


def _tolerant_object(raw: bytes, wanted: object) -> Struct | None:
    shape = _member(wanted, Struct)
    if shape is None:
        return None
    from msgspec.structs import fields

    try:
        members = msgspec.json.decode(raw, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError):
        return None
    known: dict[str, object] = {}
    for field in fields(shape):
        value = members.get(field.encode_name)
        if value is None:
            continue
        found = value if field.type is Raw else _tolerant(bytes(value), field.type)
        if found is not None:
            known[field.name] = found
    return shape(**known)


def _tolerant_list(raw: bytes, wanted: object) -> list[object] | None:
    item = _item_type(wanted)
    if item is None:
        return None
    try:
        values = msgspec.json.decode(raw, type=list[Raw])
    except (msgspec.DecodeError, RecursionError):
        return None
    found = (_tolerant(bytes(value), item) for value in values)
    return [value for value in found if value is not None]


def _alternatives(wanted: object) -> tuple[object, ...]:
    """The members of a union, or the type itself."""
    from types import UnionType
    from typing import Union, get_args, get_origin

    return get_args(wanted) if get_origin(wanted) in (Union, UnionType) else (wanted,)


def _member(wanted: object, base: type[Struct]) -> type[Struct] | None:
    for kind in _alternatives(wanted):
        if isinstance(kind, type) and issubclass(kind, base):
            return kind
    return None


def _item_type(wanted: object) -> object | None:
    from typing import get_args, get_origin

    for kind in _alternatives(wanted):
        if get_origin(kind) is list:
            return get_args(kind)[0]
    return None


def _outer_strings(raw: bytes) -> list[tuple[str, str]]:
    """The string members `role` and `type` of the outermost object."""
    found: list[tuple[str, str]] = []
    depth = 0
    for token, following in pairwise(re.finditer(_JSON_TOKEN, raw, re.DOTALL)):
        text = token[0]
        if text in (b"{", b"["):
            depth += 1
        elif text in (b"}", b"]"):
            depth -= 1
        elif (
            depth == 1 and text in _NAMING and following[0][:1] == b'"' and _is_member(raw, token, following)
        ):
            found.append((text[1:-1].decode(), following[0][1:-1].decode("utf-8", "replace")))
    return found


def _is_member(raw: bytes, name: re.Match[bytes], value: re.Match[bytes]) -> bool:
    return raw[name.end() : value.start()].strip() == b":"


def json_text(value: Raw | bytes | None) -> str:
    """The JSON text of a value; a JSON string is decoded, null and an absent value become empty."""
    raw = b"" if value is None else bytes(value)
    if raw[:1] == b'"':
        return msgspec.json.decode(raw, type=str)
    return "" if raw == b"null" else raw.decode("utf-8", "replace")


_object = msgspec.json.Decoder(dict[str, Raw])
_list = msgspec.json.Decoder(list[Raw])


def members(raw: bytes) -> dict[str, Raw] | None:
    """The members of a JSON object as bytes; `None` if `raw` cannot be split."""
    try:
        return _object.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        pass
    from sidecar.surrogates import mask

    try:
        return _object.decode(mask(raw))
    except (msgspec.DecodeError, RecursionError):
        return None


def items(raw: bytes) -> list[Raw] | None:
    """The items of a JSON array as bytes; `None` if `raw` is not an array."""
    try:
        return _list.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def with_members(raw: bytes, changes: dict[str, bytes]) -> bytes:
    """The object `raw` with these members set to new JSON; order and other members stay byte for byte."""
    found = members(raw)
    if found is None:
        return raw
    for name, value in changes.items():
        found[name] = Raw(value)
    return msgspec.json.encode(found)


def with_items(values: list[Raw]) -> bytes:
    """A JSON array of these values."""
    return msgspec.json.encode(values)
