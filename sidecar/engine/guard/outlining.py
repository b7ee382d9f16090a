"""Shows of a large text its ends, with the lines between them that carry ids, paths or errors."""

from __future__ import annotations

import re
from typing import NamedTuple

HEAD, TAIL = 1_600, 800
"""Characters of the beginning and of the end."""
LINES, LINE = 24, 160
"""Lines in between that are shown, and the characters of each."""
LOOKED_AT = 2_000_000
"""Characters that are looked through at either end; more would take too long."""

_ERROR = re.compile(
    r"error|exception|traceback|fail|fatal|panic|denied|refused|timeout|timed out|not found|cannot|warning"
    r"|错误|失败|异常|超时",
    re.IGNORECASE,
)
_PATH = re.compile(r"[\w.-]/[\w.-]|\w\.(?:py|js|ts|go|rs|java|c|h|cpp|md|json|toml|ya?ml|txt|csv|sql|log)\b")
_ID = re.compile(r"\b[0-9a-f]{7,}\b|\b[A-Z][A-Z0-9]*-\d+\b|\b\w+_\d+\b|#\d+\b", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")


class _Line(NamedTuple):
    worth: int
    number: int
    text: str


def outlined(text: str) -> str:
    """The beginning, the lines that say most, each with its number, and the end."""
    head, tail = text[:HEAD], text[len(text) - TAIL :]
    if (at := head.rfind("\n", HEAD // 2)) > 0:
        head = head[:at]
    if 0 <= (at := tail.find("\n")) < TAIL // 2:
        tail = tail[at + 1 :]
    between = text[len(head) : len(text) - len(tail)]
    chosen = _telling(between, head.count("\n") + 1)
    lines = [f"[line {line.number}] {line.text}" for line in chosen]
    left_out = f"[... {len(between)} characters left out{', among them:' if lines else ''} ...]"
    return "\n".join([head, left_out, *lines, *(["[...]"] if lines else []), tail])


def _telling(text: str, first: int) -> list[_Line]:
    """The lines worth most, those alike but for numbers shown once; in order."""
    parts = [(first, text)]
    if len(text) > 2 * LOOKED_AT:
        end = text[-LOOKED_AT:]
        parts = [(first, text[:LOOKED_AT]), (first + text.count("\n", 0, len(text) - LOOKED_AT), end)]
    best: dict[str, _Line] = {}
    for start, part in parts:
        for number, line in enumerate(part.split("\n"), start):
            shown = line[: 4 * LINE].strip()
            worth = 4 * bool(_ERROR.search(shown)) + 2 * bool(_PATH.search(shown)) + bool(_ID.search(shown))
            alike = _DIGITS.sub("0", shown)
            if worth and (alike not in best or worth > best[alike].worth):
                best[alike] = _Line(worth, number, shown[:LINE])
    chosen = sorted(best.values(), key=lambda line: (-line.worth, line.number))[:LINES]
    return sorted(chosen, key=lambda line: line.number)
