"""How writes are queued, completed, withdrawn and waited for."""

import asyncio

import pytest

from sidecar.store.contract import Append, Delete, SessionMissing, SessionRef, Write
from tests.store_kit import REF, Driver, user


def append(text: str, ref: SessionRef = REF) -> Append:
    return Append(ref, [user(text)], message_format="openai")


def test_done_runs_once_for_each_write_in_the_order_of_submission(store: Driver) -> None:
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
        return writes, done

    writes, done = store.run(burst())
    assert done == writes
    assert [write.error is not None for write in writes] == [index % 50 == 49 for index in range(300)]


def test_done_is_never_called_before_submit_returns(store: Driver) -> None:
    async def submit() -> bool:
        called: list[Write] = []
        store.store.submit(append("a"), called.append)
        early = bool(called)
        await store.store.write(append("b"))
        return early

    assert store.run(submit()) is False


def test_a_callback_that_fails_does_not_keep_others_from_theirs(store: Driver) -> None:
    async def submit() -> list[str]:
        reported: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context["message"])
        )

        def fail(_: Write) -> None:
            raise RuntimeError("boom")

        store.store.submit(append("a"), fail)
        await store.store.write(append("b"))
        return reported

    assert store.run(submit()) == ["the callback of the write 'append' failed"]
    assert store.texts(REF) == ["a", "b"]


def test_a_withdrawn_write_has_no_effect_and_no_callback(store: Driver) -> None:
    async def withdraw() -> tuple[list[bool], list[Write], list[Write]]:
        done: list[Write] = []
        writes = [append(str(index)) for index in range(200)]
        for write in writes:
            store.store.submit(write, done.append)
        withdrawn = [store.store.withdraw(write) for write in writes]
        await store.store.write(append("end"))
        return withdrawn, writes, done

    withdrawn, writes, done = store.run(withdraw())
    assert any(withdrawn)
    kept = [str(index) for index, gone in enumerate(withdrawn) if not gone]
    assert store.texts(REF) == [*kept, "end"]
    assert done == [write for write, gone in zip(writes, withdrawn, strict=True) if not gone]


def test_a_completed_write_cannot_be_withdrawn(store: Driver) -> None:
    write = append("a")
    store.write(write)
    assert store.store.withdraw(write) is False
    assert store.texts(REF) == ["a"]


def test_cancelling_a_waiting_task_takes_its_write_back_or_lets_it_finish(store: Driver) -> None:
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
            assert result.items[0].stored
            kept.append(str(index))
        await store.store.write(append("end"))
        return kept

    kept = store.run(race())
    assert store.texts(REF) == [*kept, "end"]


def test_close_finishes_what_was_submitted(store: Driver) -> None:
    async def submit_and_close() -> list[Write]:
        done: list[Write] = []
        for index in range(50):
            store.store.submit(append(str(index)), done.append)
        await store.store.close()
        await store.store.close()
        return done

    done = store.run(submit_and_close())
    assert [write.error for write in done] == [None] * 50


def test_writes_of_one_batch_see_each_other(store: Driver) -> None:
    async def burst() -> list[object]:
        results: list[object] = []
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

    first, second, deleted, third = store.run(burst())
    assert isinstance(first, tuple)
    assert isinstance(second, tuple)
    assert isinstance(third, tuple)
    assert (first[0][0].stored, second[0][0].stored, deleted, third[0][0].position) == (True, False, True, 1)
    assert store.texts(REF) == ["b", "c"]


def test_waiting_for_a_refused_write_raises_its_error(store: Driver) -> None:
    write = Append(REF, [user("a")], message_format="openai", create=False)
    with pytest.raises(SessionMissing) as caught:
        store.write(write)
    assert caught.value is write.error
