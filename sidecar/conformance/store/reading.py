"""Reads of messages and sessions."""

from sidecar.conformance.expecting import expect_equal, expect_found, expect_raises
from sidecar.conformance.store.samples import (
    REF,
    reply,
    user,
)
from sidecar.conformance.store.subject import Subject, texts
from sidecar.conformance.store.suite import SUITE
from sidecar.store.errors import StoreUnavailable
from sidecar.store.stored import SessionHead, SessionRef

AREA = SUITE.area("read")

RANGES = [(1, 3, "abc"), (2, 2, "b"), (3, 99, "cd"), (-5, 1, "a"), (5, 9, ""), (3, 2, ""), (0, 0, "")]


@AREA.check()
async def a_session_that_is_not_there_reads_as_empty(store: Subject) -> None:
    """A session that is not there reads as empty."""
    reads = store.store
    expect_equal(await reads.session(REF), None, "reads.session(REF)")
    expect_equal(await reads.messages(REF, 1, 10), [], "reads.messages(REF, 1, 10)")
    expect_equal(await reads.messages_of_role(REF, "system"), [], "reads.messages_of_role(REF, 'system')")
    expect_equal(await reads.message(REF, "m"), None, "reads.message(REF, 'm')")
    expect_equal(await reads.keyed(REF, 1, 10), [], "reads.keyed(REF, 1, 10)")
    expect_equal(await reads.turn_start(REF, 1), None, "reads.turn_start(REF, 1)")
    expect_equal(await reads.summaries(REF), [], "reads.summaries(REF)")


@AREA.check()
async def a_range_of_positions_includes_both_ends(store: Subject) -> None:
    """A range of positions includes both ends."""
    await store.append(REF, *"abcd")
    for first, last, expected in RANGES:
        expect_equal(
            texts(await store.messages(REF, first, last)), list(expected), "texts(messages(REF, first, last))"
        )


@AREA.check()
async def messages_of_one_role_are_found_in_order(store: Subject) -> None:
    """Messages of one role are found in order."""
    await store.append(
        REF, reply("s1", "system"), "u", reply("s2", "system"), reply("x", "critic"), reply("t", "tool")
    )
    found = {
        role: texts(await store.store.messages_of_role(REF, role))
        for role in ("system", "user", "critic", "tool", "assistant", "s")
    }
    expect_equal(
        found,
        {"system": ["s1", "s2"], "user": ["u"], "critic": ["x"], "tool": ["t"], "assistant": [], "s": []},
        "found",
    )


@AREA.check()
async def a_session_of_one_namespace_is_not_read_from_another(store: Subject) -> None:
    """A session of one namespace is not read from another."""
    message_id = (await store.append(REF, "a")).items[0].message_id
    other = SessionRef("elsewhere", REF.session_id)
    expect_equal(await store.messages(other), [], "messages(other)")
    expect_equal(await store.store.message(other, message_id), None, "message(other, message_id)")


@AREA.check()
async def keyed_messages_tell_given_ids_from_made_up_ones(store: Subject) -> None:
    """Keyed messages tell given ids from made up ones."""
    await store.append(REF, "a", user("b", message_id="host", turn_id="x"), reply("c", inner_id="in"))
    made_up, given, inner = await store.store.keyed(REF, 1, 3)
    expect_equal(
        (made_up.host_id, made_up.message_id),
        (None, (await store.ids(REF))[0]),
        "made_up.host_id, made_up.message_id",
    )
    expect_equal(
        (given.host_id, given.message_id, given.turn_id),
        ("host", "host", "x"),
        "given.host_id, given.message_id, given.turn_id",
    )
    expect_equal((inner.inner_id, inner.facts), ("in", None), "inner.inner_id, inner.facts")


@AREA.check()
async def the_head_counts_messages_and_turns(store: Subject) -> None:
    """The head counts messages and turns."""
    await store.append(REF, "a", reply("b"), "c", agent_id="ann", session_key="key")
    head = await store.store.session(REF)
    head = expect_found(head, "head")
    expect_equal(
        (head.ref, head.message_count, head.turn_count),
        (REF, 3, 2),
        "head.ref, head.message_count, head.turn_count",
    )
    expect_equal(
        (head.agent_id, head.session_key, head.message_format),
        ("ann", "key", "openai"),
        "head.agent_id, head.session_key, head.message_format",
    )


@AREA.check()
async def a_read_sees_every_write_whose_done_has_run(store: Subject) -> None:
    """A read sees every write whose done has run."""
    for count in range(1, 20):
        result = await store.append(REF, "a")
        expect_equal(await store.store.session(REF), result.head, "session(REF)")
        expect_equal(len(await store.messages(REF)), count, "len(messages(REF))")


async def listed(store: Subject, namespace: str | None, limit: int) -> list[list[SessionHead]]:
    pages: list[list[SessionHead]] = []
    cursor = None
    while True:
        page, cursor = await store.store.sessions(namespace, limit, cursor)
        pages.append(page)
        if cursor is None:
            return pages


@AREA.check()
async def sessions_are_listed_newest_change_first_page_by_page(store: Subject) -> None:
    """Sessions are listed newest change first page by page."""
    refs = [SessionRef("host", f"s{index}") for index in range(7)]
    for ref in refs:
        await store.append(ref, "a")
    await store.append(refs[2], "b")
    pages = await listed(store, "host", 3)
    expect_equal([len(page) for page in pages], [3, 3, 1], "[len(page) for page in pages]")
    heads = [head for page in pages for head in page]
    expect_equal({head.ref for head in heads}, set(refs), "{head.ref for head in heads}")
    stamps = [(head.updated_ms, head.uid) for head in heads]
    expect_equal(stamps, sorted(stamps, reverse=True), "stamps")


@AREA.check()
async def a_page_that_ends_the_list_has_no_cursor(store: Subject) -> None:
    """A page that ends the list has no cursor."""
    for index in range(4):
        await store.append(SessionRef("host", f"s{index}"), "a")
    expect_equal(
        [len(page) for page in await listed(store, "host", 2)],
        [2, 2],
        "[len(page) for page in listed('host', 2)]",
    )


@AREA.check()
async def a_list_is_of_one_namespace_or_of_all(store: Subject) -> None:
    """A list is of one namespace or of all."""
    await store.append(REF, "a")
    await store.append(SessionRef("elsewhere", "b"), "b")
    expect_equal(
        [head.ref for head in (await listed(store, "host", 9))[0]], [REF], "every ref of listed('host', 9)[0]"
    )
    expect_equal(len((await listed(store, None, 9))[0]), 2, "len(listed(None, 9)[0])")


@AREA.check()
async def a_cursor_that_is_not_ours_is_refused(store: Subject) -> None:
    """A cursor that is not ours is refused."""
    for cursor in ("", "1", "x.y", "1.2.3", "-1.2", "1." + "9" * 30):
        await expect_raises(ValueError, store.store.sessions(None, 5, cursor), "sessions(None, 5, cursor)")


@AREA.check()
async def a_closed_store_neither_reads_nor_writes(store: Subject) -> None:
    """A closed store neither reads nor writes."""
    await store.store.close()
    await expect_raises(StoreUnavailable, store.store.session(REF), "session(REF)")
    await expect_raises(StoreUnavailable, store.append(REF, "a"), "append(REF, 'a')")
