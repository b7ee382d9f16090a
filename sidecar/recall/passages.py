"""Cuts long texts into passages, which can be recalled one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

PASSAGE = 640
"""Characters of a passage, about, where a character is a quarter of a token."""
SHORTEST = 40
KEPT = 2048
"""Texts whose passages are kept for the next time."""

_SENTENCE = re.compile(r"[^.!?。！？；]*[.!?。！？；]*\s*")


def rough_tokens(text: str) -> int:
    """About how many tokens a text takes; quick, for comparing passages with each other."""
    if text.isascii():
        return len(text) // 4 + 1
    wide = (len(text.encode("utf-8", "replace")) - len(text)) // 2
    return (len(text) - wide) // 4 + wide + 1


@lru_cache(KEPT)
def passages(text: str) -> tuple[str, ...]:
    """The text in pieces of about `PASSAGE` that end with sentences or lines; whole where it is short."""
    weight = rough_tokens(text) * 4
    if weight <= PASSAGE * 3 // 2:
        return (text,) if text.strip() else ()
    length = max(PASSAGE * len(text) // weight, SHORTEST)
    found: list[str] = []
    piece: list[str] = []
    size = 0
    for part in _parts(text, length):
        if size and size + len(part) > length:
            found.append("".join(piece))
            piece, size = [], 0
        piece.append(part)
        size += len(part)
    found.append("".join(piece))
    return tuple(each for each in found if each.strip())


def _parts(text: str, length: int) -> Iterator[str]:
    """Lines, sentences of long lines, stretches of long sentences."""
    for line in text.splitlines(keepends=True):
        if len(line) <= length:
            yield line
            continue
        for sentence in _SENTENCE.findall(line):
            for begin in range(0, len(sentence), length):
                yield sentence[begin : begin + length]
