"""The fence around synthetic text, by which it is recognised when a host hands it back.

A fence looks like this, and the number is a checksum over kind, reference and folded content:

    [ctx:summary:n12:482913057]
    the content
    [/ctx]

Hosts may fold the line breaks, normalise Unicode, put a bracketed time in front, append a `Runtime:` block,
or join neighbouring messages. Text that merely looks like a fence fails the checksum; inside fenced content
it is escaped with a backslash behind its bracket.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import NamedTuple, cast, get_args
from zlib import crc32

from sidecar.messages.contract import Mark, MarkKind
from sidecar.messages.folding import fold

OPENING = "[ctx:"
"""Text without this holds no fence."""
OPENING_BYTES = OPENING.encode()
"""JSON without these bytes holds no fence: no encoder escapes any of them."""

_CLOSING = "[/ctx]"
_KINDS = frozenset(cast("tuple[str, ...]", get_args(MarkKind)))
# Patterns are compiled at their first use: most processes start without meeting a fence.
_HEAD = r"\[ctx:([A-Za-z]+):([A-Za-z0-9._~%-]*):([0-9]{9})\]"
_FENCE_LIKE = r"\[(?=\\*/?ctx[:\]])"
_ESCAPED = r"\[\\(?=\\*/?ctx[:\]])"
_UNSAFE = r"[^A-Za-z0-9._~-]"
_PERCENT = r"(?:%[0-9A-F]{2})+"


class Fenced(NamedTuple):
    """One fenced part of a text."""

    start: int
    stop: int
    mark: Mark
    content: str


def wrap(mark: Mark, text: str) -> str:
    """`text` between an opening and a closing fence that carry `mark`."""
    return f"{OPENING}{mark.kind}:{_encode(mark.ref)}:{_checksum(mark, text)}]\n{_escape(text)}\n{_CLOSING}"


def find(text: str) -> list[Fenced]:
    """The fenced parts of `text`, in order; what fails its checksum is not among them."""
    parts: list[Fenced] = []
    if OPENING not in text:
        return parts
    heads = list(re.finditer(_HEAD, text))
    for head, following in zip_longest(heads, heads[1:]):
        close = text.find(_CLOSING, head.end(), following.start() if following else len(text))
        part = _verified(text, head, close) if close >= 0 else None
        if part is not None:
            parts.append(part)
    return parts


def strip(text: str) -> str:
    """`text` without its fenced parts."""
    parts = find(text)
    if not parts:
        return text
    kept: list[str] = []
    position = 0
    for part in parts:
        kept.append(text[position : part.start])
        position = part.stop
    kept.append(text[position:])
    return "".join(kept).strip()


def opened(text: str) -> str:
    """`text` with what is fenced in it, but without the fences themselves."""
    parts = find(text)
    if not parts:
        return text
    kept: list[str] = []
    position = 0
    for part in parts:
        kept += [text[position : part.start], part.content]
        position = part.stop
    return "".join([*kept, text[position:]])


def whole_mark(text: str) -> Mark | None:
    """The first mark of a text that is nothing but fenced parts and a host's decorations."""
    parts = find(text)
    if not parts:
        return None
    from sidecar.messages.decorations import is_decoration

    position = 0
    for part in parts:
        if not is_decoration(text, position, part.start):
            return None
        position = part.stop
    return parts[0].mark if is_decoration(text, position, len(text)) else None


def stub_ref(text: str) -> str | None:
    """The `messageId` that the first stub in `text` names."""
    for part in find(text):
        if part.mark.kind == "stub":
            return part.mark.ref
    return None


def _verified(text: str, head: re.Match[str], close: int) -> Fenced | None:
    kind = head[1]
    ref = _decode(head[2])
    if kind not in _KINDS or ref is None:
        return None
    mark = Mark(cast("MarkKind", kind), ref)
    content = _unescape(_inner(text[head.end() : close]))
    if _checksum(mark, content) != head[3]:
        return None
    return Fenced(head.start(), close + len(_CLOSING), mark, content)


def _inner(between: str) -> str:
    """Drops the one white space that `wrap` (or a host that folds it) leaves inside each fence."""
    start = 1 if between[:1].isspace() else 0
    stop = len(between) - 1 if len(between) > start and between[-1:].isspace() else len(between)
    return between[start:stop]


def _checksum(mark: Mark, content: str) -> str:
    subject = f"{mark.kind}\n{mark.ref}\n{fold(content)}"
    return f"{crc32(subject.encode('utf-8', 'replace')) % 1_000_000_000:09d}"


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
