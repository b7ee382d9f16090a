"""Makes one line for a turn in which the assistant wrote no tag, without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from sidecar.engine.entry import Entry
from sidecar.messages.fence import strip
from sidecar.messages.terse_tags import one_line

MARK = "(no summary)"
"""Stands in front of every such line."""
LONGEST_SENTENCE = 160
"""Characters of the first sentence."""
LOOKED_AT = 4000
"""Characters of an answer, and of a call's arguments, that are looked at."""
MOST = 5
"""Tools, and files, that are named."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n")
_FILE = re.compile(r"(?<![\w/.~-])[\w./~-]{0,200}[\w-]\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/])")


class UntaggedTurn(Struct):
    """What is noted of a turn while its messages pass by."""

    said: str = ""
    tools: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])

    def add(self, entry: Entry) -> None:
        """Take in a message of the assistant."""
        reading = entry.reading
        if not self.said:
            self.said = _first_sentence(strip(reading.text)[:LOOKED_AT])
        for call in reading.calls:
            _note(self.tools, [one_line(call.name)])
            _note(self.files, _FILE.findall(call.arguments[:LOOKED_AT]))

    def line(self) -> str:
        """The line, empty where the assistant did nothing."""
        parts = [self.said] if self.said else []
        for label, names in (("tools", self.tools), ("files", self.files)):
            if names:
                more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
                parts.append(f"[{label}: {', '.join(names[:MOST])}{more}]")
        return f"{MARK} {' '.join(parts)}" if parts else ""


def _note(known: list[str], names: Sequence[str]) -> None:
    known += [name for name in dict.fromkeys(names) if name and name not in known]


def _first_sentence(text: str) -> str:
    sentences = (one_line(sentence) for sentence in _SENTENCE_END.split(text))
    first = next((sentence for sentence in sentences if any(map(str.isalnum, sentence))), "")
    return first if len(first) <= LONGEST_SENTENCE else first[: LONGEST_SENTENCE - 1].rstrip() + "…"
