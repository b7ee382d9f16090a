"""The fence around synthetic text, by which it is recognised when a host returns it.

A fence looks like this; the number is a code that only the session's store can generate:

    [ctx:summary:n12:482913057120394857]
    the content
    [/ctx]

Hosts may fold line breaks, normalise Unicode, prepend a bracketed time, append a `Runtime:` block or join
neighbouring messages. Inside fenced content, anything that looks like a fence is escaped by a backslash after
its bracket. Anybody can write a fence: `sidecar.messages.marks` decides which ones are ours, and functions
here that remove fences take those as `ours`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import zip_longest
from typing import NamedTuple, cast, get_args

from sidecar.messages.contract import Mark, MarkKind

OPENING = "[ctx:"
"""Text without this has no fence."""
OPENING_BYTES = OPENING.encode()
"""JSON without these bytes has no fence: no encoder escapes any of them."""
DIGITS = 18
"""Digits of a code."""
FIRST_DIGITS = 9
"""Digits of a first-edition checksum, which anybody could compute."""

_CLOSING = "[/ctx]"
_KINDS = frozenset(cast("tuple[str, ...]", get_args(MarkKind)))
# Patterns are compiled on first use: most processes start without encountering a fence.
_HEAD = rf"\[ctx:([A-Za-z]+):([A-Za-z0-9._~%-]*):([0-9]{{{DIGITS}}}|[0-9]{{{FIRST_DIGITS}}})\]"
_FENCE_LIKE = r"\[(?=\\*/?ctx[:\]])"
_ESCAPED = r"\[\\(?=\\*/?ctx[:\]])"
_UNSAFE = r"[^A-Za-z0-9._~-]"
_PERCENT = r"(?:%[0-9A-F]{2})+"


class Fenced(NamedTuple):
    """One fenced part of a text, whoever wrote it."""

    start: int
    stop: int
    mark: Mark
    content: str
    code: str


def enclose(mark: Mark, code: str, text: str) -> str:
    """`text` between an opening fence, with `mark` and `code`, and a closing fence."""
    return f"{OPENING}{mark.kind}:{_encode(mark.ref)}:{code}]\n{_escape(text)}\n{_CLOSING}"


def sized(mark: Mark, text: str) -> str:
    """`text` in a fence of the usual size but with an invalid code, for estimates."""
    return enclose(mark, "0" * DIGITS, text)


def fences(text: str) -> list[Fenced]:
    """The fenced parts of `text`, in order, whoever wrote them."""
    parts: list[Fenced] = []
    if OPENING not in text:
        return parts
    heads = list(re.finditer(_HEAD, text))
    for head, following in zip_longest(heads, heads[1:]):
        close = text.find(_CLOSING, head.end(), following.start() if following else len(text))
        kind, ref = head[1], _decode(head[2])
        if close >= 0 and kind in _KINDS and ref is not None:
            content = _unescape(_inner(text[head.end() : close]))
            mark = Mark(cast("MarkKind", kind), ref)
            parts.append(Fenced(head.start(), close + len(_CLOSING), mark, content, head[3]))
    return parts


def find(text: str, ours: Collection[str]) -> list[Fenced]:
    """The fenced parts of `text` that are among `ours`, in order."""
    return [part for part in fences(text) if text[part.start : part.stop] in ours] if ours else []


def strip(text: str, ours: Collection[str]) -> str:
    """`text` without the fenced parts in `ours`."""
    parts = find(text, ours)
    if not parts:
        return text
    kept: list[str] = []
    position = 0
    for part in parts:
        kept.append(text[position : part.start])
        position = part.stop
    kept.append(text[position:])
    return "".join(kept).strip()


def opened(text: str, ours: Collection[str]) -> str:
    """`text` with the fences in `ours` removed and their content kept."""
    parts = find(text, ours)
    if not parts:
        return text
    kept: list[str] = []
    position = 0
    for part in parts:
        kept += [text[position : part.start], part.content]
        position = part.stop
    return "".join([*kept, text[position:]])


def whole_mark(text: str, ours: Collection[str]) -> Mark | None:
    """The first mark of a text that consists only of `ours` and a host's decorations."""
    parts = find(text, ours)
    return parts[0].mark if parts and only(text, parts) else None


def claimed_mark(text: str) -> Mark | None:
    """The first mark of a text that consists only of fences, unverified, for readers without the secret."""
    parts = [part for part in fences(text) if len(part.code) == DIGITS]
    return parts[0].mark if parts and only(text, parts) else None


def only(text: str, parts: Collection[Fenced]) -> bool:
    """Whether `text` consists only of these parts and a host's decorations."""

    position = 0
    for part in parts:
        if not is_decoration(text, position, part.start):
            return False
        position = part.stop
    return is_decoration(text, position, len(text))


def _inner(between: str) -> str:
    """Drop the white space that `enclose`, or a host that folds it, leaves inside each fence."""
    start = 1 if between[:1].isspace() else 0
    stop = len(between) - 1 if len(between) > start and between[-1:].isspace() else len(between)
    return between[start:stop]


def _escape(text: str) -> str:
    return re.sub(_FENCE_LIKE, r"[\\", text) if "ctx" in text else text


def _unescape(text: str) -> str:
    return re.sub(_ESCAPED, "[", text) if "ctx" in text else text


def _encode(ref: str) -> str:
    return re.sub(_UNSAFE, _percent, ref)


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace"))


def _decode(ref: str) -> str | None:
    if "%" not in ref:
        return ref
    try:
        return re.sub(_PERCENT, lambda run: bytes.fromhex(run[0].replace("%", "")).decode(), ref)
    except UnicodeDecodeError:
        return None


_STAMP = r"\[[^\[\]\n]{0,40}(?:\d{4}-\d{2}-\d{2}|\d{1,2}:\d{2})[^\[\]\n]{0,40}\]"
_RUNTIME = r"Runtime:\s+\w+=(?:(?!\n[ \t]*\n).)*"
_LEADING_STAMP = rf"\s*{_STAMP}[ \t]+"
_TRAILING_RUNTIME = rf"\n[ \t]*\n[ \t]*{_RUNTIME}\s*\Z"
_ONLY_DECORATION = rf"\s*(?:\s{_RUNTIME}\s*)?(?:{_STAMP}\s*)?"
# Compiled on first use and cached by `re`: the first answer needs none of them.


def undecorated(text: str) -> str:
    """`text` without a leading time and a trailing `Runtime:` block."""
    if "[" in text:
        stamp = re.match(_LEADING_STAMP, text)
        if stamp is not None:
            text = text[stamp.end() :]
    if "Runtime:" in text:
        block = re.search(_TRAILING_RUNTIME, text, re.DOTALL)
        if block is not None:
            text = text[: block.start()]
    return text


def is_decoration(text: str, start: int, stop: int) -> bool:
    """Whether there is only decoration and white space between two offsets of `text`."""
    return re.compile(_ONLY_DECORATION, re.DOTALL).fullmatch(text, start, stop) is not None


class Markers:
    """Markers with these names that cannot be forged by the text they enclose."""

    def __init__(self, *names: str) -> None:
        self._alike = re.compile(rf"<(?=/?(?:{'|'.join(names)})\b)", re.IGNORECASE)

    def around(self, name: str, nonce: str, text: str) -> str:
        """The text between opening and closing markers of that name; markers inside it are escaped."""
        return f"<{name} id={nonce}>\n{self._alike.sub('&lt;', text)}\n</{name} id={nonce}>"
