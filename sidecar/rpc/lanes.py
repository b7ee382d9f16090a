"""Queues, one a key, that let calls of one key take effect in the order received."""

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import Generic, Protocol, TypeVar


class Place(IntEnum):
    """Where a call stands with regard to its lane."""

    NONE = 0
    """It never was in a lane, or has left it."""
    WAITING = 1
    OUTSTANDING = 2
    """Started; only exclusive calls wait for it."""
    HOLDING = 3
    """Started; everything waits for it."""


class LaneMember(Protocol):
    """What a lane notes down in a call."""

    lane: "Lane | None"
    place: Place
    exclusive: bool


class Lane:
    """The calls of one key that are not answered yet."""

    __slots__ = ("held", "key", "outstanding", "ready", "waiting")

    def __init__(self, key: str) -> None:
        self.key = key
        self.held = False
        self.outstanding = 0
        self.ready = False
        self.waiting: deque[LaneMember] = deque()

    def admits(self, member: LaneMember) -> bool:
        """Whether the member, being first, may start now."""
        return not self.held and not (member.exclusive and self.outstanding)


M = TypeVar("M", bound=LaneMember)


class Lanes(Generic[M]):
    """All lanes of a connection; an idle one takes no memory.

    `start` runs a call and tells what became of it: `NONE` if it is answered or has given up its place.
    """

    __slots__ = ("_lanes", "_ready", "_start")

    def __init__(self, start: Callable[[M], Place]) -> None:
        self._start = start
        self._lanes: dict[str, Lane] = {}
        self._ready: deque[Lane] = deque()

    def submit(self, key: str, member: M) -> bool:
        """Start the call if its lane allows; otherwise it waits, and true is returned."""
        lane = self._lanes.get(key)
        if lane is not None and (lane.waiting or not lane.admits(member)):
            member.lane, member.place = lane, Place.WAITING
            lane.waiting.append(member)
            return True
        place = self._start(member)
        if place:
            self._occupy(lane or Lane(key), member, place)
        return False

    def leave(self, member: M) -> None:
        """Take a call out of its lane; those that it kept waiting start at the next `pump`."""
        lane, place = member.lane, member.place
        if lane is None:
            return
        member.lane, member.place = None, Place.NONE
        if place is Place.HOLDING:
            lane.held = False
        elif place is Place.OUTSTANDING:
            lane.outstanding -= 1
        else:
            lane.waiting.remove(member)
        if lane.waiting:
            if not lane.ready and lane.admits(lane.waiting[0]):
                lane.ready = True
                self._ready.append(lane)
        else:
            self._drop_if_idle(lane)

    def pump(self) -> None:
        """Start every waiting call whose turn has come."""
        while self._ready:
            lane = self._ready.popleft()
            lane.ready = False
            while lane.waiting and lane.admits(lane.waiting[0]):
                member: M = lane.waiting.popleft()  # pyright: ignore[reportAssignmentType]
                member.lane, member.place = None, Place.NONE
                place = self._start(member)
                if place:
                    self._occupy(lane, member, place)
            self._drop_if_idle(lane)

    def _occupy(self, lane: Lane, member: M, place: Place) -> None:
        member.lane, member.place = lane, place
        if place is Place.HOLDING:
            lane.held = True
        else:
            lane.outstanding += 1
        self._lanes[lane.key] = lane

    def _drop_if_idle(self, lane: Lane) -> None:
        if not (lane.waiting or lane.held or lane.outstanding):
            self._lanes.pop(lane.key, None)
