"""Calls in one lane take effect in order, for any mixture of orders and outcomes."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.rpc.lanes import Crossing, Lane, Lanes, Place


class Member:
    def __init__(self, name: int, exclusive: bool, outcome: Place) -> None:
        self.name = name
        self.exclusive = exclusive
        self.outcome = outcome
        self.lane: Lane | Crossing | None = None
        self.place = Place.NONE


class Log:
    """Starts members and records which are running."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.running: list[Member] = []
        self.lanes: Lanes[Member] = Lanes(self.start)

    def start(self, member: Member) -> Place:
        assert not any(other.place is Place.HOLDING for other in self.running), "started behind a holder"
        assert not (member.exclusive and self.running), "an exclusive call started beside another"
        self.started.append(member.name)
        if member.outcome:
            self.running.append(member)
        return member.outcome

    def end(self, member: Member) -> None:
        self.running.remove(member)
        self.lanes.leave(member)
        self.lanes.pump()


outcomes = st.sampled_from([Place.NONE, Place.OUTSTANDING, Place.HOLDING])
members = st.builds(
    lambda exclusive, outcome: (exclusive, Place.HOLDING if exclusive and outcome else outcome),
    st.booleans(),
    outcomes,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(members, max_size=30), st.data())
def test_one_lane_starts_in_order_and_never_two_where_one_must_be_alone(
    kinds: list[tuple[bool, Place]], data: st.DataObject
) -> None:
    log = Log()
    for name, (exclusive, outcome) in enumerate(kinds):
        log.lanes.submit("lane", Member(name, exclusive, outcome))
        while log.running and data.draw(st.booleans()):
            log.end(data.draw(st.sampled_from(log.running)))
    while log.running:
        log.end(log.running[0])
    assert log.started == list(range(len(kinds)))


def test_lanes_do_not_wait_for_each_other() -> None:
    log = Log()
    log.lanes.submit("a", Member(1, True, Place.HOLDING))
    log.running.clear()
    assert not log.lanes.submit("b", Member(2, True, Place.HOLDING))
    assert log.started == [1, 2]


def test_pipelined_calls_start_concurrently() -> None:
    log = Log()
    for name in range(3):
        assert not log.lanes.submit("a", Member(name, False, Place.OUTSTANDING))
    assert log.started == [0, 1, 2]


def test_a_pipelined_call_does_not_overtake_a_waiting_exclusive_one() -> None:
    log = Log()
    first = Member(1, False, Place.OUTSTANDING)
    log.lanes.submit("a", first)
    assert log.lanes.submit("a", Member(2, True, Place.NONE))
    assert log.lanes.submit("a", Member(3, False, Place.NONE))
    assert log.started == [1]
    log.end(first)
    assert log.started == [1, 2, 3]


def test_a_withdrawn_call_lets_later_ones_start() -> None:
    log = Log()
    holder, exclusive = Member(1, False, Place.OUTSTANDING), Member(2, True, Place.NONE)
    log.lanes.submit("a", holder)
    log.lanes.submit("a", exclusive)
    log.lanes.submit("a", Member(3, False, Place.NONE))
    log.lanes.leave(exclusive)
    log.lanes.pump()
    assert log.started == [1, 3]


KEYS = ("a", "b", "c")
several = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True)


class Crossings:
    """Starts members of one or several lanes; knows the order in each lane."""

    def __init__(self) -> None:
        self.keys: dict[int, list[str]] = {}
        self.started: list[int] = []
        self.running: list[Member] = []
        self.lanes: Lanes[Member] = Lanes(self.start)

    def start(self, member: Member) -> Place:
        for other in self.running:
            if set(self.keys[other.name]) & set(self.keys[member.name]):
                assert other.place is not Place.HOLDING and not member.exclusive, "started beside a holder"
        self.started.append(member.name)
        if member.outcome:
            self.running.append(member)
        return member.outcome

    def submit(self, keys: list[str], member: Member) -> None:
        self.keys[member.name] = keys
        if len(keys) == 1:
            self.lanes.submit(keys[0], member)
        else:
            self.lanes.submit_to_all(keys, member)

    def end(self, member: Member) -> None:
        self.running.remove(member)
        self.lanes.leave(member)
        self.lanes.pump()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(several, members), max_size=30), st.data())
def test_calls_of_several_lanes_keep_the_order_of_each_and_never_block_each_other(
    kinds: list[tuple[list[str], tuple[bool, Place]]], data: st.DataObject
) -> None:
    log = Crossings()
    for name, (keys, (exclusive, outcome)) in enumerate(kinds):
        alone = exclusive or len(keys) > 1
        held = Place.HOLDING if alone and outcome else outcome
        log.submit(keys, Member(name, alone, held))
        while log.running and data.draw(st.booleans()):
            log.end(data.draw(st.sampled_from(log.running)))
    while log.running:
        log.end(log.running[0])
    for key in KEYS:
        of_lane = [name for name, (keys, _) in enumerate(kinds) if key in keys]
        assert [name for name in log.started if key in log.keys[name]] == of_lane
    assert not any(log.lanes.in_use(key) for key in KEYS)


def test_a_call_that_gives_up_waiting_frees_the_lanes_it_had() -> None:
    log = Crossings()
    first, crossing, later = (Member(name, True, Place.HOLDING) for name in range(3))
    log.submit(["a"], first)
    log.submit(["a", "b"], crossing)
    log.submit(["b"], later)
    assert log.started == [0]
    log.lanes.leave(crossing)
    log.lanes.pump()
    assert log.started == [0, 2]
    log.end(first)
    log.end(later)
    assert not any(log.lanes.in_use(key) for key in KEYS)


def test_a_call_may_keep_only_one_of_its_lanes() -> None:
    log = Crossings()
    log.submit(["a", "b"], Member(0, True, Place.HOLDING))
    log.submit(["a"], Member(1, True, Place.HOLDING))
    log.submit(["a", "b"], Member(2, True, Place.HOLDING))
    log.lanes.keep_only(log.running[0], "b")
    log.keys[0] = ["b"]
    log.lanes.pump()
    assert log.started == [0, 1] and log.lanes.in_use("b")
    log.end(log.running[1])
    assert log.started == [0, 1]
    log.end(log.running[0])
    assert log.started == [0, 1, 2]
