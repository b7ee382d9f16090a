"""Adds the valid values of an enumeration to errors about an invalid one."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BAD_VALUE = re.compile(r"[Ii]nvalid enum value (?:'.*'|\d+)$", re.DOTALL)
_SHOWN = 40


def with_choices(reason: str, type_: object, steps: Sequence[str | int]) -> str:
    """msgspec's error for an invalid value, plus the valid values if `steps` leads to an enumeration."""
    if _BAD_VALUE.match(reason) is None:
        return reason
    values = sorted(_values(type_, steps), key=str)
    return f"{reason}, expected one of {', '.join(map(repr, values[:_SHOWN]))}" if values else reason


def _values(type_: object, steps: Sequence[str | int]) -> set[object]:
    # Imported here because it is slow and only needed for errors.
    from msgspec import inspect

    places: Sequence[object] = [inspect.type_info(type_)]
    for step in (*steps, None):
        places = [inner for place in places for inner in _alternatives(place)]
        if step is not None:
            places = [inner for place in places for inner in _inside(place, step)]
    return {value for place in places if isinstance(place, inspect.LiteralType) for value in place.values}


def _alternatives(place: object) -> Sequence[object]:
    from msgspec import inspect

    if isinstance(place, inspect.Metadata):
        return _alternatives(place.type)
    if isinstance(place, inspect.UnionType):
        return [inner for each in place.types for inner in _alternatives(each)]
    return [place]


def _inside(place: object, step: str | int) -> Sequence[object]:
    from msgspec import inspect

    if isinstance(place, inspect.StructType):
        return [field.type for field in place.fields if field.encode_name == step]
    if isinstance(place, inspect.ListType) and isinstance(step, int):
        return [place.item_type]
    return [place.value_type] if isinstance(place, inspect.DictType) else []
