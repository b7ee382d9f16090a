"""Stand-ins for tool results and images that an answer leaves out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from sidecar.engine.entry import Entry
from sidecar.messages.contract import Dialect, Mark, Media, ToolResult

How = Literal["clear", "duplicate", "trim", "failed", "media", "images", "payload"]
"""`clear` and `duplicate` leave a reference, `trim` keeps head and tail, `failed` the first lines, `media`
the text of results without their images, `images` a user's text without its images, `payload` both ends of
a large result and the most informative lines in between."""

FAILED_CHARS = 300
"""Characters kept of a failed call's result."""


class Replacement(Struct, frozen=True, array_like=True):
    """How one message is replaced; gives the same text in every answer."""

    how: How
    ref: str
    """The message's id when it was replaced."""
    turn_id: str
    tokens: int
    head: int = 0
    """Characters kept from the start."""
    tail: int = 0
    """Characters kept from the end."""

    @property
    def final(self) -> bool:
        """True if nothing more can be left out."""
        return self.how in ("clear", "duplicate")


def replaced(entry: Entry, replacement: Replacement, dialect: Dialect, recall_tool: str | None) -> Entry:
    """The message with its results or images replaced."""
    mark = Mark("stub", replacement.ref)
    if replacement.how == "images":
        note = f"Images left out: {_reference(replacement, None)}"
        raw = dialect.replace_images(entry.raw, dialect.wrap(mark, note))
        return entry.stand_in(raw, replacement.how)
    media = entry.reading.media
    texts = {
        result.call_id: dialect.wrap(mark, text)
        for result in entry.reading.results
        if (text := _text(result, replacement, recall_tool, bool(media))) is not None
    }
    if replacement.how == "payload" and media:
        first = entry.reading.results[0]
        whole = _text(first, replacement, recall_tool, media=True) or ""
        texts[first.call_id] = dialect.wrap(mark, f"{whole}\n{_left_out(media)}")
    return entry.stand_in(dialect.replace_results(entry.raw, texts), replacement.how)


def _text(result: ToolResult, replacement: Replacement, recall_tool: str | None, media: bool) -> str | None:
    """The replacement text of one result; `None` if it stays as it is."""
    whole, reference = result.text, _reference(replacement, recall_tool)
    match replacement.how:
        case "duplicate":
            return f"Tool result left out, the same call was made again later: {reference}"
        case "media" if media and len(whole) <= replacement.head + replacement.tail:
            return f"Images of a tool result left out: {reference}\n{whole}".rstrip()
        case "payload":
            return f"Large tool result, of which this is a part: {reference}\n{outlined(whole)}"
        case "trim" | "media" | "failed":
            head, tail = replacement.head, replacement.tail
            if len(whole) <= head + tail and not media:
                return None
            return f"Tool result shortened: {reference}\n{_shortened(whole, head, tail)}"
        case _:
            return f"Tool result left out: {reference}"


def _left_out(media: Sequence[Media]) -> str:
    """A note listing media that came with a result and are left out."""
    named = "; ".join(f"{medium.kind}, {medium.size} bytes" for medium in media)
    return f"[left out with it: {named}]"


def _reference(replacement: Replacement, recall_tool: str | None) -> str:
    how = f" Read it with {recall_tool}." if recall_tool else ""
    return f"{replacement.tokens} tokens, message {replacement.ref} of turn {replacement.turn_id}.{how}"


def _shortened(text: str, head: int, tail: int) -> str:
    """Start and end, cut at nearby line breaks."""
    start = text[:head]
    if (at := start.rfind("\n", head // 2)) > 0:
        start = start[:at]
    end = text[len(text) - tail :] if tail else ""
    if 0 <= (at := end.find("\n")) < tail // 2:
        end = end[at + 1 :]
    left_out = len(text) - len(start) - len(end)
    return f"{start}\n[... {left_out} characters left out ...]\n{end}".rstrip()


HEAD, TAIL = 1_600, 800
"""Characters kept from the start and from the end."""
LINES, LINE = 24, 160
"""Maximum lines shown in between, and maximum characters of each."""
SCANNED = 2_000_000
"""Characters scanned at either end; scanning more would take too long."""

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
    """The start, the most informative lines with their numbers, and the end."""
    head, tail = text[:HEAD], text[len(text) - TAIL :]
    if (at := head.rfind("\n", HEAD // 2)) > 0:
        head = head[:at]
    if 0 <= (at := tail.find("\n")) < TAIL // 2:
        tail = tail[at + 1 :]
    between = text[len(head) : len(text) - len(tail)]
    chosen = _informative(between, head.count("\n") + 1)
    lines = [f"[line {line.number}] {line.text}" for line in chosen]
    left_out = f"[... {len(between)} characters left out{', among them:' if lines else ''} ...]"
    return "\n".join([head, left_out, *lines, *(["[...]"] if lines else []), tail])


def _informative(text: str, first: int) -> list[_Line]:
    """The most informative lines in order; lines that differ only in numbers appear once."""
    parts = [(first, text)]
    if len(text) > 2 * SCANNED:
        end = text[-SCANNED:]
        parts = [(first, text[:SCANNED]), (first + text.count("\n", 0, len(text) - SCANNED), end)]
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
