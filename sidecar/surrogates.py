"""Lone surrogate escapes in JSON text, which hosts produce when they cut a string in two.

A decoder that is strict about Unicode refuses them, so they are temporarily replaced. This code runs only
after a decoder has refused a text.
"""

import re
from collections.abc import Iterator
from typing import TypeVar, cast

import msgspec

_T = TypeVar("_T")

_HIGH = rb"[89abAB][0-9a-fA-F]{2}"
_LOW = rb"[c-fC-F][0-9a-fA-F]{2}"
_LONE = re.compile(
    rb"\\u[dD](?:%b(?!\\u[dD]%b)|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])%b)" % (_HIGH, _LOW, _LOW)
)
"""Exact once escaped backslashes are removed: a high half directly before a low one forms a pair."""

_COVER = re.compile(rb"\\u[eEfF][0-9a-fA-F]{3}")
_PRIVATE = re.compile(rb"\\u([eEfF][0-9a-fA-F]{3})|([\xee\xef][\x80-\xbf]{2})")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_NAMES = ("_id", "_ids", "_key")
"""Suffixes of the names of identifying members."""


def mask(data: bytes) -> bytes:
    """The JSON text with every lone surrogate escape replaced by `\\ufffd`; its length stays the same.

    Pairs and escaped backslashes stay as they are.
    """
    return _uncovered(_LONE.sub(rb"\\ufffd", _without_backslash_pairs(data)))


def conceal(data: bytes) -> "Veil | None":
    """The JSON text with its lone escapes replaced reversibly; `None` if it has none or cannot be handled."""
    if b"\0" in data:
        return None
    bare = _without_backslash_pairs(data)
    lone = dict.fromkeys(found.group() for found in _LONE.finditer(bare))
    if not lone:
        return None
    covers: dict[bytes, bytes] = {}
    halves: dict[int, str] = {}
    free = _free_covers(data)
    for escape in lone:
        cover = next(free, None)
        if cover is None:
            return None
        covers[escape] = cover
        halves[int(cover[2:], 16)] = escape[2:].decode().lower()
    text = _LONE.sub(lambda found: covers[found.group()], bare)
    return Veil(_uncovered(text), {cover: escape for escape, cover in covers.items()}, halves)


class Veil:
    """A decodable JSON text, and the means to restore the original bytes."""

    __slots__ = ("_characters", "_escapes", "_names", "text")

    def __init__(self, text: bytes, escapes: dict[bytes, bytes], halves: dict[int, str]) -> None:
        self.text = text
        """As long as the original; each distinct lone escape is replaced by one not used elsewhere."""
        self._escapes = escapes
        self._characters = dict.fromkeys(halves, _REPLACEMENT)
        self._names = {cover: _REPLACEMENT + digits for cover, digits in halves.items()}

    def restore_bytes(self, piece: bytes) -> bytes:
        """The original bytes of a piece of `text`."""
        return _COVER.sub(lambda found: self._escapes.get(found.group(), found.group()), piece)

    def restore(self, value: _T) -> _T:
        """Restore a value decoded from `text`: raw slices as received, strings with U+FFFD per lone half.

        In ids and keys, its four digits follow, so that distinct names stay distinct.
        """
        return cast(_T, self._restored(value, self._characters))

    def _restored(self, value: object, characters: dict[int, str]) -> object:
        if isinstance(value, msgspec.Raw):
            piece = bytes(value)
            return msgspec.Raw(self.restore_bytes(piece)) if b"\\u" in piece else value
        if isinstance(value, str):
            return value.translate(characters)
        if isinstance(value, list):
            return [self._restored(item, characters) for item in cast("list[object]", value)]
        if isinstance(value, dict):
            members = cast("dict[object, object]", value)
            return {
                self._restored(key, characters): self._restored(item, characters)
                for key, item in members.items()
            }
        if isinstance(value, msgspec.Struct):
            return self._restored_struct(value)
        return value

    def _restored_struct(self, value: msgspec.Struct) -> msgspec.Struct:
        changes: dict[str, object] = {}
        for name in value.__struct_fields__:
            before: object = getattr(value, name)
            after = self._restored(before, self._names if name.endswith(_NAMES) else self._characters)
            if after is not before:
                changes[name] = after
        return msgspec.structs.replace(value, **changes) if changes else value


def _without_backslash_pairs(data: bytes) -> bytes:
    """The text with escaped backslashes as pairs of NUL, so that `\\u` always begins an escape."""
    return data if b"\0" in data else data.replace(rb"\\", b"\0\0")


def _uncovered(data: bytes) -> bytes:
    return data.replace(b"\0\0", rb"\\")


def _free_covers(data: bytes) -> Iterator[bytes]:
    """Escapes of private-use characters that do not occur in `data`."""
    used: set[int] = set()
    for found in _PRIVATE.finditer(data):
        digits, character = found.groups()
        used.add(int(digits, 16) if digits else ord(character.decode(errors="replace")[0]))
    for code in range(0xE000, 0xF900):
        if code not in used:
            yield b"\\u%04x" % code
