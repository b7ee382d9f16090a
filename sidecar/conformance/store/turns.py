"""Which turn a stored message belongs to."""

from sidecar.conformance.expecting import expect_equal
from sidecar.conformance.store.samples import (
    REF,
    reply,
    user,
)
from sidecar.conformance.store.subject import Subject
from sidecar.conformance.store.suite import SUITE
from sidecar.store.writes import Truncate

AREA = SUITE.area("turns")


@AREA.check()
async def what_comes_before_the_first_user_message_is_turn_one(store: Subject) -> None:
    """What comes before the first user message is turn one."""
    await store.append(REF, reply("system", role="system"), "a", reply("b"), "c", reply("d"))
    expect_equal(await store.turns(REF), ["t1", "t1", "t1", "t2", "t2"], "turns(REF)")


@AREA.check()
async def turns_go_on_over_several_writes(store: Subject) -> None:
    """Turns go on over several writes."""
    await store.append(REF, "a")
    await store.append(REF, reply("b"))
    result = await store.append(REF, "c")
    expect_equal(result.items[0].turn_id, "t2", "result.items[0].turn_id")
    expect_equal(result.head.turn_count, 2, "result.head.turn_count")


@AREA.check()
async def a_heartbeat_opens_no_turn(store: Subject) -> None:
    """A heartbeat opens no turn."""
    await store.append(REF, user("beat", heartbeat=True), "a", user("beat", heartbeat=True), reply("ok"), "b")
    expect_equal(await store.turns(REF), ["t1", "t1", "t1", "t1", "t2"], "turns(REF)")


@AREA.check()
async def a_name_given_by_the_host_is_the_turns_id(store: Subject) -> None:
    """A name given by the host is the turns id."""
    await store.append(REF, user("a", turn_id="morning"), reply("b", turn_id="morning"), reply("c"))
    expect_equal(await store.turns(REF), ["morning"] * 3, "turns(REF)")
    expect_equal((await store.messages(REF))[2].turn, 1, "messages(REF)[2].turn")


@AREA.check()
async def another_name_opens_a_turn_even_without_a_user_message(store: Subject) -> None:
    """Another name opens a turn even without a user message."""
    await store.append(REF, user("a", turn_id="x"), reply("b", turn_id="y"), user("c", turn_id="y"), "d")
    expect_equal(
        [(m.turn, m.turn_id) for m in await store.messages(REF)],
        [(1, "x"), (2, "y"), (2, "y"), (3, "t3")],
        "[(m.turn, m.turn_id) for m in messages(REF)]",
    )


@AREA.check()
async def a_host_may_use_our_own_names(store: Subject) -> None:
    """A host may use our own names."""
    await store.append(REF, user("a", turn_id="t1"), reply("b", turn_id="t1"), user("c", turn_id="t2"), "d")
    expect_equal(await store.turns(REF), ["t1", "t1", "t2", "t3"], "turns(REF)")


@AREA.check()
async def a_name_on_a_heartbeat_opens_no_turn(store: Subject) -> None:
    """A name on a heartbeat opens no turn."""
    await store.append(REF, "a", user("beat", heartbeat=True, turn_id="beat-1"))
    expect_equal(await store.turns(REF), ["t1", "t1"], "turns(REF)")


@AREA.check()
async def turns_are_numbered_anew_after_truncation(store: Subject) -> None:
    """Turns are numbered anew after truncation."""
    ids = [item.message_id for item in (await store.append(REF, "a", reply("b"), "c", "d")).items]
    await store.write(Truncate(REF, ids[1]))
    head = (await store.append(REF, "e")).head
    expect_equal(
        (await store.turns(REF), head.turn_count), (["t1", "t1", "t2"], 2), "(turns(REF), head.turn_count)"
    )


@AREA.check()
async def truncation_to_before_the_first_user_message_lets_the_next_be_turn_one(store: Subject) -> None:
    """Truncation to before the first user message lets the next be turn one."""
    ids = [item.message_id for item in (await store.append(REF, reply("sys", role="system"), "a", "b")).items]
    await store.write(Truncate(REF, ids[0]))
    await store.append(REF, "c", "d")
    expect_equal(await store.turns(REF), ["t1", "t1", "t2"], "turns(REF)")


@AREA.check()
async def truncation_within_turn_one_remembers_that_it_was_opened(store: Subject) -> None:
    """Truncation within turn one remembers that it was opened."""
    ids = [item.message_id for item in (await store.append(REF, "a", reply("b"), "c")).items]
    await store.write(Truncate(REF, ids[1]))
    await store.append(REF, "d")
    expect_equal(await store.turns(REF), ["t1", "t1", "t2"], "turns(REF)")


@AREA.check()
async def truncation_brings_the_name_of_the_newest_turn_back(store: Subject) -> None:
    """Truncation brings the name of the newest turn back."""
    ids = [item.message_id for item in (await store.append(REF, user("a", turn_id="x"), "b")).items]
    await store.write(Truncate(REF, ids[0]))
    await store.append(REF, reply("c"))
    expect_equal(await store.turns(REF), ["x", "x"], "turns(REF)")


@AREA.check()
async def the_start_of_a_turn_is_found(store: Subject) -> None:
    """The start of a turn is found."""
    for index in range(20):
        await store.append(REF, f"u{index}", *[reply("r")] * (index % 4))
    starts = [await store.store.turn_start(REF, turn) for turn in range(22)]
    texts = await store.texts(REF)
    expect_equal(starts[0], None, "starts[0]")
    expect_equal(starts[21], None, "starts[21]")
    expect_equal(
        [texts[start - 1] for start in starts[1:21] if start],
        [f"u{index}" for index in range(20)],
        "[texts[start - 1] for start in starts[1:21] if start]",
    )
