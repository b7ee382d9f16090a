"""Messages that are stored in front of others."""

from sidecar.conformance.kit import expect, expect_equal, expect_found, expect_raises
from sidecar.conformance.store.samples import CHILD, REF, reply, user
from sidecar.conformance.store.subject import SUITE, Subject
from sidecar.store.errors import MessageMissing
from sidecar.store.stored import Facts, SummaryNode
from sidecar.store.writes import AddSummary, Fork, Truncate

AREA = SUITE.area("insert")


@AREA.check()
async def a_message_goes_behind_the_position_it_names(store: Subject) -> None:
    """A message goes behind the position it names."""
    await store.append(REF, "a", "b", "c")
    result = await store.append(REF, reply("x", after=2))
    expect_equal(await store.texts(REF), ["a", "b", "x", "c"], "texts(REF)")
    expect_equal(result.items[0].position, 3, "result.items[0].position")
    expect_equal(result.head.message_count, 4, "result.head.message_count")


@AREA.check()
async def positions_mean_the_order_before_the_write(store: Subject) -> None:
    """Positions mean the order before the write."""
    await store.append(REF, "a", "b", "c")
    result = await store.append(
        REF,
        reply("end"),
        reply("2x", after=2),
        reply("0x", after=0),
        reply("2y", after=2),
        reply("3x", after=3),
    )
    expect_equal(await store.texts(REF), ["0x", "a", "b", "2x", "2y", "c", "3x", "end"], "texts(REF)")
    expect_equal([item.position for item in result.items], [8, 4, 1, 5, 7], "every position of result.items")


@AREA.check()
async def ids_stay_with_their_messages(store: Subject) -> None:
    """Ids stay with their messages."""
    await store.append(REF, "a", user("b", message_id="host"), "c")
    before = dict(zip(await store.texts(REF), await store.ids(REF), strict=True))
    await store.append(REF, reply("x", after=1))
    await store.append(REF, "d", reply("y", after=0))
    after = dict(zip(await store.texts(REF), await store.ids(REF), strict=True))
    expect_equal({text: after[text] for text in before}, before, "{text: after[text] for text in before}")
    expect_equal(len(set(after.values())), 6, "len(set(after.values()))")
    for text, message_id in after.items():
        found = await store.store.message(REF, message_id)
        found = expect_found(found, "found")
        expect_equal(found.body, text.encode(), "found.body")


@AREA.check()
async def an_inserted_message_joins_the_turn_it_follows(store: Subject) -> None:
    """An inserted message joins the turn it follows."""
    await store.append(REF, "a", reply("b"), user("c", turn_id="named"), reply("d"), "e")
    await store.append(REF, user("x", after=1), user("y", after=3), user("z", after=0), user("w", after=2))
    expect_equal(
        dict(zip(await store.texts(REF), await store.turns(REF), strict=True)),
        dict.fromkeys("zaxbw", "t1") | dict.fromkeys("cyd", "named") | {"e": "t3"},
        "dict(zip(texts(REF), turns(REF), strict=True))",
    )


@AREA.check()
async def behind_the_last_message_is_the_end_without_a_new_turn(store: Subject) -> None:
    """Behind the last message is the end without a new turn."""
    head = (await store.append(REF, "a")).head
    result = await store.append(REF, user("b", after=1))
    expect_equal(
        (result.items[0].turn_id, result.head.revision),
        ("t1", head.revision),
        "result.items[0].turn_id, result.head.revision",
    )


@AREA.check()
async def the_first_message_may_name_a_place_too(store: Subject) -> None:
    """The first message may name a place too."""
    await store.append(REF, user("a", after=0), user("b", after=0))
    expect_equal(await store.texts(REF), ["a", "b"], "texts(REF)")


@AREA.check()
async def the_revision_rises_where_messages_move(store: Subject) -> None:
    """The revision rises where messages move."""
    head = (await store.append(REF, "a", "b")).head
    expect(
        (await store.append(REF, reply("x", after=1))).head.revision > head.revision,
        "this is not so: append(REF, reply('x', after=1)).head.revision > head.revision",
    )


@AREA.check()
async def doubles_are_recognised_and_told_their_new_position(store: Subject) -> None:
    """Doubles are recognised and told their new position."""
    await store.append(REF, "a", user("b", message_id="m"))
    result = await store.append(
        REF,
        reply("x", after=1, message_id="n"),
        user("b", message_id="m"),
        reply("y", message_id="n", after=0),
    )
    expect_equal(
        [(item.stored, item.position) for item in result.items],
        [(True, 2), (False, 3), (False, 2)],
        "[(item.stored, item.position) for item in result.items]",
    )
    expect_equal(result.items[2].existing, b"x", "result.items[2].existing")
    expect_equal(await store.texts(REF), ["a", "x", "b"], "texts(REF)")


@AREA.check()
async def doubles_by_inner_id_within_a_write_follow_the_same_rule(store: Subject) -> None:
    """Doubles by inner id within a write follow the same rule."""
    await store.append(REF, "a", "b")
    result = await store.append(
        REF,
        reply("x", after=1, inner_id="i"),
        reply("y", after=1, inner_id="i", message_id="m1"),
        reply("z", after=1, inner_id="j", message_id="m2"),
        reply("w", after=1, inner_id="j", message_id="m3"),
    )
    expect_equal(
        [item.stored for item in result.items], [True, False, True, True], "every stored of result.items"
    )


@AREA.check()
async def a_place_that_is_not_there_is_refused_without_effect(store: Subject) -> None:
    """A place that is not there is refused without effect."""
    await store.append(REF, "a", "b")
    for after in (-1, 3):
        await expect_raises(
            MessageMissing,
            store.append(REF, "c", reply("x", after=after), advancement_key="k"),
            "append(REF, 'c', reply('x', after=after), advancement_key='k')",
        )
        expect_equal(await store.texts(REF), ["a", "b"], "texts(REF)")
        expect(
            not await store.store.advancement_known(REF, "k"),
            "this is not so: not advancement_known(REF, 'k')",
        )


@AREA.check()
async def a_place_in_a_session_that_is_not_there_makes_no_session(store: Subject) -> None:
    """A place in a session that is not there makes no session."""
    await expect_raises(
        MessageMissing, store.append(REF, reply("x", after=1)), "append(REF, reply('x', after=1))"
    )
    expect_equal(await store.store.session(REF), None, "session(REF)")


@AREA.check()
async def summaries_follow_the_messages_they_cover(store: Subject) -> None:
    """Summaries follow the messages they cover."""
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
        "[(n.node_id, n.first_position, n.last_position) for n in nodes]",
    )


@AREA.check()
async def facts_stay_with_their_messages(store: Subject) -> None:
    """Facts stay with their messages."""
    await store.append(REF, user("a", facts=Facts(1, 0, 0, 0)), user("b", facts=Facts(2, 0, 0, 0)))
    await store.append(REF, reply("x", after=1, facts=Facts(9, 0, 0, 0)))
    keyed = await store.store.keyed(REF, 1, 3)
    expect_equal(
        [row.facts and row.facts.tokens for row in keyed],
        [1, 9, 2],
        "[row.facts and row.facts.tokens for row in keyed]",
    )


@AREA.check()
async def a_fork_keeps_what_it_had_when_its_parent_is_put_into(store: Subject) -> None:
    """A fork keeps what it had when its parent is put into."""
    await store.append(REF, "a", "b", "c")
    await store.write(Fork(REF, CHILD, None))
    before = await store.messages(CHILD)
    await store.append(REF, reply("x", after=1))
    expect_equal(await store.texts(REF), ["a", "x", "b", "c"], "texts(REF)")
    expect_equal(await store.messages(CHILD), before, "messages(CHILD)")


@AREA.check()
async def a_parent_keeps_what_it_had_when_its_fork_is_put_into(store: Subject) -> None:
    """A parent keeps what it had when its fork is put into."""
    await store.append(REF, "a", "b", "c")
    await store.write(Fork(REF, CHILD, None))
    before = await store.messages(REF)
    ids = await store.ids(CHILD)
    await store.append(CHILD, reply("x", after=1))
    expect_equal(await store.texts(CHILD), ["a", "x", "b", "c"], "texts(CHILD)")
    expect_equal(
        [(await store.ids(CHILD))[index] for index in (0, 2, 3)],
        ids,
        "[ids(CHILD)[index] for index in (0, 2, 3)]",
    )
    expect_equal(await store.messages(REF), before, "messages(REF)")


@AREA.check()
async def ids_are_not_used_again_after_insertion_and_truncation(store: Subject) -> None:
    """Ids are not used again after insertion and truncation."""
    await store.append(REF, "a", "b", "c")
    await store.append(REF, reply("x", after=1))
    seen = set(await store.ids(REF))
    await store.write(Truncate(REF, None))
    await store.append(REF, *"defgh")
    expect(not seen & set(await store.ids(REF)), "this is not so: not seen & set(ids(REF))")
