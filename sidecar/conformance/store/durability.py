"""Durability across reopening, and several stores on the same data."""

from __future__ import annotations

import asyncio

from sidecar.conformance.kit import expect, expect_equal, expect_found, expect_raises
from sidecar.conformance.store.samples import CHILD, FACTS, REF, reply, summary, user
from sidecar.conformance.store.subject import Subject, append_to, check, texts
from sidecar.store.contract import SessionStore
from sidecar.store.errors import SessionMissing
from sidecar.store.stored import SessionRef, SessionSettings
from sidecar.store.writes import (
    AddSummary,
    Append,
    Configure,
    Delete,
    Fork,
    SaveFacts,
    SaveState,
    Truncate,
    Write,
)


@check("durability", needs=("durable",))
async def messages_and_heads_are_as_they_were(store: Subject) -> None:
    """Messages, their ids, turns, times and the session's head are the same after reopening."""
    await store.append(REF, user("a", message_id="m", timestamp_ms=5), reply("b", inner_id="i"), "c")
    before, head = await store.messages(REF), await store.store.session(REF)
    await store.reopen()
    expect_equal(await store.messages(REF), before, "the messages")
    expect_equal(await store.store.session(REF), head, "the head")


@check("durability", needs=("durable",))
async def a_session_goes_on_where_it_ended(store: Subject) -> None:
    """Positions and turns continue after reopening, and generated ids are not generated again."""
    await store.append(REF, "a", "b")
    before = await store.ids(REF)
    await store.reopen()
    added = (await store.append(REF, "c")).items[0]
    expect_equal((added.position, added.turn_id), (3, "t3"), "position and turn")
    expect(added.message_id not in before, f"the id {added.message_id} was generated twice")
    again = (await store.append(REF, user("a", message_id=before[0]))).items[0]
    expect_equal(again.stored, False, "whether a message with a generated id was stored again")


@check("durability", needs=("durable",))
async def ids_of_removed_messages_never_come_again(store: Subject) -> None:
    """Ids of messages removed before reopening are not generated again."""
    await store.append(REF, "a", "b", "c")
    old = await store.ids(REF)
    await store.write(Truncate(REF, old[0]))
    await store.reopen()
    await store.append(REF, "d", "e", "f")
    expect_equal(set(old) & set(await store.ids(REF)), {old[0]}, "ids in use before and after")


@check("durability", needs=("durable",))
async def session_state_lasts(store: Subject) -> None:
    """Facts, summaries, state, settings, session keys and advancement keys are there after reopening."""
    revision = (await store.append(REF, "a", "b", session_key="key", advancement_key="turn")).head.revision
    await store.write(SaveFacts(REF, revision, [(2, FACTS)]))
    await store.write(AddSummary(REF, summary("n", 1, 2, depth=1), revision=revision))
    await store.write(SaveState(REF, "pins", b"1"))
    await store.write(Configure("host", "session", "main", engine="full", config=b"{}"))
    await store.reopen()
    reads = store.store
    expect_equal([row.facts for row in await reads.keyed(REF, 1, 2)], [None, FACTS], "the facts")
    expect_equal(await reads.summaries(REF), [summary("n", 1, 2, depth=1)], "the summaries")
    expect_equal(await reads.state(REF, "pins"), b"1", "the state")
    settings = await reads.settings("host", "session", "main")
    expect_equal(settings, SessionSettings("full", b"{}"), "the settings")
    expect_found(await reads.session_by_key("host", "key"), "the session by its key")
    expect_equal((await store.append(REF, "a", advancement_key="turn")).duplicate, True, "duplicate")


@check("durability", needs=("durable",))
async def messages_without_facts_are_still_handed_out(store: Subject) -> None:
    """Messages that lacked facts when the store was closed are handed out after reopening."""
    await store.append(REF, "a", user("b", facts=FACTS), "c")
    await store.reopen()
    found = await store.store.without_facts(10)
    expect_equal(
        [message.body for batch in found for message in batch[3]], [b"a", b"c"], "messages without facts"
    )


@check("durability", needs=("durable",))
async def deletion_lasts(store: Subject) -> None:
    """A deleted session stays deleted after reopening, and a new one under its name has another uid."""
    uid = (await store.append(REF, "a", session_key="key")).head.uid
    await store.write(Delete(REF))
    await store.reopen()
    expect_equal(await store.store.session(REF), None, "the session")
    expect_equal(await store.store.session_by_key("host", "key"), None, "the session by its key")
    expect((await store.append(REF, "b")).head.uid != uid, "the uid was used again")


@check("durability", needs=("durable",))
async def forks_still_share_after_reopening(store: Subject) -> None:
    """A fork keeps what it shares when its parent is deleted after reopening."""
    await store.append(REF, "a", "b")
    await store.write(Fork(REF, CHILD, None))
    await store.append(CHILD, "c")
    before = await store.messages(CHILD)
    await store.reopen()
    await store.write(Delete(REF))
    await store.reopen()
    expect_equal(await store.messages(CHILD), before, "the messages of the fork")


@check("durability", needs=("durable",))
async def everything_acknowledged_before_closing_is_there(store: Subject) -> None:
    """Every write that was told to be done before the store was closed is there after reopening."""
    done: list[str] = []

    def note(write: Write) -> None:
        if write.error is None:
            done.append(write.result.items[0].message_id)

    for number in range(300):
        store.store.submit(Append(REF, [user(str(number))], message_format="openai"), note)
    await store.reopen()
    expect_equal(len(done), 300, "writes that were done")
    expect_equal(await store.ids(REF), done, "the ids of the messages")


@check("durability", needs=("durable", "search"))
async def earlier_messages_are_found(store: Subject) -> None:
    """A search finds messages stored before and after reopening."""
    await store.append(REF, *[f"kiwi number {number}" for number in range(20)])
    await store.reopen()
    await store.append(REF, "lemon and kiwi")
    expect_equal(await store.positions("lemon"), [21], "positions of lemon")
    expect_equal(len(await store.positions("kiwi", limit=99)), 21, "the number of kiwis")


HOUR_MS = 3_600_000
ROUNDS = 25


async def read_texts(store: SessionStore, ref: SessionRef = REF) -> list[str]:
    """The bodies of all messages, as this store reads them."""
    return texts(await store.messages(ref, 1, 1 << 30))


@check("share", needs=("shared",))
async def one_store_reads_writes_that_the_other_has_acknowledged(store: Subject) -> None:
    """A write acknowledged by one store is at once visible to the other, which can append to it."""
    other = await store.another()
    for number in range(10):
        writer, reader = (store.store, other) if number % 2 else (other, store.store)
        added = await append_to(writer, REF, [str(number)])
        expect_equal(added.items[0].position, number + 1, "the position")
        expect_equal(await read_texts(reader), [str(each) for each in range(number + 1)], "the texts read")
        expect_equal(await reader.session(REF), added.head, "the head read")


@check("share", needs=("shared",))
async def concurrent_writes_keep_one_order_without_loss_or_duplicates(store: Subject) -> None:
    """Two stores that append to the same sessions at once lose, duplicate and reorder nothing."""
    stores = {"left": store.store, "right": await store.another()}
    refs = [SessionRef("host", f"s{number}") for number in range(4)]

    async def appends(name: str) -> None:
        for number in range(ROUNDS):
            await asyncio.gather(*(append_to(stores[name], ref, [f"{name} {number}"]) for ref in refs))

    await asyncio.gather(*map(appends, stores))
    for ref in refs:
        messages = await store.messages(ref)
        count = ROUNDS * len(stores)
        expect_equal([each.position for each in messages], list(range(1, count + 1)), "the positions")
        expect_equal(len({each.message_id for each in messages}), count, "the number of different ids")
        expect_equal([each.turn for each in messages], list(range(1, count + 1)), "the turns")
        for name in stores:
            own = [text for text in texts(messages) if text.startswith(name)]
            expect_equal(own, [f"{name} {number}" for number in range(ROUNDS)], f"the order of {name}")


@check("share", needs=("shared",))
async def a_session_that_both_create_at_once_is_one(store: Subject) -> None:
    """Two stores that append to a new session at once create one session."""
    stores = [store.store, await store.another()]
    for number in range(ROUNDS):
        ref = SessionRef("host", f"s{number}")
        added = await asyncio.gather(*(append_to(each, ref, ["a"]) for each in stores))
        expect_equal(sorted(each.items[0].position for each in added), [1, 2], "the positions")
        expect_equal(len({each.head.uid for each in added}), 1, "the number of sessions created")


@check("share", needs=("shared",))
async def a_message_id_is_stored_once(store: Subject) -> None:
    """A message id sent to both stores is stored once."""
    stores = [store.store, await store.another()]
    for number in range(ROUNDS):
        message = [user("a", message_id=f"m{number}")]
        added = await asyncio.gather(*(append_to(each, REF, message) for each in stores))
        expect_equal(sorted(each.items[0].stored for each in added), [False, True], "whether it was stored")
    expect_equal(len(await store.ids(REF)), ROUNDS, "the number of messages")


@check("share", needs=("shared",))
async def an_advancement_key_takes_effect_once(store: Subject) -> None:
    """An advancement key sent to both stores takes effect once."""
    stores = [store.store, await store.another()]
    for number in range(ROUNDS):
        added = await asyncio.gather(
            *(append_to(each, REF, ["a"], advancement_key=f"k{number}") for each in stores)
        )
        expect_equal(sorted(each.duplicate for each in added), [False, True], "whether it was a duplicate")
    expect_equal(len(await store.ids(REF)), ROUNDS, "the number of messages")


@check("share", needs=("shared",))
async def deletion_by_one_holds_for_the_other(store: Subject) -> None:
    """A session deleted by one store is gone for the other, which can create it again."""
    other = await store.another()
    before = await store.append(REF, "a", session_key="key")
    expect_equal(await read_texts(other), ["a"], "the texts before the deletion")
    await store.write(Delete(REF))
    expect_equal(await other.session(REF), None, "the session")
    expect_equal(await other.session_by_key("host", "key"), None, "the session by its key")
    added = await append_to(other, REF, ["b"])
    expect_equal(added.items[0].position, 1, "the position")
    expect(added.head.uid != before.head.uid, "the uid was used again")


@check("share", needs=("shared",))
async def an_agent_bound_by_one_is_bound_for_the_other(store: Subject) -> None:
    """A session that one store has bound to an agent is closed to other agents in the other store."""
    other = await store.another()
    await store.append(REF, "a")
    expect_found(await other.session(REF), "the session")
    await store.append(REF, "b", agent_id="ann")
    late = Append(REF, [user("c")], message_format="openai", agent_id="bob")
    await expect_raises(SessionMissing, other.write(late), "an append by another agent")


@check("share", needs=("shared",))
async def facts_for_messages_that_the_other_has_rewritten_are_dropped(store: Subject) -> None:
    """Facts computed before another store rewrote the session are dropped."""
    other = await store.another()
    added = await store.append(REF, "a", "b")
    await other.session(REF)
    await store.write(Truncate(REF, added.items[0].message_id))
    await store.append(REF, "c")
    await other.write(SaveFacts(REF, added.head.revision, [(2, FACTS)]))
    expect_equal([row.facts for row in await store.store.keyed(REF, 1, 2)], [None, None], "the facts")


@check("share", needs=("shared",))
async def a_fork_keeps_messages_that_the_other_store_truncates(store: Subject) -> None:
    """A fork made in one store keeps its messages when the other truncates the parent."""
    other = await store.another()
    added = await store.append(REF, "a", "b", "c")
    await store.write(Fork(REF, CHILD, None))
    before = await store.messages(CHILD)
    await other.write(Truncate(REF, added.items[0].message_id))
    await append_to(other, REF, ["d"])
    expect_equal(await store.messages(CHILD), before, "the messages of the fork")
    expect_equal(await store.texts(REF), ["a", "d"], "the messages of the parent")


@check("share", needs=("search", "shared"))
async def one_store_finds_messages_of_the_other(store: Subject) -> None:
    """A search in one store finds what the other has acknowledged, and nothing that it has deleted."""
    other = await store.another()
    for number in range(5):
        await append_to(other, REF, [f"kiwi token{number}x"])
        expect_equal(await store.positions(f"token{number}x"), [number + 1], "the positions found")
    await other.write(Delete(REF))
    expect_equal(await store.positions("kiwi"), [], "the positions found after the deletion")


@check("share", needs=("buffer", "shared"))
async def an_episode_is_claimed_by_one_store_only(store: Subject) -> None:
    """An episode that one store has leased is not leased by the other."""
    stores = [store.store, await store.another()]
    for number in range(40):
        await store.buffer().push(str(number).encode(), "main")
    buffers = [store.buffer(store=each) for each in stores for _ in range(2)]
    found = await asyncio.gather(*(buffer.claim(10, HOUR_MS) for buffer in buffers))
    claimed = [int(episode.payload) for each in found for episode in each]
    expect_equal(sorted(claimed), list(range(40)), "the episodes claimed")
