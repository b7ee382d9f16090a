"""Recognises plans and to-do lists, so that the newest one stays in view until it is done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from msgspec import DecodeError, json

from sidecar.recall.retrieval import Remark, RemarkSource
from sidecar.store.search import SearchQuery

FEWEST, MOST = 2, 60
"""Items of a plan."""
LONGEST_ITEM, LONGEST_TEXT = 240, 40_000
"""Characters of an item that are kept, and of a message that is looked at."""
CANDIDATES = 4
"""Messages with one trace of a plan that are looked at."""
TRACES = (
    *("[x]", '"todos"', '"plan"', "plan:", "to-do", "todo"),
    *("next steps", "action items", "task list", "计划", "待办", "步骤"),
)
"""What plans and calls of planning tools have in them, for the search: words that an index has. A list
of open boxes alone has none: it is found among the newest messages, or was noted when it was stored."""

_CALL = re.compile(r"(?im)^[\w.:/-]*(?:todo|to_do|plan|task_?list)[\w.:/-]*\(\s*(\{.*\})\s*\)$")
_BOX = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)])?\s*\[(?P<done>[ xX✓✔~-])\]\s+(?P<text>\S.*)$")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)、]|step \d{1,2}[:.])\s+(?P<text>\S.*)$", re.IGNORECASE)
_HEADING = re.compile(
    r"(?i)^\W*(?:(?:here(?:'s| is)|this is|my|our|the|a|updated|revised|current|implementation|migration|"
    r"work|project|overall|next|remaining)\s+)*"
    r"(?:plan|to-?do(?:s| list)?|task list|next steps|action items)\b[^.?!]{0,80}$"
    r"|^\W*(?:计划|待办|步骤|実行計画)[^。？！]{0,40}$"
)
_TEXT_MEMBERS = ("content", "step", "title", "text", "task", "description", "subject", "name")
_DONE = frozenset(("completed", "complete", "done", "finished", "cancelled", "canceled", "skipped"))
_NOW = frozenset(("in_progress", "in-progress", "active", "doing", "started"))


class Item(NamedTuple):
    """One step of a plan."""

    text: str
    mark: str
    """`x` where it is done, `>` where it is being done, a blank otherwise."""

    @property
    def line(self) -> str:
        """The step as a line of a list."""
        return f"- [{self.mark}] {self.text}"


class PlanFound(NamedTuple):
    """A plan, and the message that states it."""

    remark: Remark
    items: Sequence[Item]

    @property
    def is_done(self) -> bool:
        """Whether nothing of it is left to do."""
        return all(item.mark == "x" for item in self.items)


def plan_in(remark: Remark) -> PlanFound | None:
    """The plan that a message states, `None` where it states none; of several the last one."""
    if remark.is_result or remark.role not in ("user", "assistant"):
        return None
    text = remark.text[:LONGEST_TEXT]
    for arguments in reversed(_CALL.findall(text)):
        items = _of_call(arguments)
        if items is not None:
            return PlanFound(remark, items[:MOST])
    items = _of_text(text)
    return PlanFound(remark, items[:MOST]) if len(items) >= FEWEST else None


async def newest_plan(source: RemarkSource, last: int) -> PlanFound | None:
    """The plan that was stated last, up to the position `last`."""
    positions: set[int] = set()
    for trace in TRACES:
        query = SearchQuery(
            text=trace,
            kind="literal",
            roles=("user", "assistant"),
            limit=CANDIDATES,
            last=last,
            newest_first=True,
        )
        positions.update(hit.position for hit in (await source.search(query)).hits)
    return newest_of((await source.remarks(sorted(positions))).values(), None)


def newest_of(remarks: Iterable[Remark], before: PlanFound | None) -> PlanFound | None:
    """The newest plan of some messages, or else the one `before` them."""
    for remark in sorted(remarks, key=lambda remark: -remark.position):
        found = plan_in(remark)
        if found is not None:
            return found
    return before


def _of_text(text: str) -> list[Item]:
    """The last check list of a text, or else the last list under a heading that calls it a plan."""
    boxes: list[Item] = []
    listed: list[Item] = []
    current: list[Item] | None = None
    for line in text.split("\n"):
        if not line.strip():
            continue
        box, bullet = _BOX.match(line), _BULLET.match(line)
        if box:
            boxes.append(Item(box["text"].strip()[:LONGEST_ITEM], " " if box["done"] == " " else "x"))
        if _HEADING.match(line) and not box:
            current = []
        elif current is not None and bullet:
            current.append(Item(bullet["text"].strip("* ")[:LONGEST_ITEM], " "))
            if len(current) >= FEWEST:
                listed = current
        elif current is not None and not line.startswith((" ", "\t")):
            current = None
    return boxes if len(boxes) >= FEWEST else listed


def _of_call(arguments: str) -> list[Item] | None:
    """The items in the arguments of a planning tool, `None` where there is no list."""
    try:
        value: object = json.decode(arguments)
    except (DecodeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    for member in cast("dict[str, object]", value).values():
        if isinstance(member, list):
            items = [item for each in cast("list[object]", member) if (item := _item(each))]
            if items or not member:
                return items
        elif isinstance(member, str):
            items = _of_text(member)
            if len(items) >= FEWEST:
                return items
    return None


def _item(value: object) -> Item | None:
    if isinstance(value, str):
        return Item(" ".join(value.split())[:LONGEST_ITEM], " ") if value.strip() else None
    if not isinstance(value, dict):
        return None
    members = cast("dict[str, object]", value)
    text = next((each for name in _TEXT_MEMBERS if isinstance(each := members.get(name), str) and each), "")
    status = str(members.get("status", "")).lower()
    mark = "x" if status in _DONE or members.get("done") is True else ">" if status in _NOW else " "
    return Item(" ".join(text.split())[:LONGEST_ITEM], mark) if text.strip() else None
