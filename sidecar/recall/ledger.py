"""Keeps what holds whatever is asked, instructions and the plan, while a history grows.

It is kept up with each message that is stored, and saved with the session: so a session that was served from
its beginning is never searched for it. A history that came as a whole is, within the time that there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import MsgspecError, Struct, json

from sidecar.recall.instructions import Instruction, standing, standing_since
from sidecar.recall.plans import PlanFound, newest_of, newest_plan
from sidecar.recall.retrieval import Remark, RemarkSource

NEW = 300
"""Messages that are read to catch up; where there are more, those with telling words are searched for."""
MOST = 80
"""Instructions that are kept: the rules first, then the newest."""


class BoundedSource(RemarkSource, Protocol):
    """A history that is searched within limits."""

    @property
    def is_whole(self) -> bool:
        """Whether every search so far came to its end."""
        ...


class _Saved(Struct, frozen=True, array_like=True):
    """A ledger as it is stored."""

    version: str
    told: int
    standing: list[Instruction]
    plan: PlanFound | None


class Ledger:
    """The instructions and the plan of one session."""

    def __init__(self) -> None:
        self.standing: Sequence[Instruction] = ()
        """What users asked to hold, the most important first."""
        self.plan: PlanFound | None = None
        """The plan that was stated last."""
        self.told = 0
        """The position up to which that is known."""

    def add(self, remark: Remark) -> None:
        """Take in a message, where it is the next one; others are caught up with later."""
        if remark.position == self.told + 1:
            self._add((remark,))
            self.told += 1

    async def catch_up(self, source: BoundedSource, last: int) -> None:
        """Take in all messages up to the position `last`; of many, what a search finds in its time."""
        if last <= self.told:
            return
        if self.told and last - self.told <= NEW:
            self._add((await source.remarks(range(self.told + 1, last + 1))).values())
        else:
            newest = range(max(last - NEW, 0) + 1, last + 1)
            self.standing = await standing(source, last)
            self.plan = newest_of((await source.remarks(newest)).values(), None)
            if self.plan is None:
                self.plan = await newest_plan(source, newest[0] - 1)
            self.standing = self.standing[:MOST]
            if not source.is_whole:
                return  # what is missing is looked for again the next time
        self.told = last

    def encoded(self, version: str) -> bytes:
        """The ledger of a history of this version, to be saved."""
        plan = self.plan
        bare = [each._replace(remark=each.remark._replace(text="")) for each in self.standing]
        kept = plan._replace(remark=plan.remark._replace(text="")) if plan else None
        return json.encode(_Saved(version, self.told, bare, kept))

    def restore(self, saved: bytes | None, version: str) -> None:
        """Go on where a saved ledger ended, unless the history has changed otherwise than by growing."""
        try:
            found = json.decode(saved, type=_Saved) if saved else None
        except MsgspecError:
            return
        if found is not None and found.version == version and found.told > self.told:
            self.standing, self.plan, self.told = found.standing, found.plan, found.told

    def _add(self, remarks: Iterable[Remark]) -> None:
        listed = list(remarks)
        self.standing = standing_since(listed, self.standing)[:MOST]
        self.plan = newest_of(listed, self.plan)
