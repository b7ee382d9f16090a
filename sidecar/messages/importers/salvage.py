"""Finds the messages in a JSON document that is torn or being edited."""

from __future__ import annotations

from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder
from typing import cast

from sidecar.messages.contract import MessageError
from sidecar.messages.dialects import dialect
from sidecar.messages.importers.detection import message_format_of
from sidecar.messages.importers.rows import one_line
from sidecar.messages.importers.transcript import Imported, Source, Span, Transcript

_MOST_LOOKS = 16
"""How often, on average, a character may be looked at: inside objects that are broken, it is once a level."""
_LEAST_LOOK = 64
_DEEP_LOOK = 65_536
"""Characters that a look is taken to cost where it ends in too many levels."""

_decode = JSONDecoder().raw_decode


def salvage(source: Source) -> Transcript:
    """The messages with a `role` that are whole, in the order in which they stand; there may be none."""
    data = source.read_bytes()
    name = "anthropic" if message_format_of(data) == "anthropic-messages" else "openai"
    transcript = Transcript(name)
    read = dialect(name).read
    for span in _objects_with_role(data):
        message = data[span.start : span.end]
        try:
            message.decode()
            read(message)
        except (MessageError, UnicodeDecodeError):
            transcript.skip("bad message")
        else:
            transcript.items.append(Imported(one_line(message), None, None, span))
    return transcript


def _objects_with_role(data: bytes) -> Iterator[Span]:
    """The outermost whole objects that say who speaks; an object that is broken is searched inside."""
    text = data.decode(errors="surrogateescape")
    counted = offset = 0
    left = _MOST_LOOKS * (len(text) + _LEAST_LOOK)
    position = text.find("{")
    while position >= 0 and left > 0:
        end, is_message = _look(text, position)
        left -= max(end - position, _LEAST_LOOK)
        if not is_message:
            position = text.find("{", position + 1)
            continue
        start = offset + _size(text[counted:position])
        counted, offset = end, start + _size(text[position:end])
        yield Span(start, offset)
        position = text.find("{", end)


def _look(text: str, position: int) -> tuple[int, bool]:
    """How far the object at `position` could be read, and whether it is a message."""
    try:
        value, end = cast("tuple[dict[str, object], int]", _decode(text, position))
    except JSONDecodeError as problem:
        return problem.pos, False
    except RecursionError:
        return position + _DEEP_LOOK, False
    return end, isinstance(value.get("role"), str)


def _size(text: str) -> int:
    return len(text.encode(errors="surrogateescape"))
