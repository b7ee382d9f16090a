"""The ids of what was injected into a session."""

from sidecar.conformance.expecting import expect
from sidecar.conformance.store.samples import REF
from sidecar.conformance.store.subject import Subject
from sidecar.conformance.store.suite import SUITE
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Delete, Fork

AREA = SUITE.area("injected", "buffer")


@AREA.check()
async def an_id_is_new_once(store: Subject) -> None:
    """An id is new once."""
    buffer = store.buffer()
    expect(
        not await buffer.has_injected_id("main", "item"),
        "this is not so: not buffer.has_injected_id('main', 'item')",
    )
    expect(
        await buffer.add_injected_id("main", "item"), "this is not so: buffer.add_injected_id('main', 'item')"
    )
    expect(
        not await buffer.add_injected_id("main", "item"),
        "this is not so: not buffer.add_injected_id('main', 'item')",
    )
    expect(
        await buffer.has_injected_id("main", "item"), "this is not so: buffer.has_injected_id('main', 'item')"
    )


@AREA.check()
async def ids_belong_to_a_session_an_engine_and_a_namespace(store: Subject) -> None:
    """Ids belong to a session an engine and a namespace."""
    await store.buffer().add_injected_id("main", "item")
    expect(
        not await store.buffer().has_injected_id("side", "item"),
        "this is not so: not buffer().has_injected_id('side', 'item')",
    )
    expect(
        not await store.buffer(engine="lossless").has_injected_id("main", "item"),
        "this is not so: not buffer(engine='lossless').has_injected_id('main', 'item')",
    )
    expect(
        not await store.buffer(namespace="elsewhere").has_injected_id("main", "item"),
        "this is not so: not buffer(namespace='elsewhere').has_injected_id('main', 'item')",
    )


@AREA.check()
async def clearing_forgets_the_ids_of_one_session(store: Subject) -> None:
    """Clearing forgets the ids of one session."""
    buffer = store.buffer()
    for session in ("main", "side"):
        await buffer.add_injected_id(session, "item")
    await buffer.clear_injected_ids("main")
    expect(
        not await buffer.has_injected_id("main", "item"),
        "this is not so: not buffer.has_injected_id('main', 'item')",
    )
    expect(
        await buffer.has_injected_id("side", "item"), "this is not so: buffer.has_injected_id('side', 'item')"
    )


@AREA.check()
async def single_ids_can_be_forgotten(store: Subject) -> None:
    """Single ids can be forgotten."""
    buffer = store.buffer()
    ids = ("first", "second", "x" * 5000)
    for item_id in ids:
        await buffer.add_injected_id("main", item_id)
    await buffer.clear_injected_ids("main", ["first", "x" * 5000, "never there"])
    await buffer.clear_injected_ids("main", [])
    await buffer.clear_injected_ids("side", ["second"])
    kept = [item_id for item_id in ids if await buffer.has_injected_id("main", item_id)]
    expect(kept == ["second"], f"of three ids, the one that was not cleared should be left, not {kept}")


@AREA.check()
async def any_text_can_be_an_id(store: Subject) -> None:
    """Any text can be an id."""
    buffer = store.buffer()
    ids = ["", " ", "nul\x00", "\x1a", "\x1a0000", "😀", "é", "e\u0301", "x" * 5000, "x" * 4999 + "y"]
    for item_id in ids:
        expect(
            await buffer.add_injected_id("main", item_id),
            "this is not so: buffer.add_injected_id('main', item_id)",
        )
    expect(
        all([await buffer.has_injected_id("main", item_id) for item_id in ids]),
        "this is not so: all([buffer.has_injected_id('main', item_id) for item_id in ids])",
    )


@AREA.check()
async def a_fork_knows_what_was_injected_before_it(store: Subject) -> None:
    """A fork knows what was injected before it."""
    buffer = store.buffer()
    await store.append(REF, "a")
    await buffer.add_injected_id(REF.session_id, "item")
    await store.write(Fork(REF, SessionRef("host", "child"), None))
    expect(
        await buffer.has_injected_id("child", "item"),
        "this is not so: buffer.has_injected_id('child', 'item')",
    )
    await buffer.clear_injected_ids("child")
    expect(
        await buffer.has_injected_id(REF.session_id, "item"),
        "this is not so: buffer.has_injected_id(REF.session_id, 'item')",
    )


@AREA.check()
async def deleting_a_session_forgets_its_ids(store: Subject) -> None:
    """Deleting a session forgets its ids."""
    buffer = store.buffer()
    for session in ("main", "side"):
        await buffer.add_injected_id(session, "item")
    await store.write(Delete(REF))
    expect(
        not await buffer.has_injected_id("main", "item"),
        "this is not so: not buffer.has_injected_id('main', 'item')",
    )
    expect(
        await buffer.has_injected_id("side", "item"), "this is not so: buffer.has_injected_id('side', 'item')"
    )


@AREA.check("durable")
async def ids_outlast_the_store(store: Subject) -> None:
    """Ids outlast the store."""
    await store.buffer().add_injected_id("main", "item")
    await store.reopen()
    expect(
        await store.buffer().has_injected_id("main", "item"),
        "this is not so: buffer().has_injected_id('main', 'item')",
    )
