"""Decodes params into their type, with errors that name the member at fault."""

import re
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from sidecar.rpc.errors import InvalidParams

_T = TypeVar("_T")

_MOST_NULLS = 64
_LONGEST_REASON = 300
"""Characters; some reasons quote the value, however long it is."""
_MISSING = re.compile(r"^Object missing required field `([^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")

_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_encode = msgspec.json.encode


class Place(NamedTuple):
    """Where in params something is wrong: names of members and numbers of items, from the outside in."""

    steps: tuple[str | int, ...]

    @property
    def pointer(self) -> str:
        """As a JSON Pointer."""
        return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in self.steps)

    @property
    def words(self) -> str:
        """As in `messages[3].role`; `params` for params as a whole."""
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return text.removeprefix(".") or "params"


def decode_patiently(raw: bytes | Raw, decoder: "msgspec.json.Decoder[_T]") -> _T:
    """The params that a plain decode has refused, read once more with `null` members taken as absent.

    Raises:
        InvalidParams: the params do not fit their type.
    """
    for _ in range(_MOST_NULLS):
        try:
            return decoder.decode(raw)
        except RecursionError:
            raise InvalidParams("params are nested too deeply", hint="send flatter data") from None
        except msgspec.DecodeError as problem:
            reason, place = explain(problem)
            shorter = _without_null(raw, place.steps) if reason.endswith("got `null`") else None
            if shorter is None:
                raise InvalidParams(f"{place.words}: {reason}", path=place.pointer) from None
            raw = shorter
    raise InvalidParams("too many members are null", hint="leave out members that have no value")


def explain(problem: msgspec.DecodeError) -> tuple[str, Place]:
    """What the decoder found wrong, and where."""
    reason, _, path = str(problem).partition(" - at `")
    place: list[str | int] = []
    for name, index in _STEP.findall(path.rpartition("$")[2].rstrip("`")):
        if not name and not index:
            break
        place.append(int(index) if index else name)
    missing = _MISSING.match(reason)
    if missing is not None:
        place.append(missing[1])
        reason = "required member is missing"
    return reason[:1].lower() + reason[1:_LONGEST_REASON], Place(tuple(place))


def _without_null(raw: bytes | Raw, steps: tuple[str | int, ...]) -> bytes | None:
    """The same JSON without the member at `steps`; `None` where that is no member of an object."""
    if not steps:
        return None
    step = steps[0]
    if isinstance(step, int):
        if len(steps) == 1:
            return None
        items = _decode_items(raw)
        inner = _without_null(items[step], steps[1:])
        if inner is None:
            return None
        items[step] = Raw(inner)
        return _encode(items)
    members = _decode_members(raw)
    if step not in members:
        return None
    if len(steps) == 1:
        del members[step]
    else:
        inner = _without_null(members[step], steps[1:])
        if inner is None:
            return None
        members[step] = Raw(inner)
    return _encode(members)
