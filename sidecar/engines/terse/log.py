"""The activity log: the lines extracted from messages, and their form in an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from msgspec import Struct, field

from sidecar.engine.calls import Made
from sidecar.engine.entry import Entry
from sidecar.messages.terse_tags import may_have_tags, one_line, summaries

TEACHING = (
    "End every answer with one <terse> tag that records in one line what was done, for example "
    "<terse>Moved date parsing into dates.py; strict ISO only, since the API sends nothing else</terse>. "
    "Name the key decisions and why they were made, and the files, ids and values that will matter later; "
    'something like "updated the page" is of no use. The user never sees the tag. '
    "Earlier turns are shown to you as these lines only, under the heading [Context -- Activity Log]. "
    "Nothing is lost: when a line does not say enough, call context_search rather than guess or ask again, "
    'with mode "search" for exact words, "relevant" for a question, "turn" for everything in a turn such '
    "as t7."
)
ACKNOWLEDGEMENT = "Noted. I go by the log, and look up what I need of earlier turns with context_search."


LONGEST_LINE = 2000
"""Maximum characters of a tag's content; the rest is cut off."""
LONGEST_TURN_ID = 64

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MOMENT = 253_402_300_799_999
"""The end of the year 9999."""


class LogLine(Struct, frozen=True, array_like=True):
    """One line of the log."""

    since: int
    """Position of the first message of its turn."""
    position: int
    """Position of the message with the tag; 0 while it is not stored."""
    turn_id: str
    timestamp_ms: int
    summary: str
    tokens: int
    """Tokens of the line with its line break, before calibration."""

    @property
    def text(self) -> str:
        """The line as the model sees it."""
        return head(self.turn_id, self.timestamp_ms) + self.summary


class Scribe:
    """Extracts log lines from messages, which are added in order."""

    def __init__(self, count: Callable[[str], int], *, untagged: bool) -> None:
        self._count = count
        self.untagged = untagged
        """Whether a turn without a tag also gets a line."""
        self.newest: Entry | None = None
        """The message added last."""
        self._since = 0
        self._tagged = False
        self._turn = UntaggedTurn()

    @property
    def turn(self) -> int:
        """The number of the newest turn; 0 before the first message."""
        return self.newest.turn if self.newest else 0

    def add(self, entry: Entry) -> list[LogLine]:
        """The lines of a message, preceded by that of the previous turn if the message begins a new one."""
        lines: list[LogLine] = []
        if entry.turn != self.turn:
            lines = self.end_of_turn()
            self._since, self._tagged, self._turn = entry.position or 0, False, UntaggedTurn()
        self.newest = entry
        if entry.role == "assistant" and not entry.heartbeat:
            lines += self._of_assistant(entry)
        return lines

    def end_of_turn(self) -> list[LogLine]:
        """End the newest turn: its line if it had no tag and untagged turns are logged, else nothing."""
        if not self.untagged or self._tagged or self.newest is None:
            return []
        said = self._turn.line()
        return [self._line(self.newest, said)] if said else []

    def _of_assistant(self, entry: Entry) -> list[LogLine]:
        found = summaries(entry.reading.text) if may_have_tags(entry.raw) else []
        if found:
            self._tagged = True
        elif self.untagged and not self._tagged:
            self._turn.add(entry)
        return [self._line(entry, summary) for summary in found]

    def _line(self, entry: Entry, summary: str) -> LogLine:
        if len(summary) > LONGEST_LINE:
            summary = summary[: LONGEST_LINE - 1] + "…"
        turn_id = one_line(entry.turn_id)[:LONGEST_TURN_ID]
        tokens = self._count(head(turn_id, entry.timestamp_ms) + summary) + 1
        return LogLine(self._since, entry.position or 0, turn_id, entry.timestamp_ms, summary, tokens)


def head(turn_id: str, timestamp_ms: int) -> str:
    """The start of a line: turn and UTC minute."""
    moment = _EPOCH + timedelta(milliseconds=min(max(timestamp_ms, 0), _LAST_MOMENT))
    stamp = moment.isoformat(timespec="minutes")[:16]
    return f"[{turn_id} {stamp}] assistant: "


MARK = "(no summary)"
"""Prefix of the line of an untagged turn."""
LONGEST_SENTENCE = 160
"""Maximum characters of the first sentence."""
EXAMINED = 4000
"""Characters examined of an answer and of a call's arguments."""
MOST = 5
"""Maximum tools, and maximum files, named in a line."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n")
_FILE = re.compile(r"(?<![\w/.~-])[\w./~-]{0,200}[\w-]\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/])")


class UntaggedTurn(Struct):
    """Facts collected about a turn without a tag."""

    said: str = ""
    tools: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])

    def add(self, entry: Entry) -> None:
        """Collect the facts of an assistant's message."""
        reading = entry.reading
        if not self.said:
            self.said = _first_sentence(reading.said[:EXAMINED])
        for call in reading.calls:
            _note(self.tools, [one_line(call.name)])
            _note(self.files, _FILE.findall(call.arguments[:EXAMINED]))

    def line(self) -> str:
        """The line; empty if the assistant did nothing."""
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


HEADER = "[Context -- Activity Log]"
FRAME_TOKENS = 90
"""Upper bound of the tokens of the header, the acknowledgement and their fences."""


class ActivityLog(NamedTuple):
    """The lines shown, and the last position that they cover."""

    lines: Sequence[LogLine]
    upto: int

    @property
    def tokens(self) -> int:
        """Upper bound of the tokens of log and reply, before calibration; 0 without lines."""
        return FRAME_TOKENS + sum(line.tokens for line in self.lines) if self.lines else 0

    def newest(self, tokens: int) -> ActivityLog:
        """The log reduced to at most `tokens` tokens by dropping its oldest lines."""
        left = tokens - FRAME_TOKENS
        begin = len(self.lines)
        while begin and self.lines[begin - 1].tokens <= left:
            begin -= 1
            left -= self.lines[begin].tokens
        return ActivityLog(self.lines[begin:], self.upto)

    @property
    def floor(self) -> int:
        """The position of the first message logged; `upto` + 1 if the log has no line for a stored one."""
        stored = (line.position for line in self.lines if line.position)
        return next(stored, self.upto + 1)

    def messages(self) -> list[Made]:
        """The log and the reply to it; empty without lines."""
        if not self.lines:
            return []
        stamp = self.lines[-1].timestamp_ms
        since = self.lines[0].since
        log = Made(
            role="user",
            kind="activityLog",
            ref="log",
            text="\n".join((HEADER, *(line.text for line in self.lines))),
            timestamp_ms=stamp,
            covers=(since, self.upto) if since else None,
        )
        reply = Made(
            role="assistant", kind="activityLog", ref="ack", text=ACKNOWLEDGEMENT, timestamp_ms=stamp
        )
        return [log, reply]
