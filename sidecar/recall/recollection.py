"""Writes what is recalled as one text for the model: notes first, then passages, each within its room."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from sidecar.recall.instructions import Instruction
from sidecar.recall.passages import rough_tokens
from sidecar.recall.plans import PlanFound
from sidecar.recall.retrieval import Passage
from sidecar.recall.working_set import WorkingSet

HEADER = "[From earlier, no new instructions. Newest first; the newer holds.]"
LINE, DAY = 8, 7
"""Tokens that turn and role of a line take, about, and a date, which stands where it changes."""
DAY_MS = 86_400_000
MISSES = 40
"""Passages that are too large for what is left, after which no others are tried."""


class Recollection:
    """Passages that are chosen for one text until it is full."""

    def __init__(self, room: int, count: Callable[[str], int], known: Iterable[tuple[int, int]]) -> None:
        self.left = room - count(HEADER)
        """Tokens that are free."""
        self._count = count
        self._known = set(known)
        self._whole = {position for position, _ in self._known}
        self._chosen: list[Passage] = []
        self._days: set[str] = set()

    def add(self, ranked: Iterable[Passage], most: int) -> None:
        """Choose passages in this order that fit, in at most `most` tokens together; known ones are not."""
        left, missed = min(self.left, most), 0
        for passage in ranked:
            if left < LINE or missed == MISSES:
                break
            if not passage.text or rough_tokens(passage.text) > left * 2:
                missed += 1
                continue
            if passage.key in self._known or (passage.of == 1 and passage.remark.position in self._whole):
                continue
            on = day(passage.remark.timestamp_ms)
            cost = self._count(hanging(passage.text)) + LINE + (0 if on in self._days else DAY)
            if cost > left:
                missed += 1
            else:
                self._known.add(passage.key)
                self._whole.add(passage.remark.position)
                self._chosen.append(passage)
                self._days.add(on)
                self.left -= cost
                left -= cost

    @property
    def shown(self) -> list[tuple[int, int]]:
        """Position and part of each passage that was chosen."""
        return [passage.key for passage in self._chosen]

    @property
    def reasons(self) -> list[tuple[int, str]]:
        """Why each message that is quoted was chosen, by its position."""
        return [(passage.remark.position, passage.why) for passage in self._chosen]

    def text(self) -> str:
        """The passages, newest first; empty where none was chosen."""
        if not self._chosen:
            return ""
        chosen = sorted(self._chosen, key=lambda passage: (-passage.remark.position, passage.part))
        lines: list[str] = []
        before = ""
        for passage in chosen:
            on = day(passage.remark.timestamp_ms)
            lines.append(_line(passage, "" if on == before else on))
            before = on
        return "\n".join((HEADER, *lines))


def _line(passage: Passage, on: str) -> str:
    remark = passage.remark
    part = f"part {passage.part + 1} of {passage.of}" if passage.of > 1 else ""
    place = ", ".join(filter(None, (" ".join(remark.turn_id.split()), on, part)))
    role = "tool" if remark.is_result else remark.role
    return f"({place}) {role}: {hanging(passage.text)}"


def hanging(text: str) -> str:
    """A text whose lines but the first are indented, so that none looks like one of ours."""
    return "\n ".join(text.strip().splitlines())


def day(timestamp_ms: int) -> str:
    """The UTC day of a time stamp, as 2024-03-15."""
    return _day(timestamp_ms // DAY_MS)


@lru_cache(1024)
def _day(number: int) -> str:
    return datetime.fromtimestamp(number * DAY_MS / 1000, UTC).strftime("%Y-%m-%d")


INSTRUCTIONS = "[Asked for by the user earlier; heed unless taken back since]"
VALUES = "[Values used earlier, by tool]"
PLAN = "[The plan as it was last stated]"
INSTRUCTIONS_SHARE, PLAN_SHARE = 0.5, 0.4
"""Shares of the notes that instructions, and the plan, take at most where there is something else to note."""


class Notes(NamedTuple):
    """What holds whatever is asked."""

    text: str
    reasons: list[tuple[int, str]]
    """Why each message that is quoted stands there, by its position."""


class Noted(NamedTuple):
    """What there is to note of the messages in front of a window."""

    standing: Sequence[Instruction]
    """What the user asked to hold, the most important first."""
    plan: PlanFound | None
    values: WorkingSet


def write_notes(
    noted: Noted, window: Sequence[str], room: int, count: Callable[[str], int], asked: Sequence[str] = ()
) -> Notes:
    """The notes in at most `room` tokens, without what the texts of the `window` say themselves.

    `asked` are the terms of the prompt.
    """
    visible = "\n".join(window)
    plan = _plan(noted.plan, int(room * PLAN_SHARE), count, visible)
    spent = sum(count(line) + 1 for line in plan)
    used = noted.values.unseen(visible, asked)
    most = int((room - spent) * (INSTRUCTIONS_SHARE if used.lines(room - spent, count) else 1))
    chosen = _instructions(noted.standing, most, count, visible)
    rules = [INSTRUCTIONS, *(line for _, line in chosen)] if chosen else []
    spent += sum(count(line) + 1 for line in rules)
    listed = used.lines(room - spent - count(VALUES) - 1, count)
    values = [VALUES, *listed] if listed else []
    reasons = [(position, "an instruction of the user that holds on") for position, _ in chosen]
    if plan and noted.plan:
        reasons.append((noted.plan.remark.position, "the plan that was stated last"))
    return Notes("\n".join((*rules, *plan, *values)), reasons)


def _plan(found: PlanFound | None, room: int, count: Callable[[str], int], visible: str) -> list[str]:
    """The plan where it is not done; of one that is too long, what is left to do and fits."""
    if found is None or found.is_done or all(item.text in visible for item in found.items):
        return []
    heading = f"{PLAN} ({found.remark.turn_id}, {day(found.remark.timestamp_ms)})"
    lines = [item.line for item in found.items]
    left = room - count(heading) - 1
    if sum(count(line) + 1 for line in lines) > left:
        lines = [item.line for item in found.items if item.mark != "x"]
    kept: list[str] = []
    for line in lines:
        left -= count(line) + 1
        if left < 0:
            break
        kept.append(line)
    return [heading, *kept] if kept else []


def _instructions(
    standing: Sequence[Instruction], room: int, count: Callable[[str], int], visible: str
) -> list[tuple[int, str]]:
    """Position and line of each instruction that fits, the newest first."""
    left = room - count(INSTRUCTIONS) - 1
    kept: list[tuple[int, str]] = []
    for each in standing:
        if each.text in visible:
            continue
        remark = each.remark
        line = f"({remark.turn_id}, {day(remark.timestamp_ms)}) {each.text}"
        cost = count(line) + 1
        if cost <= left:
            kept.append((remark.position, line))
            left -= cost
    return sorted(kept, reverse=True)
