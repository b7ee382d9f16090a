"""Cuts long texts into passages to be recalled one by one, and long results down to their telling lines."""

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


KEPT_REDUCED = 512
"""Reduced texts that are kept for the next time."""
HEAD, TAIL = 240, 160
"""Characters of the beginning and of the end that stay."""
LONGEST_LINE = 200

_TELLING = re.compile(
    r"(?i)\b(?:error|exception|fail(?:ed|ure)?|fatal|panic|denied|not found|traceback|warning)\b"
    r"|[\w.~-]+/[\w./~-]+|\b\w*[a-z_]\w*\d{2,}\w*\b|错误|失败|异常"
)
_LEFT_OUT = "[…]"


@lru_cache(KEPT_REDUCED)
def reduced(text: str, most: int) -> str:
    """The text in about `most` characters: head, tail, and between them the telling lines that fit."""
    if len(text) <= most:
        return text
    head, tail = min(HEAD, most // 2), min(TAIL, most // 4)
    left = most - head - tail
    kept: list[str] = []
    for line in text[head:-tail].split("\n"):
        short = line.strip()[:LONGEST_LINE]
        if short and len(short) < left and short not in kept and _TELLING.search(short):
            kept.append(short)
            left -= len(short) + 1
    middle = [_LEFT_OUT, *kept, _LEFT_OUT] if kept else [_LEFT_OUT]
    return "\n".join((text[:head].rstrip(), *middle, text[-tail:].lstrip()))
