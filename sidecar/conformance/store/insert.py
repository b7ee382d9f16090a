"""Messages inserted before others."""

from sidecar.conformance.kit import expect, expect_equal, expect_found, expect_raises
from sidecar.conformance.store.samples import CHILD, REF, reply, user
from sidecar.conformance.store.subject import Subject, check
from sidecar.store.errors import MessageMissing
from sidecar.store.stored import Facts, SummaryNode
from sidecar.store.writes import AddSummary, Fork, Truncate


@check("insert")
async def a_message_goes_after_the_position_it_names(store: Subject) -> None:
    await store.append(REF, "a", "b", "c")
    result = await store.append(REF, reply("x", after=2))
    expect_equal(await store.texts(REF), ["a", "b", "x", "c"])
    expect_equal(result.items[0].position, 3)
    expect_equal(result.head.message_count, 4)


@check("insert")
async def positions_mean_the_order_before_the_write(store: Subject) -> None:
    await store.append(REF, "a", "b", "c")
    result = await store.append(
        REF,
        reply("end"),
        reply("2x", after=2),
        reply("0x", after=0),
        reply("2y", after=2),
        reply("3x", after=3),
    )
    expect_equal(await store.texts(REF), ["0x", "a", "b", "2x", "2y", "c", "3x", "end"])
    expect_equal([item.position for item in result.items], [8, 4, 1, 5, 7])


@check("insert")
async def ids_stay_with_their_messages(store: Subject) -> None:
    await store.append(REF, "a", user("b", message_id="host"), "c")
    before = dict(zip(await store.texts(REF), await store.ids(REF), strict=True))
    await store.append(REF, reply("x", after=1))
    await store.append(REF, "d", reply("y", after=0))
    after = dict(zip(await store.texts(REF), await store.ids(REF), strict=True))
    expect_equal({text: after[text] for text in before}, before)
    expect_equal(len(set(after.values())), 6)
    for text, message_id in after.items():
        found = expect_found(await store.store.message(REF, message_id))
        expect_equal(found.body, text.encode())


@check("insert")
async def an_inserted_message_joins_the_turn_it_follows(store: Subject) -> None:
    await store.append(REF, "a", reply("b"), user("c", turn_id="named"), reply("d"), "e")
    await store.append(REF, user("x", after=1), user("y", after=3), user("z", after=0), user("w", after=2))
    expect_equal(
        dict(zip(await store.texts(REF), await store.turns(REF), strict=True)),
        dict.fromkeys("zaxbw", "t1") | dict.fromkeys("cyd", "named") | {"e": "t3"},
    )


@check("insert")
async def inserting_after_the_last_message_opens_no_turn(store: Subject) -> None:
    head = (await store.append(REF, "a")).head
    result = await store.append(REF, user("b", after=1))
    expect_equal((result.items[0].turn_id, result.head.revision), ("t1", head.revision))


@check("insert")
async def the_first_message_may_name_a_place_too(store: Subject) -> None:
    await store.append(REF, user("a", after=0), user("b", after=0))
    expect_equal(await store.texts(REF), ["a", "b"])


@check("insert")
async def the_revision_rises_where_messages_move(store: Subject) -> None:
    head = (await store.append(REF, "a", "b")).head
    expect((await store.append(REF, reply("x", after=1))).head.revision > head.revision)


@check("insert")
async def duplicates_are_recognised_and_get_their_new_position(store: Subject) -> None:
    await store.append(REF, "a", user("b", message_id="m"))
    result = await store.append(
        REF,
        reply("x", after=1, message_id="n"),
        user("b", message_id="m"),
        reply("y", message_id="n", after=0),
    )
    expect_equal([(item.stored, item.position) for item in result.items], [(True, 2), (False, 3), (False, 2)])
    expect_equal(result.items[2].existing, b"x")
    expect_equal(await store.texts(REF), ["a", "x", "b"])


@check("insert")
async def duplicates_by_inner_id_within_a_write_follow_the_same_rule(store: Subject) -> None:
    await store.append(REF, "a", "b")
    result = await store.append(
        REF,
        reply("x", after=1, inner_id="i"),
        reply("y", after=1, inner_id="i", message_id="m1"),
        reply("z", after=1, inner_id="j", message_id="m2"),
        reply("w", after=1, inner_id="j", message_id="m3"),
    )
    expect_equal([item.stored for item in result.items], [True, False, True, True])


@check("insert")
async def a_missing_place_is_refused_without_effect(store: Subject) -> None:
    await store.append(REF, "a", "b")
    for after in (-1, 3):
        await expect_raises(
            MessageMissing,
            store.append(REF, "c", reply("x", after=after), advancement_key="k"),
            "append(REF, 'c', reply('x', after=after), advancement_key='k')",
        )
        expect_equal(await store.texts(REF), ["a", "b"])
        expect(not await store.store.advancement_known(REF, "k"))


@check("insert")
async def a_place_in_a_missing_session_creates_no_session(store: Subject) -> None:
    await expect_raises(
        MessageMissing, store.append(REF, reply("x", after=1)), "append(REF, reply('x', after=1))"
    )
    expect_equal(await store.store.session(REF), None)


@check("insert")
async def summaries_follow_the_messages_they_cover(store: Subject) -> None:
    revision = (await store.append(REF, *"abcdef")).head.revision
    for node_id, first, last in (("low", 1, 2), ("across", 3, 4), ("high", 5, 6)):
        node = SummaryNode(
            node_id=node_id,
            first_position=first,
            last_position=last,
            text="",
            tokens=1,
            quality="",
            created_ms=0,
        )
        await store.write(AddSummary(REF, node, revision=revision))
    await store.append(REF, reply("x", after=3), reply("y", after=3))
    nodes = await store.store.summaries(REF)
    expect_equal(
        [(n.node_id, n.first_position, n.last_position) for n in nodes],
        [("low", 1, 2), ("across", 3, 6), ("high", 7, 8)],
    )


@check("insert")
async def facts_stay_with_their_messages(store: Subject) -> None:
    await store.append(REF, user("a", facts=Facts(1, 0, 0, 0)), user("b", facts=Facts(2, 0, 0, 0)))
    await store.append(REF, reply("x", after=1, facts=Facts(9, 0, 0, 0)))
    keyed = await store.store.keyed(REF, 1, 3)
    expect_equal([row.facts and row.facts.tokens for row in keyed], [1, 9, 2])


@check("insert")
async def insertions_into_a_parent_leave_its_fork_alone(store: Subject) -> None:
    await store.append(REF, "a", "b", "c")
    await store.write(Fork(REF, CHILD, None))
    before = await store.messages(CHILD)
    await store.append(REF, reply("x", after=1))
    expect_equal(await store.texts(REF), ["a", "x", "b", "c"])
    expect_equal(await store.messages(CHILD), before)


@check("insert")
async def insertions_into_a_fork_leave_its_parent_alone(store: Subject) -> None:
    await store.append(REF, "a", "b", "c")
    await store.write(Fork(REF, CHILD, None))
    before = await store.messages(REF)
    ids = await store.ids(CHILD)
    await store.append(CHILD, reply("x", after=1))
    expect_equal(await store.texts(CHILD), ["a", "x", "b", "c"])
    expect_equal([(await store.ids(CHILD))[index] for index in (0, 2, 3)], ids)
    expect_equal(await store.messages(REF), before)


@check("insert")
async def ids_are_not_used_again_after_insertion_and_truncation(store: Subject) -> None:
    await store.append(REF, "a", "b", "c")
    await store.append(REF, reply("x", after=1))
    seen = set(await store.ids(REF))
    await store.write(Truncate(REF, None))
    await store.append(REF, *"defgh")
    expect(not seen & set(await store.ids(REF)))
