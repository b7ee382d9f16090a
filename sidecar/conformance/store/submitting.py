"""How writes are queued, completed, withdrawn or waited for."""

import asyncio
from typing import Any

from sidecar.conformance.expecting import expect, expect_equal, expect_raises
from sidecar.conformance.store.samples import (
    REF,
    user,
)
from sidecar.conformance.store.subject import Subject
from sidecar.conformance.store.suite import SUITE
from sidecar.store.errors import SessionMissing
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Append, Delete, Write

AREA = SUITE.area("submit")


def append(text: str, ref: SessionRef = REF) -> Append:
    return Append(ref, [user(text)], message_format="openai")


@AREA.check()
async def done_runs_once_for_each_write_in_the_order_of_submission(store: Subject) -> None:
    """Done runs once for each write in the order of submission."""

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
    expect_equal(done, writes, "done")
    expect_equal(
        [write.error is not None for write in writes],
        [index % 50 == 49 for index in range(300)],
        "[write.error is not None for write in writes]",
    )


@AREA.check()
async def done_is_never_called_before_submit_returns(store: Subject) -> None:
    """Done is never called before submit returns."""

    async def submit() -> bool:
        called: list[Write] = []
        store.store.submit(append("a"), called.append)
        early = bool(called)
        await store.store.write(append("b"))
        return early

    expect_equal(await submit(), False, "submit()")


@AREA.check()
async def a_callback_that_fails_does_not_keep_others_from_theirs(store: Subject) -> None:
    """A callback that fails does not keep others from theirs."""

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

    expect_equal(await submit(), ["the callback of the write 'append' failed"], "submit()")
    expect_equal(await store.texts(REF), ["a", "b"], "texts(REF)")


@AREA.check()
async def a_withdrawn_write_has_no_effect_and_no_callback(store: Subject) -> None:
    """A withdrawn write has no effect and no callback."""

    async def withdraw() -> tuple[list[bool], list[Append], list[Write]]:
        done: list[Write] = []
        writes = [append(str(index)) for index in range(200)]
        for write in writes:
            store.store.submit(write, done.append)
        withdrawn = [store.store.withdraw(write) for write in writes]
        await store.store.write(append("end"))
        return (withdrawn, writes, done)

    withdrawn, writes, done = await withdraw()
    expect(any(withdrawn), "this is not so: any(withdrawn)")
    kept = [str(index) for index, gone in enumerate(withdrawn) if not gone]
    expect_equal(await store.texts(REF), [*kept, "end"], "texts(REF)")
    expect_equal(done, [write for write, gone in zip(writes, withdrawn, strict=True) if not gone], "done")


@AREA.check()
async def a_completed_write_cannot_be_withdrawn(store: Subject) -> None:
    """A completed write cannot be withdrawn."""
    write = append("a")
    await store.write(write)
    expect_equal(store.store.withdraw(write), False, "withdraw(write)")
    expect_equal(await store.texts(REF), ["a"], "texts(REF)")


@AREA.check()
async def cancelling_a_waiting_task_takes_its_write_back_or_lets_it_finish(store: Subject) -> None:
    """Cancelling a waiting task takes its write back or lets it finish."""

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
            expect(result.items[0].stored, "this is not so: result.items[0].stored")
            kept.append(str(index))
        await store.store.write(append("end"))
        return kept

    kept = await race()
    expect_equal(await store.texts(REF), [*kept, "end"], "texts(REF)")


@AREA.check()
async def close_finishes_what_was_submitted(store: Subject) -> None:
    """Close finishes what was submitted."""

    async def submit_and_close() -> list[Write]:
        done: list[Write] = []
        for index in range(50):
            store.store.submit(append(str(index)), done.append)
        await store.store.close()
        await store.store.close()
        return done

    done = await submit_and_close()
    expect_equal([write.error for write in done], [None] * 50, "every error of done")


@AREA.check()
async def writes_of_one_batch_see_each_other(store: Subject) -> None:
    """Writes of one batch see each other."""

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
        (first[0][0].stored, second[0][0].stored, deleted, third[0][0].position),
        (True, False, True, 1),
        "first[0][0].stored, second[0][0].stored, deleted, third[0][0].position",
    )
    expect_equal(await store.texts(REF), ["b", "c"], "texts(REF)")


@AREA.check()
async def waiting_for_a_refused_write_raises_its_error(store: Subject) -> None:
    """Waiting for a refused write raises its error."""
    write = Append(REF, [user("a")], message_format="openai", create=False)
    caught = await expect_raises(SessionMissing, store.write(write), "write(write)")
    expect_equal(caught, write.error, "caught")
