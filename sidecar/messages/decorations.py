"""Recognises what hosts put around a text before they send it.

OpenClaw puts a bracketed time in front of a user's text, and appends a block that starts with `Runtime:`.
"""

from __future__ import annotations

import re

_STAMP = r"\[[^\[\]\n]{0,40}(?:\d{4}-\d{2}-\d{2}|\d{1,2}:\d{2})[^\[\]\n]{0,40}\]"
_RUNTIME = r"Runtime:\s+\w+=(?:(?!\n[ \t]*\n).)*"
_LEADING_STAMP = re.compile(rf"\s*{_STAMP}[ \t]+")
_TRAILING_RUNTIME = re.compile(rf"\n[ \t]*\n[ \t]*{_RUNTIME}\s*\Z", re.DOTALL)
_ONLY_DECORATION = re.compile(rf"\s*(?:\s{_RUNTIME}\s*)?(?:{_STAMP}\s*)?", re.DOTALL)


def undecorated(text: str) -> str:
    """`text` without the time in front of it and the `Runtime:` block behind it."""
    if "[" in text:
        stamp = _LEADING_STAMP.match(text)
        if stamp is not None:
            text = text[stamp.end() :]
    if "Runtime:" in text:
        block = _TRAILING_RUNTIME.search(text)
        if block is not None:
            text = text[: block.start()]
    return text


def is_decoration(text: str, start: int, stop: int) -> bool:
    """Whether nothing but decorations and white space stands between two offsets of `text`."""
    return _ONLY_DECORATION.fullmatch(text, start, stop) is not None
