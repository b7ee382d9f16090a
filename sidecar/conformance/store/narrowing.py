"""Searches of a part of a session: positions, roles, tools, turns, times, agents."""

from sidecar.conformance.expecting import expect_equal, expect_raises
from sidecar.conformance.store.samples import REF, TOOL_MARK, reply, user
from sidecar.conformance.store.subject import Subject
from sidecar.conformance.store.suite import SUITE
from sidecar.store.errors import SessionMissing
from sidecar.store.search import SearchKind

AREA = SUITE.area("narrow", "search")
KINDS: tuple[SearchKind, ...] = ("words", "literal")
COUNT = 60


async def fill(store: Subject) -> None:
    """Store sixty messages: in threes a user, an assistant that calls a tool, its answer."""
    for number in range(0, COUNT, 3):
        tool = "bash" if number % 2 else "read file"
        await store.append(
            REF,
            user(f"plum {number}", timestamp_ms=1000 + number, turn_id=f"turn\n{number}"),
            reply(f"plum call{TOOL_MARK}{tool}", timestamp_ms=1001 + number),
            reply(f"plum result{TOOL_MARK}{tool}", "tool", timestamp_ms=1002 + number),
        )


async def expect_positions(store: Subject, expected: list[int], **members: object) -> None:
    """Demand that every kind of search finds these."""
    for kind in KINDS:
        found = sorted(await store.positions("plum", kind, limit=100, **members))
        expect_equal(found, expected, f"positions found by {kind} with {members}")


@AREA.check()
async def only_positions_in_the_range_are_found(store: Subject) -> None:
    """A range of positions includes both ends, and nothing beyond."""
    await fill(store)
    await expect_positions(store, list(range(7, 24)), first=7, last=23)


@AREA.check()
async def only_the_roles_asked_for_are_found(store: Subject) -> None:
    """Messages of other roles are not found."""
    await fill(store)
    both = [each for each in range(1, COUNT + 1) if each % 3 != 2]
    await expect_positions(store, list(range(1, COUNT, 3)), roles=("user",))
    await expect_positions(store, both, roles=("user", "tool"))
    await expect_positions(store, [], roles=("nobody",))


@AREA.check()
async def only_messages_of_the_tool_are_found(store: Subject) -> None:
    """Messages without the tool are not found; its name is meant as a whole."""
    await fill(store)
    expected = [each for each in range(1, COUNT + 1) if each % 6 in (5, 0)]
    await expect_positions(store, expected, tool="bash")
    await expect_positions(store, [], tool="read")


@AREA.check()
async def only_messages_of_the_turn_are_found(store: Subject) -> None:
    """Messages of other turns are not found, whatever the turn is called."""
    await fill(store)
    await expect_positions(store, [10, 11, 12], turn_id="turn\n9")
    await expect_positions(store, [], turn_id="t4")


@AREA.check()
async def only_messages_of_the_time_are_found(store: Subject) -> None:
    """A range of times includes both ends, and nothing beyond."""
    await fill(store)
    await expect_positions(store, list(range(11, 22)), since_ms=1010, until_ms=1020)
    await expect_positions(store, [], until_ms=999)


@AREA.check()
async def everything_asked_for_must_hold_at_once(store: Subject) -> None:
    """Several conditions are met by the messages that meet each of them."""
    await fill(store)
    expected = [each for each in range(12, 51) if each % 6 == 0]
    await expect_positions(store, expected, roles=("tool",), tool="bash", since_ms=1010, last=50)


@AREA.check()
async def another_agent_finds_nothing_in_a_session(store: Subject) -> None:
    """A search by another agent than the session's is refused by the store."""
    await store.append(REF, "plum", agent_id="ann")
    await expect_positions(store, [1], agent_id="ann")
    await expect_positions(store, [1])
    for kind in KINDS:
        await expect_raises(SessionMissing, store.search("plum", kind, agent_id="bob"), f"a search by {kind}")
