"""Reads, and writes that are submitted without being awaited."""

from __future__ import annotations

import asyncio
from typing import Any

from sidecar.conformance.kit import expect, expect_equal, expect_found, expect_raises
from sidecar.conformance.store.samples import REF, reply, user
from sidecar.conformance.store.subject import Subject, check, texts
from sidecar.store.errors import SessionMissing, StoreUnavailable
from sidecar.store.stored import SessionHead, SessionRef
from sidecar.store.writes import Append, Delete, Write

RANGES = [(1, 3, "abc"), (2, 2, "b"), (3, 99, "cd"), (-5, 1, "a"), (5, 9, ""), (3, 2, ""), (0, 0, "")]


@check("read")
async def a_missing_session_reads_as_empty(store: Subject) -> None:
    reads = store.store
    expect_equal(await reads.session(REF), None)
    expect_equal(await reads.messages(REF, 1, 10), [])
    expect_equal(await reads.messages_of_role(REF, "system"), [])
    expect_equal(await reads.message(REF, "m"), None)
    expect_equal(await reads.keyed(REF, 1, 10), [])
    expect_equal(await reads.turn_start(REF, 1), None)
    expect_equal(await reads.summaries(REF), [])


@check("read")
async def a_range_of_positions_includes_both_ends(store: Subject) -> None:
    await store.append(REF, *"abcd")
    for first, last, expected in RANGES:
        expect_equal(texts(await store.messages(REF, first, last)), list(expected))


@check("read")
async def messages_of_one_role_are_found_in_order(store: Subject) -> None:
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
    )


@check("read")
async def a_session_of_one_namespace_is_not_read_from_another(store: Subject) -> None:
    message_id = (await store.append(REF, "a")).items[0].message_id
    other = SessionRef("elsewhere", REF.session_id)
    expect_equal(await store.messages(other), [])
    expect_equal(await store.store.message(other, message_id), None)


@check("read")
async def keyed_messages_distinguish_host_ids_from_generated_ones(store: Subject) -> None:
    await store.append(REF, "a", user("b", message_id="host", turn_id="x"), reply("c", inner_id="in"))
    made_up, given, inner = await store.store.keyed(REF, 1, 3)
    expect_equal((made_up.host_id, made_up.message_id), (None, (await store.ids(REF))[0]))
    expect_equal((given.host_id, given.message_id, given.turn_id), ("host", "host", "x"))
    expect_equal((inner.inner_id, inner.facts), ("in", None))


@check("read")
async def the_head_counts_messages_and_turns(store: Subject) -> None:
    await store.append(REF, "a", reply("b"), "c", agent_id="ann", session_key="key")
    head = expect_found(await store.store.session(REF))
    expect_equal((head.ref, head.message_count, head.turn_count), (REF, 3, 2))
    expect_equal((head.agent_id, head.session_key, head.message_format), ("ann", "key", "openai"))


@check("read")
async def a_read_sees_every_write_whose_done_has_run(store: Subject) -> None:
    for count in range(1, 20):
        result = await store.append(REF, "a")
        expect_equal(await store.store.session(REF), result.head)
        expect_equal(len(await store.messages(REF)), count)


async def listed(store: Subject, namespace: str | None, limit: int) -> list[list[SessionHead]]:
    pages: list[list[SessionHead]] = []
    cursor = None
    while True:
        page, cursor = await store.store.sessions(namespace, limit, cursor)
        pages.append(page)
        if cursor is None:
            return pages


@check("read")
async def sessions_are_listed_newest_change_first_page_by_page(store: Subject) -> None:
    refs = [SessionRef("host", f"s{index}") for index in range(7)]
    for ref in refs:
        await store.append(ref, "a")
    await store.append(refs[2], "b")
    pages = await listed(store, "host", 3)
    expect_equal([len(page) for page in pages], [3, 3, 1])
    heads = [head for page in pages for head in page]
    expect_equal({head.ref for head in heads}, set(refs))
    stamps = [(head.updated_ms, head.uid) for head in heads]
    expect_equal(stamps, sorted(stamps, reverse=True))


@check("read")
async def a_page_that_ends_the_list_has_no_cursor(store: Subject) -> None:
    for index in range(4):
        await store.append(SessionRef("host", f"s{index}"), "a")
    expect_equal(
        [len(page) for page in await listed(store, "host", 2)],
        [2, 2],
        "[len(page) for page in listed('host', 2)]",
    )


@check("read")
async def a_list_is_of_one_namespace_or_of_all(store: Subject) -> None:
    await store.append(REF, "a")
    await store.append(SessionRef("elsewhere", "b"), "b")
    expect_equal([head.ref for head in (await listed(store, "host", 9))[0]], [REF])
    expect_equal(len((await listed(store, None, 9))[0]), 2, "len(listed(None, 9)[0])")


@check("read")
async def a_foreign_cursor_is_refused(store: Subject) -> None:
    for cursor in ("", "1", "x.y", "1.2.3", "-1.2", "1." + "9" * 30):
        await expect_raises(ValueError, store.store.sessions(None, 5, cursor), "sessions(None, 5, cursor)")


@check("read")
async def a_closed_store_neither_reads_nor_writes(store: Subject) -> None:
    await store.store.close()
    await expect_raises(StoreUnavailable, store.store.session(REF), "session(REF)")
    await expect_raises(StoreUnavailable, store.append(REF, "a"), "append(REF, 'a')")


def append(text: str, ref: SessionRef = REF) -> Append:
    return Append(ref, [user(text)], message_format="openai")


@check("submit")
async def done_runs_once_for_each_write_in_the_order_of_submission(store: Subject) -> None:

    async def burst() -> tuple[list[Write], list[Write]]:
        writes: list[Write] = []
        done: list[Write] = []
        for index in range(300):
            ref = SessionRef("host", f"s{index % 7}")
            write = Append(ref, [user("a")], message_format="anthropic" if index % 50 == 49 else "openai")
            writes.append(write)
            store.store.submit(write, done.append)
            if index % 40 == 0:
                await asyncio.sleep(0)
        last = append("z")
        await store.store.write(last)
        return (writes, done)

    writes, done = await burst()
    expect_equal(done, writes)
    expect_equal([write.error is not None for write in writes], [index % 50 == 49 for index in range(300)])


@check("submit")
async def done_is_never_called_before_submit_returns(store: Subject) -> None:

    async def submit() -> bool:
        called: list[Write] = []
        store.store.submit(append("a"), called.append)
        early = bool(called)
        await store.store.write(append("b"))
        return early

    expect_equal(await submit(), False)


@check("submit")
async def a_callback_that_fails_does_not_keep_others_from_theirs(store: Subject) -> None:

    async def submit() -> list[str]:
        reported: list[str] = []
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(lambda _, context: reported.append(context["message"]))

        def fail(_: Write) -> None:
            raise RuntimeError("boom")

        store.store.submit(append("a"), fail)
        try:
            await store.store.write(append("b"))
        finally:
            loop.set_exception_handler(before)
        return reported

    expect_equal(await submit(), ["the callback of the write 'append' failed"])
    expect_equal(await store.texts(REF), ["a", "b"])


@check("submit")
async def a_withdrawn_write_has_no_effect_and_no_callback(store: Subject) -> None:

    async def withdraw() -> tuple[list[bool], list[Append], list[Write]]:
        done: list[Write] = []
        writes = [append(str(index)) for index in range(200)]
        for write in writes:
            store.store.submit(write, done.append)
        withdrawn = [store.store.withdraw(write) for write in writes]
        await store.store.write(append("end"))
        return (withdrawn, writes, done)

    withdrawn, writes, done = await withdraw()
    expect(any(withdrawn))
    kept = [str(index) for index, gone in enumerate(withdrawn) if not gone]
    expect_equal(await store.texts(REF), [*kept, "end"])
    expect_equal(done, [write for write, gone in zip(writes, withdrawn, strict=True) if not gone])


@check("submit")
async def a_completed_write_cannot_be_withdrawn(store: Subject) -> None:
    write = append("a")
    await store.write(write)
    expect_equal(store.store.withdraw(write), False)
    expect_equal(await store.texts(REF), ["a"])


@check("submit")
async def cancelling_a_waiting_task_withdraws_its_write_or_lets_it_finish(store: Subject) -> None:

    async def race() -> list[str]:
        kept: list[str] = []
        for index in range(60):
            store.store.submit(append("filler", SessionRef("host", "filler")), lambda _: None)
            task = asyncio.create_task(store.store.write(append(str(index))))
            for _ in range(index % 4):
                await asyncio.sleep(0)
            task.cancel()
            try:
                result = await task
            except asyncio.CancelledError:
                continue
            expect(result.items[0].stored)
            kept.append(str(index))
        await store.store.write(append("end"))
        return kept

    kept = await race()
    expect_equal(await store.texts(REF), [*kept, "end"])


@check("submit")
async def close_finishes_submitted_writes(store: Subject) -> None:

    async def submit_and_close() -> list[Write]:
        done: list[Write] = []
        for index in range(50):
            store.store.submit(append(str(index)), done.append)
        await store.store.close()
        await store.store.close()
        return done

    done = await submit_and_close()
    expect_equal([write.error for write in done], [None] * 50)


@check("submit")
async def writes_of_one_batch_see_each_other(store: Subject) -> None:

    async def burst() -> list[Any]:
        results: list[Any] = []
        again = Append(REF, [user("a", message_id="m")], message_format="openai")
        for write in (
            Append(REF, [user("a", message_id="m")], message_format="openai"),
            again,
            Delete(REF),
            append("b"),
        ):
            store.store.submit(write, lambda done: results.append(done.result))
        await store.store.write(append("c"))
        return results

    first, second, deleted, third = await burst()
    expect_equal(
        (first[0][0].stored, second[0][0].stored, deleted, third[0][0].position), (True, False, True, 1)
    )
    expect_equal(await store.texts(REF), ["b", "c"])


@check("submit")
async def waiting_for_a_refused_write_raises_its_error(store: Subject) -> None:
    write = Append(REF, [user("a")], message_format="openai", create=False)
    caught = await expect_raises(SessionMissing, store.write(write), "write(write)")
    expect_equal(caught, write.error)
