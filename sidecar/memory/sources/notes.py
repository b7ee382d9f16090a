"""Markdown notes cut into sections, with the lines at which they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MOST_FILES = 500
MOST_BYTES = 1 << 20
"""Bytes of a file beyond which it is left out."""
LONGEST = 4000
"""Characters of a section; a longer one is cut at a blank line."""

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")


class Section(NamedTuple):
    """One section of a file."""

    file: str
    """Path within the folder, with forward slashes."""
    first: int
    last: int
    """Lines, both included, counted from 1."""
    headings: tuple[str, ...]
    """Headings that it stands below, its own last."""
    text: str
    """Its lines, heading included."""


class Notes:
    """The sections of all Markdown files in a folder; files are read again when they change."""

    def __init__(self, folder: Path, pattern: str) -> None:
        self._folder = folder
        self._pattern = pattern
        self._known: dict[str, tuple[tuple[int, int], list[Section]]] = {}

    def sections(self) -> list[Section]:
        """All sections, in order of files and lines. Blocking.

        Raises:
            OSError: the folder cannot be read.
        """
        seen: dict[str, tuple[tuple[int, int], list[Section]]] = {}
        for name, path in self._files():
            facts = path.stat()
            stamp = (facts.st_mtime_ns, facts.st_size)
            known = self._known.get(name)
            if known is None or known[0] != stamp:
                known = stamp, _read(name, path) if facts.st_size <= MOST_BYTES else []
            seen[name] = known
        self._known = seen
        return [section for _, sections in seen.values() for section in sections]

    def _files(self) -> Iterator[tuple[str, Path]]:
        """Files of the folder, those that links lead out of it to left out."""
        root = self._folder.resolve(strict=True)
        listed = sorted(path for path in root.glob(self._pattern) if path.is_file())
        for path in listed[:MOST_FILES]:
            if path.resolve().is_relative_to(root):
                yield path.relative_to(root).as_posix(), path


def cut(file: str, text: str) -> list[Section]:
    """The sections of a Markdown text; headings in code blocks are none."""
    sections: list[Section] = []
    headings: list[tuple[int, str]] = []
    lines: list[str] = []
    first, fence = 1, ""

    def close() -> None:
        if any(line.strip() for line in lines):
            names = tuple(name for _, name in headings)
            sections.extend(_bounded(file, first, names, lines))

    for number, line in enumerate(text.splitlines(), 1):
        mark = _FENCE.match(line)
        if mark and (not fence or fence == mark[1]):
            fence = "" if fence else mark[1]
        heading = None if fence or mark else _HEADING.match(line)
        if heading:
            close()
            level = len(heading[1])
            headings = [*(h for h in headings if h[0] < level), (level, heading[2])]
            lines, first = [], number
        lines.append(line)
    close()
    return sections


def _read(name: str, path: Path) -> list[Section]:
    return cut(name, path.read_text(encoding="utf-8", errors="replace"))


def _bounded(file: str, first: int, names: tuple[str, ...], lines: list[str]) -> Iterator[Section]:
    """The section, in parts that end at blank lines where it is long."""
    part: list[str] = []
    size = 0
    for number, line in enumerate(lines, first):
        if part and (size + len(line) > 2 * LONGEST or (size > LONGEST and not line.strip())):
            yield Section(file, number - len(part), number - 1, names, "\n".join(part).strip())
            part, size = [], 0
        part.append(line)
        size += len(line) + 1
    if any(line.strip() for line in part):
        last = first + len(lines) - 1
        yield Section(file, last - len(part) + 1, last, names, "\n".join(part).strip())
