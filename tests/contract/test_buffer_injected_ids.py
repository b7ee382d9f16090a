"""The ids of what was injected into a session, which keep it from being injected again."""

from sidecar.store import open_buffer
from sidecar.store.buffer import BufferStore
from sidecar.store.contract import Delete, Fork, SessionRef
from tests.store_kit import REF, Driver


def buffer_of(store: Driver, namespace: str = "host", engine: str = "recall") -> BufferStore:
    return open_buffer(store.store, namespace, engine)


def test_an_id_is_new_once(store: Driver) -> None:
    buffer = buffer_of(store)
    assert not store.run(buffer.has_injected_id("main", "item"))
    assert store.run(buffer.add_injected_id("main", "item"))
    assert not store.run(buffer.add_injected_id("main", "item"))
    assert store.run(buffer.has_injected_id("main", "item"))


def test_ids_belong_to_a_session_an_engine_and_a_namespace(store: Driver) -> None:
    store.run(buffer_of(store).add_injected_id("main", "item"))
    assert not store.run(buffer_of(store).has_injected_id("side", "item"))
    assert not store.run(buffer_of(store, engine="lossless").has_injected_id("main", "item"))
    assert not store.run(buffer_of(store, namespace="elsewhere").has_injected_id("main", "item"))


def test_clearing_forgets_the_ids_of_one_session(store: Driver) -> None:
    buffer = buffer_of(store)
    for session in ("main", "side"):
        store.run(buffer.add_injected_id(session, "item"))
    store.run(buffer.clear_injected_ids("main"))
    assert not store.run(buffer.has_injected_id("main", "item"))
    assert store.run(buffer.has_injected_id("side", "item"))


def test_any_text_can_be_an_id(store: Driver) -> None:
    buffer = buffer_of(store)
    ids = ["", " ", "nul\0", "\x1a", "\x1a0000", "\U0001f600", "é", "e\u0301", "x" * 5000, "x" * 4999 + "y"]
    for item_id in ids:
        assert store.run(buffer.add_injected_id("main", item_id))
    assert all(store.run(buffer.has_injected_id("main", item_id)) for item_id in ids)


def test_a_fork_knows_what_was_injected_before_it(store: Driver) -> None:
    buffer = buffer_of(store)
    store.append(REF, "a")
    store.run(buffer.add_injected_id(REF.session_id, "item"))
    store.write(Fork(REF, SessionRef("host", "child"), None))
    assert store.run(buffer.has_injected_id("child", "item"))
    store.run(buffer.clear_injected_ids("child"))
    assert store.run(buffer.has_injected_id(REF.session_id, "item"))


def test_deleting_a_session_forgets_its_ids(store: Driver) -> None:
    buffer = buffer_of(store)
    for session in ("main", "side"):
        store.run(buffer.add_injected_id(session, "item"))
    store.write(Delete(REF))
    assert not store.run(buffer.has_injected_id("main", "item"))
    assert store.run(buffer.has_injected_id("side", "item"))


def test_ids_outlast_the_store(store: Driver) -> None:
    if store.store.kind == "memory":
        return
    store.run(buffer_of(store).add_injected_id("main", "item"))
    store.reopen()
    assert store.run(buffer_of(store).has_injected_id("main", "item"))
