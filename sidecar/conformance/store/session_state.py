"""What a session stores in addition to its messages: facts, summaries, state, settings."""

from __future__ import annotations

import asyncio
import time

from msgspec import structs

from sidecar.conformance.kit import expect, expect_equal
from sidecar.conformance.store.samples import CHILD, FACTS, GRANDCHILD, REF, reply, summary, user
from sidecar.conformance.store.subject import Subject, check, texts
from sidecar.store.stored import LARGEST_VALUE, Facts, SessionRef, SessionSettings, SessionSnapshot
from sidecar.store.writes import (
    DERIVED,
    AddSummary,
    AppendResult,
    Configure,
    Delete,
    Fork,
    SaveFacts,
    SaveState,
    Touch,
    Truncate,
)


async def tokens(store: Subject, ref: SessionRef) -> list[int | None]:
    return [row.facts and row.facts.tokens for row in await store.store.keyed(ref, 1, 99)]


@check("state")
async def facts_given_with_a_message_are_kept(store: Subject) -> None:
    await store.append(REF, user("a", facts=FACTS), "b")
    expect_equal([row.facts for row in await store.store.keyed(REF, 1, 2)], [FACTS, None])


@check("state")
async def facts_are_saved_by_position(store: Subject) -> None:
    revision = (await store.append(REF, "a", "b", "c")).head.revision
    await store.write(SaveFacts(REF, revision, [(3, FACTS), (1, Facts(1, 0, 0, 0)), (9, FACTS)]))
    expect_equal(await tokens(store, REF), [1, None, 12], "tokens(REF)")
    await store.write(SaveFacts(REF, revision, [(1, Facts(2, 0, 0, 0))]))
    expect_equal(await tokens(store, REF), [2, None, 12], "tokens(REF)")


@check("state")
async def facts_for_messages_that_moved_are_dropped(store: Subject) -> None:
    revision = (await store.append(REF, "a", "b")).head.revision
    await store.append(REF, reply("x", after=1))
    await store.write(SaveFacts(REF, revision, [(2, FACTS)]))
    await store.write(SaveFacts(CHILD, revision, [(2, FACTS)]))
    expect_equal(await tokens(store, REF), [None] * 3, "tokens(REF)")


@check("state")
async def facts_are_saved_through_a_fork_for_all_who_share_the_message(store: Subject) -> None:
    await store.append(REF, "a", "b")
    head = await store.write(Fork(REF, CHILD, None))
    await store.write(SaveFacts(CHILD, head.revision, [(2, FACTS)]))
    expect_equal(
        (await tokens(store, REF), await tokens(store, CHILD)),
        ([None, 12], [None, 12]),
        "(tokens(REF), tokens(CHILD))",
    )


@check("state")
async def messages_without_facts_are_handed_out_until_they_have_them(store: Subject) -> None:
    await store.append(REF, "a", user("b", facts=FACTS), "c")
    await store.append(CHILD, "d", message_format="anthropic")
    batches = await store.store.without_facts(10)
    expect_equal(
        {batch[0]: (batch[1], texts(batch[3])) for batch in batches},
        {REF: ("openai", ["a", "c"]), CHILD: ("anthropic", ["d"])},
    )
    for ref, _, revision, messages in batches:
        await store.write(SaveFacts(ref, revision, [(message.position, FACTS) for message in messages]))
    expect_equal(await store.store.without_facts(10), [])
    await store.append(REF, "e")
    expect_equal([texts(batch[3]) for batch in await store.store.without_facts(10)], [["e"]])


@check("state")
async def messages_are_handed_out_again_while_nobody_has_saved_their_facts(store: Subject) -> None:
    revision = (await store.append(REF, "a", "b", "c")).head.revision
    first = await store.store.without_facts(10)
    expect_equal(await store.store.without_facts(10), first)
    await store.write(SaveFacts(REF, revision, [(2, FACTS)]))
    expect_equal([texts(batch[3]) for batch in await store.store.without_facts(10)], [["a", "c"]])


@check("state")
async def no_more_messages_without_facts_are_handed_out_than_requested(store: Subject) -> None:
    await store.append(REF, *"abcdefgh")
    found = await store.store.without_facts(3)
    expect_equal([texts(batch[3]) for batch in found], [["a", "b", "c"]])


@check("state")
async def messages_copied_for_a_fork_still_lack_their_facts(store: Subject) -> None:
    await store.append(REF, "a", "b")
    await store.write(Fork(REF, CHILD, None))
    await store.append(CHILD, reply("x", after=0))
    batches = {batch[0]: texts(batch[3]) for batch in await store.store.without_facts(10)}
    expect_equal(
        {ref: sorted(found) for ref, found in batches.items()}, {REF: ["a", "b"], CHILD: ["a", "b", "x"]}
    )


@check("state")
async def summaries_come_by_position_and_depth(store: Subject) -> None:
    revision = (await store.append(REF, *"abcdef")).head.revision
    nodes = [summary("n3", 5, 6), summary("n4", 1, 4, depth=1), summary("n1", 1, 2), summary("n2", 3, 4)]
    for each in nodes:
        expect_equal(await store.write(AddSummary(REF, each, revision=revision)), True)
    expect_equal(await store.store.summaries(REF), [nodes[2], nodes[1], nodes[3], nodes[0]])


@check("state")
async def summaries_come_without_texts_where_none_are_wanted(store: Subject) -> None:
    revision = (await store.append(REF, *"abcd")).head.revision
    node = summary("n1", 1, 2)
    await store.write(AddSummary(REF, structs.replace(node, text="a summary"), revision=revision))
    expect_equal(await store.store.summaries(REF, texts=False), [structs.replace(node, text="")])


@check("state")
async def a_summary_takes_the_place_of_those_it_replaces(store: Subject) -> None:
    revision = (await store.append(REF, *"abcd")).head.revision
    for each in (summary("n1", 1, 2), summary("n2", 3, 4)):
        await store.write(AddSummary(REF, each, revision=revision))
    condensed = summary("n3", 1, 4, depth=1)
    await store.write(AddSummary(REF, condensed, revision=revision, replaces=["n1", "n2", "nowhere"]))
    expect_equal(await store.store.summaries(REF), [condensed])


@check("state")
async def summaries_are_found_by_their_ids(store: Subject) -> None:
    revision = (await store.append(REF, *"abcd")).head.revision
    nodes = [summary("n1", 1, 2), summary("n2", 3, 4), summary("n3", 1, 4, depth=1)]
    for each in nodes:
        await store.write(AddSummary(REF, each, revision=revision))
    found = await store.store.summary_nodes(REF, ["n3", "nowhere", "n1"])
    expect_equal(
        sorted(found, key=lambda each: each.node_id),
        [nodes[0], nodes[2]],
        "summary_nodes(REF, ['n3', 'nowhere', 'n1']) by id",
    )
    expect_equal(await store.store.summary_nodes(REF, []), [])
    expect_equal(await store.store.summary_nodes(CHILD, ["n1"]), [])


@check("state")
async def a_summary_of_the_same_id_is_replaced(store: Subject) -> None:
    revision = (await store.append(REF, "a")).head.revision
    for text in ("old", "new"):
        await store.write(AddSummary(REF, summary("n", 1, 1, text=text), revision=revision))
    expect_equal([each.text for each in await store.store.summaries(REF)], ["new"])


@check("state")
async def a_summary_of_an_older_revision_is_not_kept_and_replaces_nothing(store: Subject) -> None:
    added = await store.append(REF, "a", "b")
    await store.write(AddSummary(REF, summary("n1", 1, 1), revision=added.head.revision))
    await store.write(Truncate(REF, added.items[0].message_id))
    late = AddSummary(REF, summary("n2", 1, 1), revision=added.head.revision, replaces=["n1"])
    expect_equal(await store.write(late), False)
    expect_equal([each.node_id for each in await store.store.summaries(REF)], ["n1"])
    expect_equal(await store.write(AddSummary(CHILD, summary("n", 1, 1), revision=0)), False)


@check("state")
async def a_summary_makes_its_session_the_one_that_changed_last(store: Subject) -> None:
    revision = (await store.append(REF, "a")).head.revision
    later = await _after(await store.append(CHILD, "b"))
    await store.write(AddSummary(REF, summary("n", 1, 1), revision=revision))
    heads, _ = await store.store.sessions(REF.namespace, 9, None)
    expect_equal([head.ref for head in heads], [REF, CHILD], "the sessions, latest change first")
    expect(heads[0].updated_ms > later, "updated_ms has not risen")
    expect_equal(heads[0].revision, revision, "the revision")


@check("state")
async def a_touched_session_is_the_one_that_changed_last(store: Subject) -> None:
    """Touching a session makes it the one that changed last, and changes nothing else."""
    before = (await store.append(REF, "a")).head
    later = await _after(await store.append(CHILD, "b"))
    expect_equal(await store.write(Touch(REF)), True)
    expect_equal(await store.write(Touch(GRANDCHILD)), False)
    heads, _ = await store.store.sessions(REF.namespace, 9, None)
    expect_equal([head.ref for head in heads], [REF, CHILD], "the sessions, latest change first")
    expect(heads[0].updated_ms > later, "updated_ms has not risen")
    expect_equal(structs.replace(heads[0], updated_ms=before.updated_ms), before, "the rest of its facts")


async def _after(result: AppendResult) -> int:
    """Wait until the clock has passed the time of a write, and return that time in milliseconds."""
    while time.time_ns() // 1_000_000 <= result.head.updated_ms:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    return result.head.updated_ms


@check("state")
async def state_is_kept_by_name_and_removed_by_saving_none(store: Subject) -> None:
    await store.write(SaveState(REF, "a", b""))
    await store.write(SaveState(REF, "b", b"\x00\xff"))
    await store.write(SaveState(REF, "b", b"later"))
    expect_equal(await store.store.state(REF, "a"), b"")
    expect_equal(await store.store.state(REF, "b"), b"later")
    await store.write(SaveState(REF, "a", None))
    expect_equal(await store.store.state(REF, "a"), None)
    expect_equal(await store.store.state(CHILD, "b"), None)


@check("state")
async def state_of_a_deleted_session_is_not_kept_for_its_successor(store: Subject) -> None:
    """State saved for a uid is dropped once that session is deleted, even if its name is reused."""
    old = (await store.append(REF, "a")).head.uid
    await store.write(SaveState(REF, "a", b"1", uid=old))
    expect_equal(await store.store.state(REF, "a"), b"1")
    await store.write(Delete(REF))
    await store.write(SaveState(REF, "a", b"2", uid=old))
    expect_equal(await store.store.state(REF, "a"), None, "state(REF, 'a') without the session")
    await store.append(REF, "b")
    await store.write(SaveState(REF, "a", b"3", uid=old))
    expect_equal(await store.store.state(REF, "a"), None, "state(REF, 'a') of the next session")


@check("state")
async def settings_change_member_by_member(store: Subject) -> None:
    await store.write(Configure("host", "session", "main", engine="full"))
    await store.write(Configure("host", "session", "main", config=b'{"a":1}'))
    expect_equal(await store.store.settings("host", "session", "main"), SessionSettings("full", b'{"a":1}'))
    expect_equal(await store.store.settings("host", "agent", "main"), SessionSettings(None, None))
    expect_equal(await store.store.settings("other", "session", "main"), SessionSettings(None, None))


@check("state")
async def a_snapshot_has_what_single_reads_have(store: Subject) -> None:
    """A large value is named and not read with it, and a derived one is left out."""
    unset, mine = SessionSettings(None, None), SessionSettings("full", None)
    nothing = SessionSnapshot(None, None, unset, unset, unset, {})
    expect_equal(await store.store.snapshot(REF), nothing, "the snapshot of a session that is not there")
    head = (await store.append(REF, "a", agent_id="alice")).head
    await store.write(Configure("host", "session", "main", engine="full"))
    await store.write(Configure("host", "session", "main", engine="terse", agent_id="bob"))
    await store.write(Configure("host", "agent", "bob", engine="legacy"))
    await store.write(Configure("host", "agent", "alice", config=b"{}"))
    large = b"0" * (LARGEST_VALUE + 1)
    for name, value in (
        ("a", b"1"),
        ("b", b""),
        ("c", large),
        (DERIVED + "d", b"2"),
        ("e", b"3"),
        ("e", None),
    ):
        await store.write(SaveState(REF, name, value))
    values = {"a": b"1", "b": b"", "c": None}
    alices = SessionSettings(None, b"{}")
    for agent in (None, "alice"):
        found = await store.store.snapshot(REF, agent)
        expect_equal(found, SessionSnapshot(head, None, mine, unset, alices, values), f"for {agent}")
    bobs = SessionSnapshot(
        head, None, mine, SessionSettings("terse", None), SessionSettings("legacy", None), values
    )
    expect_equal(await store.store.snapshot(REF, "bob"), bobs, "the snapshot for another agent")
