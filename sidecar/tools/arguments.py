"""Reads the arguments that a model wrote."""

from __future__ import annotations

import re
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from sidecar.choices import with_choices
from sidecar.tools.contract import ArgumentError

Arguments = TypeVar("Arguments", bound=Struct)

Count = Annotated[float, Meta(ge=0, multiple_of=1)]
"""A whole number, zero or more; JSON Schema takes `3.0` for one."""
Number = Annotated[float, Meta(ge=1, multiple_of=1)]
"""A whole number, one or more."""

_MEMBER = re.compile(r" - at `\$\.?([^`]*)`$")
_MISSING = re.compile(r"Object missing required field `([^`]*)`")
_WHOLE = re.compile(r"`float(?: \| null)?`(?: that's a multiple of 1\.0)?")


def read_arguments(raw: bytes, kind: type[Arguments]) -> Arguments:
    """The arguments as `kind`; members that it does not have are passed over.

    Raises:
        ArgumentError: one is missing, or of the wrong type or size.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        text = str(error)
        place = _MEMBER.search(text)
        reason = text[: place.start()] if place else text
        if missing := _MISSING.match(reason):
            raise ArgumentError("is required", missing[1]) from None
        argument = place[1] if place else ""
        reason = with_choices(_WHOLE.sub("a whole number", reason).lower(), kind, argument.split("."))
        raise ArgumentError(reason, argument) from None
    except (msgspec.DecodeError, RecursionError):
        raise ArgumentError("expected a JSON object") from None


def whole(value: float | None, default: int) -> int:
    """A number that was read, as an integer."""
    return default if value is None else int(min(value, 2**53))
