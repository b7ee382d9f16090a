"""Spawned sessions: prepared, begun, taken back, swept, ended."""

import pytest

from sidecar.store.errors import SessionExists, SessionMissing
from sidecar.store.spawn import BeginSpawn, EndSpawn, PrepareSpawn, RollBackSpawn, Spawn, SweepSpawns
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Truncate
from tests.store_kit import REF, Driver, reply

NAMESPACE = REF.namespace
CHILD = SessionRef(NAMESPACE, "child")
FAR = 1 << 50


def spawn(mode: str = "fork", **members: object) -> Spawn:
    """A spawn of `REF`, whose child has no id yet."""
    plain = Spawn(NAMESPACE, "p1", "parent-key", REF.session_id, "child-key", None, "fork", 0, 1, None)
    return plain._replace(mode=mode, **members)  # pyright: ignore[reportArgumentType]


def begun(store: Driver, **members: object) -> Spawn | None:
    """Prepares a spawn and lets the child begin."""
    store.write(PrepareSpawn(spawn(**members)))  # pyright: ignore[reportArgumentType]
    return store.write(BeginSpawn(CHILD, "child-key"))


def test_a_child_without_an_id_begins_with_the_snapshot_of_its_parent(store: Driver) -> None:
    store.append(REF, "a", reply("b"))
    assert store.write(PrepareSpawn(spawn())).inherited == 2
    store.append(REF, "later")
    assert store.write(BeginSpawn(CHILD, "child-key")).child_id == "child"
    assert store.texts(CHILD) == ["a", "b"]
    head = store.run(store.store.session_by_key(NAMESPACE, "child-key"))
    assert head is not None and head.ref == CHILD


def test_a_child_with_an_id_is_there_at_once(store: Driver) -> None:
    store.append(REF, "a")
    store.write(PrepareSpawn(spawn(child_id="child")))
    assert store.texts(CHILD) == ["a"]
    assert store.write(BeginSpawn(CHILD, "child-key")) is None


def test_a_snapshot_outlives_what_happens_to_its_parent(store: Driver) -> None:
    store.append(REF, "a", "b")
    store.write(PrepareSpawn(spawn()))
    store.write(Truncate(REF, None))
    store.append(REF, "other")
    store.write(BeginSpawn(CHILD, "child-key"))
    assert (store.texts(CHILD), store.texts(REF)) == (["a", "b"], ["other"])


def test_spawns_survive_a_restart(store: Driver) -> None:
    if store.store.kind == "memory":
        return
    store.append(REF, "a")
    store.write(PrepareSpawn(spawn(expires_ms=FAR)))
    store.reopen()
    assert store.run(store.store.next_spawn_expiry()) == FAR
    store.write(BeginSpawn(CHILD, "child-key"))
    store.reopen()
    found = store.run(store.store.spawn_of(CHILD))
    assert found == spawn(expires_ms=FAR, child_id="child", inherited=1)
    assert store.texts(CHILD) == ["a"]


def test_an_isolated_child_begins_empty_and_needs_no_parent(store: Driver) -> None:
    assert begun(store, mode="isolated", parent_id=None) is not None
    assert store.run(store.store.session(CHILD)) is None
    assert store.run(store.store.spawn_of(CHILD)) is not None


def test_a_fork_needs_its_parent(store: Driver) -> None:
    for parent_id in (None, "nobody"):
        with pytest.raises(SessionMissing):
            store.write(PrepareSpawn(spawn(parent_id=parent_id)))
    assert store.run(store.store.spawns_of_key(NAMESPACE, "child-key")) == []


def test_a_child_that_is_there_is_not_written_over(store: Driver) -> None:
    store.append(REF, "a")
    store.append(CHILD, "own")
    with pytest.raises(SessionExists):
        store.write(PrepareSpawn(spawn(child_id="child")))
    assert store.texts(CHILD) == ["own"]


def test_snapshots_are_on_no_list(store: Driver) -> None:
    store.append(REF, "a")
    store.write(PrepareSpawn(spawn()))
    heads, _ = store.run(store.store.sessions(NAMESPACE, 10, None))
    assert [head.ref for head in heads] == [REF]


@pytest.mark.parametrize("child_id", [None, "child"])
def test_a_rollback_removes_what_was_prepared(store: Driver, child_id: str | None) -> None:
    store.append(REF, "a")
    store.write(PrepareSpawn(spawn(child_id=child_id)))
    assert store.write(RollBackSpawn(NAMESPACE, "p1")) is not None
    assert store.write(RollBackSpawn(NAMESPACE, "p1")) is None
    assert store.write(BeginSpawn(CHILD, "child-key")) is None
    assert store.run(store.store.session(CHILD)) is None
    heads, _ = store.run(store.store.sessions(None, 10, None))
    assert [head.ref for head in heads] == [REF]


@pytest.mark.parametrize("mode", ["fork", "isolated"])
def test_a_child_that_has_stored_something_is_not_rolled_back(store: Driver, mode: str) -> None:
    store.append(REF, "a")
    begun(store, mode=mode)
    store.append(CHILD, "own")
    assert store.write(RollBackSpawn(NAMESPACE, "p1")) is None
    assert store.texts(CHILD)[-1] == "own"


def test_a_child_that_has_exchanged_a_message_is_not_rolled_back(store: Driver) -> None:
    ids = [item.message_id for item in store.append(REF, "a", "b").items]
    begun(store)
    store.write(Truncate(CHILD, ids[0]))
    store.append(CHILD, "own")
    assert store.write(RollBackSpawn(NAMESPACE, "p1")) is None
    assert store.texts(CHILD) == ["a", "own"]


def test_preparing_a_child_again_takes_the_first_preparation_back(store: Driver) -> None:
    store.append(REF, "a")
    store.write(PrepareSpawn(spawn(child_id="child")))
    store.append(REF, "b")
    store.write(PrepareSpawn(spawn(child_id="child", preparation_id="p2", prepared_ms=2)))
    assert store.texts(CHILD) == ["a", "b"]
    known = store.run(store.store.spawns_of_key(NAMESPACE, "child-key"))
    assert [each.preparation_id for each in known] == ["p2"]


def test_what_has_expired_is_swept_and_does_not_begin(store: Driver) -> None:
    store.append(REF, "a")
    store.write(PrepareSpawn(spawn(expires_ms=1)))
    assert store.write(BeginSpawn(CHILD, "child-key")) is None
    assert [each.preparation_id for each in store.write(SweepSpawns())] == ["p1"]
    assert store.write(SweepSpawns()) == []
    heads, _ = store.run(store.store.sessions(None, 10, None))
    assert [head.ref for head in heads] == [REF]


def test_a_child_that_has_stored_something_outlives_its_time(store: Driver) -> None:
    store.append(REF, "a")
    store.write(PrepareSpawn(spawn(child_id="child", expires_ms=1)))
    store.append(CHILD, "own")
    assert store.write(SweepSpawns()) == []
    assert store.run(store.store.next_spawn_expiry()) is None
    assert store.run(store.store.spawn_of(CHILD)) is not None
    assert store.texts(CHILD) == ["a", "own"]


@pytest.mark.parametrize("erase", [True, False])
def test_an_end_forgets_the_spawn_and_erases_the_child_where_asked(store: Driver, erase: bool) -> None:
    store.append(REF, "a")
    begun(store)
    store.append(CHILD, "own", session_key="child-key")
    end = store.write(EndSpawn(NAMESPACE, "child-key", erase=erase))
    assert ([each.preparation_id for each in end.spawns], end.erased) == (["p1"], ["child"] if erase else [])
    assert store.texts(CHILD) == ([] if erase else ["a", "own"])
    assert store.write(EndSpawn(NAMESPACE, "child-key", erase=erase)).spawns == []


def test_a_child_that_was_never_prepared_is_erased_by_its_key(store: Driver) -> None:
    store.append(CHILD, "own", session_key="child-key")
    assert store.write(EndSpawn(NAMESPACE, "child-key", erase=True)).erased == ["child"]
    assert store.run(store.store.session(CHILD)) is None


def test_spawns_of_another_namespace_are_none_of_ours(store: Driver) -> None:
    store.append(REF, "a")
    store.write(PrepareSpawn(spawn()))
    assert store.write(RollBackSpawn("other", "p1")) is None
    assert store.write(EndSpawn("other", "child-key", erase=True)).spawns == []
    assert store.write(BeginSpawn(SessionRef("other", "child"), "child-key")) is None
    assert store.write(BeginSpawn(CHILD, "child-key")) is not None
