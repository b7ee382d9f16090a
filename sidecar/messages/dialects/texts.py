"""Changes the visible text of a message in place; every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

ChangeTexts = Callable[[list[str]], Sequence[str]]
"""Takes the texts of one message in order, and returns as many."""

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\]}]+")
_BETWEEN = re.compile(rb"[\s,:]*")

_Span = tuple[int, int]


def change_texts(raw: bytes, kinds: frozenset[str], change: ChangeTexts) -> bytes:
    """The message with its visible texts changed: `content`, or the `text` of parts of these types.

    Returns `raw` itself if nothing changes.
    """
    spans = list(_texts(raw, kinds))
    if not spans:
        return raw
    before = [_decoded(raw[start:stop]) for start, stop in spans]
    after = change(before)
    pieces: list[bytes] = []
    at = 0
    for (start, stop), old, new in zip(spans, before, after, strict=True):
        if new != old:
            pieces += (raw[at:start], _encoded(new))
            at = stop
    return b"".join((*pieces, raw[at:])) if pieces else raw


def _texts(raw: bytes, kinds: frozenset[str]) -> Iterator[_Span]:
    """Spans of the texts of a message, as JSON strings."""
    content = _member(raw, 0, b'"content"')
    if content is None:
        return
    opening = raw[content[0] : content[0] + 1]
    if opening == b'"':
        yield content
    elif opening == b"[":
        for start, stop in _items(raw, content[0]):
            if raw[start : start + 1] == b'"':
                yield start, stop
            elif text := _text_of_part(raw, start, kinds):
                yield text


def _text_of_part(raw: bytes, start: int, kinds: frozenset[str]) -> _Span | None:
    kind = _member(raw, start, b'"type"')
    text = _member(raw, start, b'"text"')
    if kind is None or text is None or raw[text[0] : text[0] + 1] != b'"':
        return None
    literal = raw[kind[0] : kind[1]]
    return text if literal[:1] == b'"' and _decoded(literal) in kinds else None


def _member(raw: bytes, at: int, name: bytes) -> _Span | None:
    """Span of a member's value in the object at `at`; of repeated members, the last."""
    at = _skip_blanks(raw, at)
    found: _Span | None = None
    if raw[at : at + 1] != b"{":
        return None
    at = _skip_blanks(raw, at + 1)
    while key := _STRING.match(raw, at):
        start = _skip_blanks(raw, key.end())
        stop = _value_end(raw, start)
        if key[0] == name:
            found = (start, stop)
        at = _skip_blanks(raw, stop)
    return found


def _items(raw: bytes, at: int) -> Iterator[_Span]:
    at = _skip_blanks(raw, at + 1)
    while at < len(raw) and raw[at : at + 1] != b"]":
        stop = _value_end(raw, at)
        yield at, stop
        at = _skip_blanks(raw, stop)


def _value_end(raw: bytes, at: int) -> int:
    """The end of the value that begins at `at`."""
    letter = raw[at : at + 1]
    if letter in (b"{", b"["):
        depth = 0
        for token in _BRACKET.finditer(raw, at):
            if token[0] in (b"{", b"["):
                depth += 1
            elif token[0] in (b"}", b"]"):
                depth -= 1
                if not depth:
                    return token.end()
        return len(raw)
    found = (_STRING if letter == b'"' else _SCALAR).match(raw, at)
    return found.end() if found else len(raw)


def _skip_blanks(raw: bytes, at: int) -> int:
    found = _BETWEEN.match(raw, at)
    return found.end() if found else at


def _decoded(literal: bytes) -> str:
    try:
        return msgspec.json.decode(literal, type=str)
    except msgspec.DecodeError:
        # Only the standard library accepts lone surrogates, which hosts leave when they cut a string.
        import json

        return json.loads(literal, strict=False)


def _encoded(text: str) -> bytes:
    try:
        return msgspec.json.encode(text)
    except UnicodeEncodeError:
        import json

        return json.dumps(text).encode()
