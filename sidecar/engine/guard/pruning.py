"""Chooses old tool results and images to leave out of answers.

Pruning changes the start of the list, so it happens only when a new epoch begins anyway, for everything old
enough by then. Until the next epoch, answers repeat the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from sidecar.engine.entry import Entry
from sidecar.engine.guard.pruning_rules import PruningRules
from sidecar.engine.guard.replacement import FAILED_CHARS, How, Replacement
from sidecar.engine.guard.slot import Writer
from sidecar.engine.guard.stubs import Stubs
from sidecar.messages.contract import ToolCall
from sidecar.messages.pairing import pair, units

WORTH = 0.8
"""Maximum share of a message's tokens that a worthwhile replacement may keep."""
_RANK: dict[How, int] = {
    "media": 1,
    "trim": 2,
    "payload": 2,
    "failed": 3,
    "images": 4,
    "duplicate": 5,
    "clear": 5,
}


class Pruner:
    """Chooses for one session and one set of rules."""

    def __init__(self, rules: PruningRules, writer: Writer, stubs: Stubs) -> None:
        self._rules = rules
        self._writer = writer
        self._stubs = stubs

    def choose(
        self, entries: Sequence[Entry], budget: int, spared: Collection[str] = ()
    ) -> tuple[dict[Entry, Replacement], int]:
        """New replacements for a list as it is currently sent, and the tokens they save.

        Messages whose ids are in `spared` stay.
        """
        rules = self._rules
        if not rules.enabled or sum(entry.tokens for entry in entries) <= rules.start_share * budget:
            return {}, 0
        answered, tools = _answered(entries)
        first_spared = _first_of_newest_groups(entries, max(rules.recent_groups, 1))
        newest_turn = entries[-1].turn if entries else 0
        chosen: dict[Entry, Replacement] = {}
        later: set[str] = set()
        behind = saved = 0
        for index in range(len(entries) - 1, -1, -1):
            entry = entries[index]
            if index < first_spared and entry.message_id not in spared:
                repeated = bool(answered[index]) and all(each in later for each in answered[index])
                how = self._how(entry, behind / max(budget, 1), tools[index], repeated, newest_turn)
                if how is not None and (found := self._worth(entry, how)) is not None:
                    chosen[entry.whole or entry], less = found
                    saved += less
            later.update(map(_signature, entry.reading.calls))
            behind += entry.tokens
        return chosen, saved

    def _how(
        self, entry: Entry, age: float, tools: Sequence[str], repeated: bool, newest_turn: int
    ) -> How | None:
        """How to replace a message; `None` if it stays."""
        rules, reading = self._rules, entry.reading
        if not reading.results:
            old = age >= rules.recent_share and entry.turn < newest_turn and entry.position is not None
            return "images" if old and rules.images and _shows_images(entry) else None
        if any(fnmatchcase(tool, pattern) for tool in tools for pattern in rules.protected_tools):
            return None
        if entry.tokens > rules.clear_tokens:
            if rules.duplicates and repeated:
                return "duplicate"
            if age >= rules.clear_share:
                return "clear"
        if age < rules.recent_share:
            return None
        if rules.failures and all(result.is_error for result in reading.results):
            return "failed"
        if entry.tokens > rules.trim_tokens:
            return "trim"
        return "media" if rules.images and reading.media else None

    def _worth(self, entry: Entry, how: How) -> tuple[Replacement, int] | None:
        """The replacement and the tokens it saves; `None` if it saves too little over the current one."""
        whole = entry.whole or entry
        known = self._stubs.known(whole) if entry.whole else None
        if known is not None and _RANK[how] <= _RANK[known.how]:
            return None
        head, tail = self._rules.head_chars, self._rules.tail_chars
        if how == "failed":
            head, tail = FAILED_CHARS, 0
        replacement = Replacement(how, whole.message_id, whole.turn_id, whole.tokens, head, tail)
        saved = entry.tokens - self._writer.replaced(whole, replacement).tokens
        return (replacement, saved) if saved >= entry.tokens * (1 - WORTH) else None


def _answered(entries: Sequence[Entry]) -> tuple[list[list[str]], list[list[str]]]:
    """For each message, the signatures of the calls that its results answer, and the tools' names."""
    readings = [entry.reading for entry in entries]
    signatures: list[list[str]] = [[] for _ in entries]
    tools: list[list[str]] = [[result.name for result in reading.results] for reading in readings]
    for index, places in pair(readings).answers.items():
        for place in places:
            call = readings[place.message].calls[place.number] if place else None
            signatures[index].append(_signature(call) if call else "")
            tools[index].append(call.name if call else "")
    return signatures, tools


def _signature(call: ToolCall) -> str:
    return f"{call.name}\0{' '.join(call.arguments.split())}"


def _first_of_newest_groups(entries: Sequence[Entry], groups: int) -> int:
    """Index where the newest `groups` calls with results begin; 0 if there are fewer."""
    left = groups
    for unit in reversed(units([entry.reading for entry in entries])):
        if any(entries[i].reading.calls for i in unit.indices):
            left -= 1
            if not left:
                return min(unit.indices)
    return 0 if any(entry.reading.calls for entry in entries) else len(entries)


def _shows_images(entry: Entry) -> bool:
    """Whether a user's message has images in addition to its own text."""
    reading = entry.reading
    return (
        entry.role == "user"
        and reading.mark is None
        and bool(reading.text.strip())
        and any(medium.kind == "image" for medium in reading.media)
    )
