"""Ways to break reads, the queue of writes, or what outlasts a store."""

import asyncio
from contextlib import suppress
from typing import Any

from msgspec.structs import replace
from pytest import MonkeyPatch

from sidecar.store.reads import SessionReads
from sidecar.store.stored import SessionRef
from tests.conformance.dictionary import store as memory_store
from tests.conformance.dictionary.store import MemoryStore
from tests.conformance.dictionary.tables import MemoryTables
from tests.conformance.kept_store import KeptStore, copied


def _read(patch: MonkeyPatch, name: str, change: Any) -> None:
    """Change what a read returns: `change(result, *given)`."""
    read = getattr(SessionReads, name)

    async def changed(store: Any, *given: Any) -> Any:
        return change(await read(store, *given), *given)

    patch.setattr(KeptStore, name, changed, raising=False)


def reads_a_session_that_is_not_there_as_an_error(patch: MonkeyPatch) -> None:
    def change(found: Any, ref: Any, *_: Any) -> Any:
        if not found:
            raise KeyError(ref)
        return found

    _read(patch, "messages", change)


def leaves_out_the_last_position(patch: MonkeyPatch) -> None:
    _read(patch, "messages", lambda found, ref, first, last: [each for each in found if each.position < last])


def reads_messages_newest_first(patch: MonkeyPatch) -> None:
    _read(patch, "messages_of_role", lambda found, *_: found[::-1])


def reads_from_every_namespace(patch: MonkeyPatch) -> None:
    by_ref = MemoryTables.session

    def session(tables: Any, ref: Any) -> Any:
        found = by_ref(tables, ref)
        others = (uid for key, uid in tables._uids.items() if key.session_id == ref.session_id)
        return found or tables._sessions.get(next(others, 0))

    patch.setattr(MemoryTables, "session", session)


def tells_made_up_ids_as_the_hosts(patch: MonkeyPatch) -> None:
    _read(patch, "keyed", lambda found, *_: [each._replace(host_id=each.message_id) for each in found])


def counts_turns_from_zero(patch: MonkeyPatch) -> None:
    _read(patch, "session", lambda head, _: head and replace(head, turn_count=head.turn_count - 1))


def reads_what_was_there_a_write_before(patch: MonkeyPatch) -> None:
    read = SessionReads.session

    async def late(store: Any, ref: SessionRef) -> Any:
        found = await read(store, ref)
        told = getattr(store, "told", None) or found
        store.told = found
        return told

    patch.setattr(KeptStore, "session", late, raising=False)


def finds_turns_one_message_late(patch: MonkeyPatch) -> None:
    _read(patch, "turn_start", lambda found, *_: found and found + 1)


def lists_sessions_oldest_first(patch: MonkeyPatch) -> None:
    _read(patch, "sessions", lambda found, *_: (found[0][::-1], found[1]))


def ends_every_list_with_a_cursor(patch: MonkeyPatch) -> None:
    from sidecar.store.reads import encode_cursor
    from sidecar.store.records import SessionRecord

    find = MemoryTables.sessions

    def sessions(tables: Any, namespace: Any, limit: int, cursor: Any) -> Any:
        heads, rest = find(tables, namespace, limit, cursor)
        if heads and rest is None:
            record: SessionRecord = tables._sessions[heads[-1].uid]
            rest = encode_cursor(record)
        return heads, rest

    patch.setattr(MemoryTables, "sessions", sessions)


def lists_sessions_of_every_namespace(patch: MonkeyPatch) -> None:
    find = MemoryTables.sessions
    patch.setattr(MemoryTables, "sessions", lambda tables, _, *given: find(tables, None, *given))


def takes_any_text_for_a_cursor(patch: MonkeyPatch) -> None:
    from tests.conformance.dictionary import tables

    decode = tables.decode_cursor

    def decoded(cursor: str) -> Any:
        try:
            return decode(cursor)
        except ValueError:
            return (1 << 62, 0)

    patch.setattr(tables, "decode_cursor", decoded)


def serves_after_it_was_closed(patch: MonkeyPatch) -> None:
    async def close(store: Any) -> None:
        store._carry_out()

    patch.setattr(KeptStore, "close", close, raising=False)


def tells_a_batch_backwards(patch: MonkeyPatch) -> None:
    tell = MemoryStore.tell
    patch.setattr(MemoryStore, "tell", lambda store, batch: tell(store, batch[::-1]))


def carries_out_before_submit_returns(patch: MonkeyPatch) -> None:
    submit = MemoryStore.submit

    def at_once(store: Any, write: Any, done: Any) -> None:
        submit(store, write, done)
        if store._tables is not None:
            store._carry_out()

    patch.setattr(MemoryStore, "submit", at_once)


def swallows_what_callbacks_raise(patch: MonkeyPatch) -> None:
    def tell(store: Any, batch: Any) -> None:
        for write in batch:
            with suppress(RuntimeError):
                write.done(write)

    patch.setattr(MemoryStore, "tell", tell)


def carries_out_what_was_withdrawn(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryStore, "withdraw", lambda store, write: not write.started)


def withdraws_what_is_done(patch: MonkeyPatch) -> None:
    withdraw = MemoryStore.withdraw
    patch.setattr(MemoryStore, "withdraw", lambda store, write: withdraw(store, write) or True)


def cancels_a_wait_without_its_write(patch: MonkeyPatch) -> None:
    async def write(store: Any, write: Any) -> Any:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        store.submit(write, lambda _: done.done() or done.set_result(None))
        await done
        if write.error is not None:
            raise write.error
        return write.result

    patch.setattr(KeptStore, "write", write, raising=False)


def raises_an_error_of_its_own(patch: MonkeyPatch) -> None:
    write = MemoryStore.write

    async def raised(store: Any, each: Any) -> Any:
        try:
            return await write(store, each)
        except Exception as error:
            raise type(error)(*error.args) from error

    patch.setattr(KeptStore, "write", raised, raising=False)


def drops_what_is_queued_at_close(patch: MonkeyPatch) -> None:
    close = MemoryStore.close

    async def closed(store: Any) -> None:
        store._queue.clear()
        await close(store)

    patch.setattr(KeptStore, "close", closed, raising=False)


def carries_out_deletions_last(patch: MonkeyPatch) -> None:
    carry_out = MemoryStore._carry_out

    def late(store: Any) -> None:
        store._queue = memory_store.deque(sorted(store._queue, key=lambda write: write.verb == "delete"))
        carry_out(store)

    patch.setattr(MemoryStore, "_carry_out", late)


def keeps_nothing(patch: MonkeyPatch) -> None:
    patch.setattr(KeptStore, "opened", lambda store, _: MemoryTables())


def reads_what_was_there_when_it_was_opened(patch: MonkeyPatch) -> None:
    """Two stores on the same data do not see each other."""
    patch.setattr(KeptStore, "opened", lambda store, tables: copied(tables))


def loses_the_last_write(patch: MonkeyPatch) -> None:
    close = MemoryStore.close

    async def closed(store: Any) -> None:
        if store._queue:
            store._queue.pop().done = None
        await close(store)

    patch.setattr(KeptStore, "close", closed, raising=False)
