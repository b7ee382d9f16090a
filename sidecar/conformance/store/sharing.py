"""Two stores that are open on the same data."""

import asyncio

from sidecar.conformance.expecting import expect, expect_equal, expect_found, expect_raises
from sidecar.conformance.store.samples import CHILD, FACTS, REF, user
from sidecar.conformance.store.subject import Subject, append_to, texts
from sidecar.conformance.store.suite import SUITE
from sidecar.store.contract import SessionStore
from sidecar.store.errors import SessionMissing
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Append, Delete, Fork, SaveFacts, Truncate

AREA = SUITE.area("share", "shared")
HOUR_MS = 3_600_000
ROUNDS = 25


async def read_texts(store: SessionStore, ref: SessionRef = REF) -> list[str]:
    """The bodies of all messages, as this store reads them."""
    return texts(await store.messages(ref, 1, 1 << 30))


@AREA.check()
async def one_reads_what_the_other_has_acknowledged(store: Subject) -> None:
    """What one store has acknowledged is read by the other at once, and added to."""
    other = await store.another()
    for number in range(10):
        writer, reader = (store.store, other) if number % 2 else (other, store.store)
        added = await append_to(writer, REF, [str(number)])
        expect_equal(added.items[0].position, number + 1, "the position")
        expect_equal(await read_texts(reader), [str(each) for each in range(number + 1)], "what is read")
        expect_equal(await reader.session(REF), added.head, "the head that is read")


@AREA.check()
async def writes_at_once_keep_one_order_without_loss_or_doubles(store: Subject) -> None:
    """Two stores that append to the same sessions at once lose, double and disorder nothing."""
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


@AREA.check()
async def a_session_that_both_make_at_once_is_one(store: Subject) -> None:
    """Two stores that append to a session which is not there yet make one session."""
    stores = [store.store, await store.another()]
    for number in range(ROUNDS):
        ref = SessionRef("host", f"s{number}")
        added = await asyncio.gather(*(append_to(each, ref, ["a"]) for each in stores))
        expect_equal(sorted(each.items[0].position for each in added), [1, 2], "the positions")
        expect_equal(len({each.head.uid for each in added}), 1, "the number of sessions made")


@AREA.check()
async def a_message_id_is_stored_once(store: Subject) -> None:
    """A message id that both stores are given is stored once."""
    stores = [store.store, await store.another()]
    for number in range(ROUNDS):
        message = [user("a", message_id=f"m{number}")]
        added = await asyncio.gather(*(append_to(each, REF, message) for each in stores))
        expect_equal(sorted(each.items[0].stored for each in added), [False, True], "what was stored")
    expect_equal(len(await store.ids(REF)), ROUNDS, "the number of messages")


@AREA.check()
async def an_advancement_key_takes_effect_once(store: Subject) -> None:
    """An advancement key that both stores are given takes effect once."""
    stores = [store.store, await store.another()]
    for number in range(ROUNDS):
        added = await asyncio.gather(
            *(append_to(each, REF, ["a"], advancement_key=f"k{number}") for each in stores)
        )
        expect_equal(sorted(each.duplicate for each in added), [False, True], "what was a duplicate")
    expect_equal(len(await store.ids(REF)), ROUNDS, "the number of messages")


@AREA.check()
async def deletion_by_one_holds_for_the_other(store: Subject) -> None:
    """What one store deletes is gone for the other, which makes the session anew."""
    other = await store.another()
    before = await store.append(REF, "a", session_key="key")
    expect_equal(await read_texts(other), ["a"], "what is read before")
    await store.write(Delete(REF))
    expect_equal(await other.session(REF), None, "the session")
    expect_equal(await other.session_by_key("host", "key"), None, "the session by its key")
    added = await append_to(other, REF, ["b"])
    expect_equal(added.items[0].position, 1, "the position")
    expect(added.head.uid != before.head.uid, "the uid was used again")


@AREA.check()
async def an_agent_bound_by_one_is_bound_for_the_other(store: Subject) -> None:
    """A session that one store has bound to an agent is not another agent's in the other store."""
    other = await store.another()
    await store.append(REF, "a")
    expect_found(await other.session(REF), "the session")
    await store.append(REF, "b", agent_id="ann")
    late = Append(REF, [user("c")], message_format="openai", agent_id="bob")
    await expect_raises(SessionMissing, other.write(late), "an append by another agent")


@AREA.check()
async def facts_for_messages_that_the_other_has_rewritten_are_dropped(store: Subject) -> None:
    """Facts that were worked out before another store rewrote the session are not kept."""
    other = await store.another()
    added = await store.append(REF, "a", "b")
    await other.session(REF)
    await store.write(Truncate(REF, added.items[0].message_id))
    await store.append(REF, "c")
    await other.write(SaveFacts(REF, added.head.revision, [(2, FACTS)]))
    expect_equal([row.facts for row in await store.store.keyed(REF, 1, 2)], [None, None], "the facts")


@AREA.check()
async def a_fork_by_one_keeps_what_the_other_takes_from_the_parent(store: Subject) -> None:
    """A fork made in one store keeps its messages when the other truncates the parent."""
    other = await store.another()
    added = await store.append(REF, "a", "b", "c")
    await store.write(Fork(REF, CHILD, None))
    before = await store.messages(CHILD)
    await other.write(Truncate(REF, added.items[0].message_id))
    await append_to(other, REF, ["d"])
    expect_equal(await store.messages(CHILD), before, "the messages of the fork")
    expect_equal(await store.texts(REF), ["a", "d"], "the messages of the parent")


@AREA.check("search")
async def one_finds_what_the_other_has_stored(store: Subject) -> None:
    """A search in one store finds what the other has acknowledged, and not what it has deleted."""
    other = await store.another()
    for number in range(5):
        await append_to(other, REF, [f"kiwi token{number}x"])
        expect_equal(await store.positions(f"token{number}x"), [number + 1], "what is found")
    await other.write(Delete(REF))
    expect_equal(await store.positions("kiwi"), [], "what is found after the deletion")


@AREA.check("buffer")
async def episodes_are_claimed_by_one_of_both(store: Subject) -> None:
    """An episode that one store has leased is not leased by the other."""
    stores = [store.store, await store.another()]
    for number in range(40):
        await store.buffer().push(str(number).encode(), "main")
    buffers = [store.buffer(store=each) for each in stores for _ in range(2)]
    found = await asyncio.gather(*(buffer.claim(10, HOUR_MS) for buffer in buffers))
    claimed = [int(episode.payload) for each in found for episode in each]
    expect_equal(sorted(claimed), list(range(40)), "what was claimed")
