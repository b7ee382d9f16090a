"""Forks, which share the start of their parent's history."""

from sidecar.conformance.kit import expect, expect_equal, expect_found, expect_raises
from sidecar.conformance.store.samples import CHILD, GRANDCHILD, OTHER, REF, reply, summary, user
from sidecar.conformance.store.subject import Subject, check
from sidecar.store.errors import MessageMissing, SessionExists, SessionMissing
from sidecar.store.stored import Facts, SessionRef, SessionSettings
from sidecar.store.writes import DERIVED, AddSummary, Configure, Delete, Fork, SaveState, Truncate


@check("fork")
async def a_fork_starts_with_the_messages_of_its_parent(store: Subject) -> None:
    await store.append(REF, "a", reply("b"), user("c", message_id="host", turn_id="x"))
    head = await store.write(Fork(REF, CHILD, None))
    expect_equal(await store.messages(CHILD), await store.messages(REF))
    expect_equal((head.message_count, head.turn_count, head.message_format), (3, 2, "openai"))


@check("fork")
async def a_fork_may_end_at_a_message_in_the_middle(store: Subject) -> None:
    ids = [item.message_id for item in (await store.append(REF, "a", reply("b"), "c")).items]
    expect_equal((await store.write(Fork(REF, CHILD, ids[1]))).message_count, 2)
    await store.append(CHILD, "d")
    expect_equal((await store.texts(CHILD), await store.turns(CHILD)), (["a", "b", "d"], ["t1", "t1", "t2"]))


@check("fork")
async def parent_and_fork_go_their_own_ways(store: Subject) -> None:
    await store.append(REF, "a", "b")
    await store.write(Fork(REF, CHILD, None))
    await store.append(REF, "parent")
    await store.append(CHILD, "child", user("again", message_id="m"))
    expect_equal(await store.texts(REF), ["a", "b", "parent"])
    expect_equal(await store.texts(CHILD), ["a", "b", "child", "again"])
    expect_equal(set(await store.ids(REF)) & set(await store.ids(CHILD)), set((await store.ids(REF))[:2]))


@check("fork")
async def messages_before_the_fork_are_known_to_the_child_by_their_ids(store: Subject) -> None:
    await store.append(REF, user("a", message_id="host"), "b", reply("c", inner_id="inner"), "late")
    ids = await store.ids(REF)
    await store.write(Fork(REF, CHILD, ids[2]))
    result = await store.append(
        CHILD, user("-", message_id="host"), user("-", message_id=ids[1]), reply("-", inner_id="inner")
    )
    expect_equal(
        [(item.stored, item.position) for item in result.items], [(False, 1), (False, 2), (False, 3)]
    )
    expect_equal(await store.store.message(CHILD, ids[3]), None)
    expect((await store.append(CHILD, user("own", message_id=ids[3]))).items[0].stored)


@check("fork")
async def a_later_message_of_the_parent_is_not_the_childs(store: Subject) -> None:
    await store.append(REF, "a")
    await store.write(Fork(REF, CHILD, None))
    late = (await store.append(REF, reply("late", message_id="late", inner_id="inner"))).items[0]
    await store.append(CHILD, "b", "c")
    expect_equal(await store.store.message(CHILD, "late"), None)
    added = await store.append(
        CHILD, reply("own", message_id=late.message_id), reply("own", inner_id="inner")
    )
    expect_equal([item.stored for item in added.items], [True, True])


@check("fork")
async def an_id_generated_for_a_deleted_parent_is_still_not_the_hosts(store: Subject) -> None:
    await store.append(REF, reply("a", inner_id="inner"))
    await store.write(Fork(REF, CHILD, None))
    await store.write(Delete(REF))
    expect(not (await store.append(CHILD, reply("a", message_id="m", inner_id="inner"))).items[0].stored)


@check("fork")
async def forks_of_forks_read_through_all_of_them(store: Subject) -> None:
    await store.append(REF, "a", "b")
    previous = REF
    for depth in range(6):
        fork = SessionRef("host", f"fork-{depth}")
        await store.write(Fork(previous, fork, None))
        await store.append(fork, f"f{depth}")
        previous = fork
    expect_equal(await store.texts(previous), ["a", "b", *(f"f{depth}" for depth in range(6))])
    expect_equal([m.body for m in await store.messages(previous, 2, 4)], [b"b", b"f0", b"f1"])
    expect_equal(await store.store.turn_start(previous, 4), 4)


@check("fork")
async def messages_of_a_fork_outlive_truncation_of_its_parent(store: Subject) -> None:
    ids = [item.message_id for item in (await store.append(REF, "a", "b", "c", "d")).items]
    for child, end in ((CHILD, ids[2]), (OTHER, ids[3])):
        await store.write(Fork(REF, child, end))
        await store.append(child, "own")
    before = (await store.messages(CHILD), await store.messages(OTHER))
    expect_equal(await store.write(Truncate(REF, ids[0])), 3)
    await store.append(REF, "new")
    expect_equal(await store.texts(REF), ["a", "new"])
    expect_equal((await store.messages(CHILD), await store.messages(OTHER)), before)


@check("fork")
async def messages_of_forks_outlive_deletion_of_their_parent(store: Subject) -> None:
    ids = [
        item.message_id
        for item in (await store.append(REF, "a", user("b", facts=Facts(7, 0, 0, 0)), "c")).items
    ]
    for child, end in ((CHILD, ids[0]), (OTHER, ids[2])):
        await store.write(Fork(REF, child, end))
        await store.append(child, "own")
    await store.write(Fork(OTHER, GRANDCHILD, None))
    before = [await store.messages(ref) for ref in (CHILD, OTHER, GRANDCHILD)]
    expect_equal(await store.write(Delete(REF)), True)
    expect_equal([await store.messages(ref) for ref in (CHILD, OTHER, GRANDCHILD)], before)
    keyed = await store.store.keyed(GRANDCHILD, 1, 9)
    expect_equal([row.facts and row.facts.tokens for row in keyed], [None, 7, None, None])
    expect_equal([row.host_id for row in keyed], [None] * 4)
    for message_id in ids:
        expect_found(await store.store.message(GRANDCHILD, message_id), "message(GRANDCHILD, message_id)")


@check("fork")
async def deleting_every_session_of_a_family_in_turn_leaves_the_rest_whole(store: Subject) -> None:
    await store.append(REF, *"abcdef")
    ids = await store.ids(REF)
    await store.write(Fork(REF, CHILD, ids[3]))
    await store.append(CHILD, "c1", "c2")
    await store.write(Fork(CHILD, GRANDCHILD, ids[1]))
    await store.write(Fork(CHILD, OTHER, None))
    await store.append(OTHER, "o")
    left = {ref: await store.messages(ref) for ref in (REF, GRANDCHILD, CHILD, OTHER)}
    for ref in (CHILD, REF, OTHER, GRANDCHILD):
        del left[ref]
        await store.write(Delete(ref))
        expect_equal({other: await store.messages(other) for other in left}, left)
    heads, cursor = await store.store.sessions(None, 10, None)
    expect_equal((len(heads), cursor), (0, None), "the number of sessions, and the cursor")


@check("fork")
async def truncating_a_fork_into_the_shared_part_leaves_the_parent_alone(store: Subject) -> None:
    ids = [item.message_id for item in (await store.append(REF, "a", "b", "c")).items]
    await store.write(Fork(REF, CHILD, None))
    await store.append(CHILD, "d")
    await store.write(Fork(CHILD, GRANDCHILD, None))
    await store.write(Truncate(CHILD, ids[0]))
    await store.append(CHILD, "e")
    expect_equal(await store.texts(REF), ["a", "b", "c"])
    expect_equal(await store.texts(CHILD), ["a", "e"])
    expect_equal(await store.texts(GRANDCHILD), ["a", "b", "c", "d"])


@check("fork")
async def an_empty_session_can_be_forked(store: Subject) -> None:
    await store.append(REF)
    expect_equal((await store.write(Fork(REF, CHILD, None))).message_count, 0)
    await store.append(CHILD, "a")
    expect_equal(await store.texts(REF), [])


@check("fork")
async def summaries_that_end_in_the_shared_part_come_along(store: Subject) -> None:
    added = await store.append(REF, "a", "b", "c")
    for first, last in ((1, 2), (2, 3)):
        await store.write(AddSummary(REF, summary(f"n{last}", first, last), revision=added.head.revision))
    await store.write(Fork(REF, CHILD, added.items[1].message_id))
    expect_equal(await store.store.summaries(CHILD), [summary("n2", 1, 2)])
    await store.write(Delete(REF))
    expect_equal(await store.store.summaries(CHILD), [summary("n2", 1, 2)])


@check("fork")
async def state_and_settings_come_along_and_then_part(store: Subject) -> None:
    await store.append(REF, "a")
    await store.write(SaveState(REF, "pins", b"1"))
    await store.write(Configure("host", "session", "main", engine="full", config=b"{}"))
    await store.write(Configure("host", "session", "child", engine="terse"))
    await store.write(Fork(REF, CHILD, None))
    await store.write(SaveState(REF, "pins", b"2"))
    expect_equal(await store.store.state(CHILD, "pins"), b"1")
    expect_equal(await store.store.settings("host", "session", "child"), SessionSettings("terse", b"{}"))


@check("fork")
async def derived_state_is_not_copied_to_a_fork(store: Subject) -> None:
    """A fork does not copy state whose name starts with `DERIVED`."""
    await store.append(REF, "a")
    await store.write(SaveState(REF, DERIVED + "vectors.0", b"1"))
    await store.write(SaveState(REF, "not." + DERIVED, b"2"))
    await store.write(Fork(REF, CHILD, None))
    expect_equal(await store.store.state(CHILD, DERIVED + "vectors.0"), None, "the derived state")
    expect_equal(await store.store.state(CHILD, "not." + DERIVED), b"2", "the other state")
    expect_equal(await store.store.state(REF, DERIVED + "vectors.0"), b"1", "the state of the parent")


@check("fork")
async def a_fork_belongs_to_its_parents_agent(store: Subject) -> None:
    await store.append(REF, "a")
    expect_equal((await store.write(Fork(REF, CHILD, None, agent_id="ann"))).agent_id, "ann")
    await expect_raises(
        SessionMissing,
        store.write(Fork(REF, OTHER, None, agent_id="bob")),
        "write(Fork(REF, OTHER, None, agent_id='bob'))",
    )
    expect_equal(await store.store.session(OTHER), None)


@check("fork")
async def forks_that_cannot_be_made_are_refused(store: Subject) -> None:
    await store.append(REF, "a")
    await expect_raises(SessionExists, store.write(Fork(REF, REF, None)), "write(Fork(REF, REF, None))")
    await expect_raises(
        MessageMissing, store.write(Fork(REF, CHILD, "nowhere")), "write(Fork(REF, CHILD, 'nowhere'))"
    )
    await expect_raises(
        SessionMissing, store.write(Fork(OTHER, CHILD, None)), "write(Fork(OTHER, CHILD, None))"
    )
    expect_equal(await store.store.session(CHILD), None)
