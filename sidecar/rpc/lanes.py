"""One queue per key, so that calls with the same key take effect in the order received."""

from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Generic, Protocol, TypeVar


class Place(IntEnum):
    """A call's state in its lane."""

    NONE = 0
    """Never in a lane, or has left it."""
    WAITING = 1
    OUTSTANDING = 2
    """Running; only exclusive calls wait for it."""
    HOLDING = 3
    """Running; every later call waits for it."""


class LaneMember(Protocol):
    """The fields of a call that lanes maintain."""

    lane: "Lane | Crossing | None"
    place: Place
    exclusive: bool


class Lane:
    """The unanswered calls of one key."""

    __slots__ = ("held", "key", "outstanding", "ready", "waiting")

    def __init__(self, key: str) -> None:
        self.key = key
        self.held = False
        self.outstanding = 0
        self.ready = False
        self.waiting: deque[LaneMember] = deque()

    def admits(self, member: LaneMember) -> bool:
        """Whether the first member in line may start now."""
        return not self.held and not (member.exclusive and self.outstanding)


class _Ticket:
    """A place in one of several lanes for a call that needs all of them."""

    __slots__ = ("crossing", "exclusive", "lane", "place")

    def __init__(self, crossing: "Crossing") -> None:
        self.crossing = crossing
        self.exclusive = True
        self.lane: Lane | Crossing | None = None
        self.place = Place.NONE


class Crossing:
    """A call that needs several lanes: it starts once it is first in each of them.

    Its tickets join all lanes at once. Two such calls are therefore in the same order in every lane that they
    share, so they cannot deadlock.
    """

    __slots__ = ("member", "missing", "tickets")

    def __init__(self, member: LaneMember, lanes: int) -> None:
        self.member = member
        self.missing = lanes
        self.tickets = [_Ticket(self) for _ in range(lanes)]


M = TypeVar("M", bound=LaneMember)


class Lanes(Generic[M]):
    """All lanes of a connection; idle lanes take no memory.

    `start` runs a call and returns its state: `NONE` if it is answered or has left its lane.
    """

    __slots__ = ("_lanes", "_ready", "_start")

    def __init__(self, start: Callable[[M], Place]) -> None:
        self._start = start
        self._lanes: dict[str, Lane] = {}
        self._ready: deque[Lane] = deque()

    def submit(self, key: str, member: M) -> bool:
        """Start the call if its lane allows, else queue it. Returns whether it was queued."""
        lane = self._lanes.get(key)
        if lane is not None and (lane.waiting or not lane.admits(member)):
            member.lane, member.place = lane, Place.WAITING
            lane.waiting.append(member)
            return True
        place = self._start(member)
        if place:
            self._occupy(lane or Lane(key), member, place)
        return False

    def submit_to_all(self, keys: Sequence[str], member: M) -> bool:
        """Start the call if all these lanes are free, else queue it. Returns whether it was queued.

        The call has exclusive use of every lane.
        """
        crossing = Crossing(member, len(keys))
        member.lane, member.place = crossing, Place.WAITING
        for key, ticket in zip(keys, crossing.tickets, strict=True):
            lane = self._lanes.get(key)
            if lane is None:
                lane = self._lanes[key] = Lane(key)
            if lane.waiting or not lane.admits(ticket):
                ticket.lane, ticket.place = lane, Place.WAITING
                lane.waiting.append(ticket)
            else:
                self._hold(lane, ticket)
        if crossing.missing:
            return True
        self._cross(crossing)
        return False

    def in_use(self, key: str) -> bool:
        """Whether any call is in the lane with that key."""
        return key in self._lanes

    def leave(self, member: M) -> None:
        """Remove a call from its lane; calls waiting for it start at the next `pump`."""
        lane, place = member.lane, member.place
        if lane is None:
            return
        member.lane, member.place = None, Place.NONE
        if isinstance(lane, Crossing):
            for ticket in lane.tickets:
                self._leave(ticket)
        else:
            self._free(lane, member, place)

    def keep_only(self, member: M, key: str) -> None:
        """Remove a call from all its lanes but one; no effect on a call with a single lane."""
        if isinstance(member.lane, Crossing):
            for ticket in member.lane.tickets:
                if isinstance(ticket.lane, Lane) and ticket.lane.key != key:
                    self._leave(ticket)

    def pump(self) -> None:
        """Start every waiting call that may start now."""
        while self._ready:
            lane = self._ready.popleft()
            lane.ready = False
            while lane.waiting and lane.admits(lane.waiting[0]):
                first = lane.waiting.popleft()
                if isinstance(first, _Ticket):
                    self._hold(lane, first)
                    if not first.crossing.missing:
                        self._cross(first.crossing)
                    continue
                member: M = first  # pyright: ignore[reportAssignmentType]
                member.lane, member.place = None, Place.NONE
                place = self._start(member)
                if place:
                    self._occupy(lane, member, place)
            self._drop_if_idle(lane)

    def _cross(self, crossing: Crossing) -> None:
        """Start a call that now holds all its lanes."""
        member: M = crossing.member  # pyright: ignore[reportAssignmentType]
        member.lane, member.place = None, Place.NONE
        place = self._start(member)
        if place:
            member.lane, member.place = crossing, place
        else:
            for ticket in crossing.tickets:
                self._leave(ticket)

    def _hold(self, lane: Lane, ticket: _Ticket) -> None:
        ticket.lane, ticket.place = lane, Place.HOLDING
        lane.held = True
        ticket.crossing.missing -= 1

    def _leave(self, ticket: _Ticket) -> None:
        lane, place = ticket.lane, ticket.place
        ticket.lane, ticket.place = None, Place.NONE
        if isinstance(lane, Lane):
            self._free(lane, ticket, place)

    def _free(self, lane: Lane, member: LaneMember, place: Place) -> None:
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

    def _occupy(self, lane: Lane, member: M, place: Place) -> None:
        member.lane, member.place = lane, place
        if place is Place.HOLDING:
            lane.held = True
        else:
            lane.outstanding += 1
        self._lanes[lane.key] = lane

    def _drop_if_idle(self, lane: Lane) -> None:
        idle = not (lane.waiting or lane.held or lane.outstanding)
        if idle and self._lanes.get(lane.key) is lane:
            del self._lanes[lane.key]
