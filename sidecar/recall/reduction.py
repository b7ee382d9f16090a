"""Reduces the result of a tool to what is needed to go on: its ends, and lines with names or errors."""

from __future__ import annotations

import re
from functools import lru_cache

KEPT = 512
"""Reduced texts that are kept for the next time."""
HEAD, TAIL = 240, 160
"""Characters of the beginning and of the end that stay."""
LONGEST_LINE = 200

_TELLING = re.compile(
    r"(?i)\b(?:error|exception|fail(?:ed|ure)?|fatal|panic|denied|not found|traceback|warning)\b"
    r"|[\w.~-]+/[\w./~-]+|\b\w*[a-z_]\w*\d{2,}\w*\b|错误|失败|异常"
)
_LEFT_OUT = "[…]"


@lru_cache(KEPT)
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
