"""What is there when a store is opened again."""

from sidecar.conformance.expecting import expect, expect_equal, expect_found
from sidecar.conformance.store.samples import CHILD, FACTS, REF, reply, summary, user
from sidecar.conformance.store.subject import Subject
from sidecar.conformance.store.suite import SUITE
from sidecar.store.stored import SessionSettings
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

AREA = SUITE.area("last", "durable")


@AREA.check()
async def messages_and_heads_are_as_they_were(store: Subject) -> None:
    """Messages, their ids, turns, times and the session's head are the same after reopening."""
    await store.append(REF, user("a", message_id="m", timestamp_ms=5), reply("b", inner_id="i"), "c")
    before, head = await store.messages(REF), await store.store.session(REF)
    await store.reopen()
    expect_equal(await store.messages(REF), before, "the messages")
    expect_equal(await store.store.session(REF), head, "the head")


@AREA.check()
async def a_session_goes_on_where_it_ended(store: Subject) -> None:
    """Positions and turns go on after reopening, and ids that were made up are not made up again."""
    await store.append(REF, "a", "b")
    before = await store.ids(REF)
    await store.reopen()
    added = (await store.append(REF, "c")).items[0]
    expect_equal((added.position, added.turn_id), (3, "t3"), "position and turn")
    expect(added.message_id not in before, f"the id {added.message_id} was made up twice")
    again = (await store.append(REF, user("a", message_id=before[0]))).items[0]
    expect_equal(again.stored, False, "whether a made up id that came back was stored again")


@AREA.check()
async def ids_of_removed_messages_never_come_again(store: Subject) -> None:
    """Ids of messages that were removed before reopening are not made up again."""
    await store.append(REF, "a", "b", "c")
    old = await store.ids(REF)
    await store.write(Truncate(REF, old[0]))
    await store.reopen()
    await store.append(REF, "d", "e", "f")
    expect_equal(set(old) & set(await store.ids(REF)), {old[0]}, "ids that came before and after")


@AREA.check()
async def what_is_kept_beside_the_messages_lasts(store: Subject) -> None:
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


@AREA.check()
async def messages_without_facts_are_still_handed_out(store: Subject) -> None:
    """Messages that lacked facts when the store was closed are handed out by the next one."""
    await store.append(REF, "a", user("b", facts=FACTS), "c")
    await store.reopen()
    found = await store.store.without_facts(10)
    expect_equal(
        [message.body for batch in found for message in batch[3]], [b"a", b"c"], "messages without facts"
    )


@AREA.check()
async def deletion_lasts(store: Subject) -> None:
    """A deleted session is not there after reopening, and one made anew under its name has another uid."""
    uid = (await store.append(REF, "a", session_key="key")).head.uid
    await store.write(Delete(REF))
    await store.reopen()
    expect_equal(await store.store.session(REF), None, "the session")
    expect_equal(await store.store.session_by_key("host", "key"), None, "the session by its key")
    expect((await store.append(REF, "b")).head.uid != uid, "the uid was used again")


@AREA.check()
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


@AREA.check()
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


@AREA.check("search")
async def what_was_stored_before_is_found(store: Subject) -> None:
    """A search finds what was stored before reopening, and what was added since."""
    await store.append(REF, *[f"kiwi number {number}" for number in range(20)])
    await store.reopen()
    await store.append(REF, "lemon and kiwi")
    expect_equal(await store.positions("lemon"), [21], "positions of lemon")
    expect_equal(len(await store.positions("kiwi", limit=99)), 21, "the number of kiwis")
