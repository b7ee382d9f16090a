"""Cuts what has to be summarised into pieces that can be quoted one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from sidecar.summarize.contract import SourceMessage

PieceKind = Literal["said", "call", "result", "code", "earlier"]

LONGEST_PIECE = 320
"""Characters; longer lines are cut at a comma or blank."""
LONGEST_CALL = 180
LINES_PER_RESULT = 10
"""Lines of one tool result that may be quoted: its head, errors, then lines with ids and paths."""
LONGEST_MESSAGE = 200_000
"""Characters of one message that are looked at: its beginning and its end."""

FENCES = ("```", "~~~")
SHORTEST_LINE_TO_CUT = 60
"""Bytes, so that Chinese is cut at a third of the characters."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^a-z\s])|(?<=[。！？；])(?=[^”’」』）)\s])")
CALL_LINE = re.compile(r"[\w.:/-]{1,80}\(\s*\{.*\}\s*\)$")
ERROR_WORDS = re.compile(
    r"error|exception|traceback|fail|fatal|panic|denied|not found|cannot|timed? ?out|refused|invalid"
    r"|错误|失败|异常|报错|超时|拒绝",
    re.IGNORECASE,
)
REFERENCE = re.compile(
    r"https?://\S+"  # address
    r"|(?<![\w.~-])[\w.~-]*(?:/[\w.~-]+)+"  # path
    r"|(?<![\w-])[\w-]+\.[A-Za-z][A-Za-z0-9]{0,4}\b(?!\()"  # file name
    r"|(?<![\w-])[A-Z][A-Z0-9]*[-_]\d[\w-]*"  # ticket or order number
    r"|\b(?=[a-zA-Z]*\d)(?=\d*[a-zA-Z])[0-9a-zA-Z]{6,}\b"  # generated id or hash
    r"|`[^`\n]+`"  # quoted code
)
CARRIED_LINE = re.compile(r"- \[(?P<turn>[^\]\n]{1,40})\] (?:(?P<role>\w+): )?")


class Piece(NamedTuple):
    """One sentence or line, and where it comes from."""

    order: int
    """Position among all pieces."""
    source: int
    """Position of its message among the sources, -1 for the earlier summary."""
    place: int
    """Position within its message; neighbours differ by 1."""
    is_last: bool
    kind: PieceKind
    role: str
    turn_id: str
    text: str
    """On one line, without surrounding blanks."""


def pieces_of(sources: Sequence[SourceMessage]) -> list[Piece]:
    """All pieces of the sources, in order."""
    found: list[Piece] = []
    for number, source in enumerate(sources):
        said = _result_lines(source.text) if source.role == "tool" else enumerate(_said(source.text))
        parts = list(said)
        for place, (kind, text) in parts:
            is_last = place == parts[-1][0]
            found.append(Piece(len(found), number, place, is_last, kind, source.role, source.turn_id, text))
    return found


def pieces_of_earlier(summary: str) -> list[Piece]:
    """The lines of an earlier summary, in order; those of a model are cut into sentences."""
    found: list[Piece] = []
    for line in _lines(summary):
        carried = CARRIED_LINE.match(line)
        role, turn_id = (carried["role"] or "", carried["turn"]) if carried else ("", "")
        for text in [line] if carried else _sentences(line):
            text = shorten(text, 2 * LONGEST_PIECE)
            found.append(Piece(len(found), -1, len(found), False, "earlier", role, turn_id, text))
    return found


def shorten(text: str, limit: int) -> str:
    """The text itself, or its beginning up to a blank with an ellipsis; at most `limit` characters."""
    if len(text) <= limit:
        return text
    cut = text.rfind(" ", limit * 2 // 3, limit - 1)
    return text[: cut if cut > 0 else max(0, limit - 1)].rstrip() + "…"


def _said(text: str) -> Iterator[tuple[PieceKind, str]]:
    fenced = False
    for line in _lines(text):
        if line.startswith(FENCES):
            fenced = not fenced
        elif fenced:
            yield "code", shorten(line, LONGEST_PIECE)
        elif CALL_LINE.match(line):
            yield "call", shorten(line, LONGEST_CALL)
        else:
            for sentence in _sentences(line):
                yield "said", sentence


def _result_lines(text: str) -> Iterator[tuple[int, tuple[PieceKind, str]]]:
    """The lines of a tool result that may be quoted, each with its number."""
    lines = [part for line in _lines(text) if not line.startswith(FENCES) for part in _split_long(line)]
    kept = set(range(min(1, len(lines))))
    for wanted, most in ((ERROR_WORDS, LINES_PER_RESULT // 2), (REFERENCE, LINES_PER_RESULT)):
        matching = [n for n, line in enumerate(lines) if n not in kept and wanted.search(line)]
        kept.update(_spread(matching, most - len(kept) + 1))
    for number in sorted(kept):
        yield number, ("result", lines[number])


def _spread(numbers: list[int], most: int) -> Iterable[int]:
    """At most `most` of the numbers, evenly over the list, the last one among them."""
    if len(numbers) <= most:
        return numbers
    return (numbers[-1 - step * len(numbers) // most] for step in range(most))


def _lines(text: str) -> Iterator[str]:
    if len(text) > LONGEST_MESSAGE:
        text = f"{text[: LONGEST_MESSAGE // 2]}\n{text[-LONGEST_MESSAGE // 2 :]}"
    for line in text.splitlines():
        folded = " ".join(line.split())
        if any(map(str.isalnum, folded)) or folded.startswith(FENCES):
            yield folded


def _sentences(line: str) -> list[str]:
    if len(line) < SHORTEST_LINE_TO_CUT and len(line.encode(errors="replace")) < SHORTEST_LINE_TO_CUT:
        return [line]
    return [part for sentence in SENTENCE_END.split(line) if sentence for part in _split_long(sentence)]


def _split_long(line: str) -> list[str]:
    parts: list[str] = []
    while len(line) > LONGEST_PIECE:
        cut = max(
            line.rfind(mark, LONGEST_PIECE // 2, LONGEST_PIECE) for mark in (", ", "，", "; ", '","', "},")
        )
        if cut < 0:
            cut = line.rfind(" ", LONGEST_PIECE // 2, LONGEST_PIECE)
        cut = LONGEST_PIECE if cut < 0 else cut + 1
        parts.append(line[:cut].rstrip())
        line = line[cut:].lstrip()
    return [*parts, line] if line else parts
