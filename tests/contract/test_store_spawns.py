"""Spawned sessions: prepared, begun, taken back, swept, ended."""

import pytest

from sidecar.store.errors import SessionExists, SessionMissing, SessionTaken
from sidecar.store.spawn import BeginSpawn, EndSpawn, PrepareSpawn, RollBackSpawn, Spawn, SweepSpawns
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Configure, Delete, Truncate
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


def test_a_session_that_was_never_spawned_is_not_erased_by_its_key(store: Driver) -> None:
    store.append(CHILD, "own", session_key="child-key")
    assert store.write(EndSpawn(NAMESPACE, "child-key", erase=True)).erased == []
    assert store.texts(CHILD) == ["own"]


def test_a_child_whose_end_was_noted_before_is_erased_later(store: Driver) -> None:
    begun(store, mode="isolated")
    store.append(CHILD, "own")
    assert store.write(EndSpawn(NAMESPACE, "child-key", erase=False)).erased == []
    assert store.run(store.store.spawn_of(CHILD)) is None
    store.reopen() if store.store.kind != "memory" else None
    assert store.write(EndSpawn(NAMESPACE, "child-key", erase=True)).erased == ["child"]
    assert store.texts(CHILD) == []


def test_a_session_that_took_the_place_of_an_ended_child_is_not_erased(store: Driver) -> None:
    begun(store, mode="isolated")
    store.append(CHILD, "own")
    store.write(EndSpawn(NAMESPACE, "child-key", erase=False))
    store.write(Delete(CHILD))
    store.append(CHILD, "another")
    assert store.write(EndSpawn(NAMESPACE, "child-key", erase=True)).erased == []
    assert store.texts(CHILD) == ["another"]


def test_an_agent_forks_its_own_sessions_alone(store: Driver) -> None:
    store.append(REF, "a", agent_id="ann")
    with pytest.raises(SessionMissing):
        store.write(PrepareSpawn(spawn(agent_id="bob")))
    assert store.write(PrepareSpawn(spawn(agent_id="ann"))).inherited == 1


def test_a_child_is_the_agents_that_it_was_prepared_for(store: Driver) -> None:
    store.append(REF, "a", agent_id="ann")
    store.write(PrepareSpawn(spawn(agent_id="ann", child_agent_id="carl")))
    assert store.write(BeginSpawn(CHILD, "child-key", agent_id="bob")) is None
    assert store.write(BeginSpawn(CHILD, "child-key", agent_id="carl")) is not None
    head = store.run(store.store.session(CHILD))
    assert head is not None and head.agent_id == "carl"
    for agent_id in ("ann", "bob"):
        with pytest.raises(SessionTaken):
            store.append(CHILD, "not mine", agent_id=agent_id)
    assert store.texts(CHILD) == ["a"]


def test_the_id_of_a_prepared_child_is_taken_before_the_child_begins(store: Driver) -> None:
    store.write(PrepareSpawn(spawn("isolated", child_id="child", agent_id="ann", child_agent_id="ann")))
    with pytest.raises(SessionTaken):
        store.append(CHILD, "not mine", agent_id="bob")
    store.append(CHILD, "own")
    head = store.run(store.store.session(CHILD))
    assert head is not None and head.agent_id == "ann"


def test_an_agent_ends_what_it_has_spawned_alone(store: Driver) -> None:
    store.append(REF, "a", agent_id="ann")
    begun(store, agent_id="ann", child_agent_id="ann")
    store.append(CHILD, "own", agent_id="ann")
    assert store.write(EndSpawn(NAMESPACE, "child-key", erase=True, agent_id="bob")).erased == []
    assert store.write(RollBackSpawn(NAMESPACE, "p1", agent_id="bob")) is None
    assert store.texts(CHILD) == ["a", "own"]
    assert store.write(EndSpawn(NAMESPACE, "child-key", erase=True, agent_id="ann")).erased == ["child"]


def test_two_agents_prepare_children_of_one_key(store: Driver) -> None:
    for agent_id in ("ann", "bob"):
        members = {"preparation_id": agent_id, "agent_id": agent_id, "child_agent_id": agent_id}
        store.append(SessionRef(NAMESPACE, agent_id), f"of {agent_id}", agent_id=agent_id)
        store.write(PrepareSpawn(spawn(parent_id=agent_id, **members)))
    for agent_id in ("ann", "bob"):
        child = SessionRef(NAMESPACE, f"child of {agent_id}")
        store.write(BeginSpawn(child, "child-key", agent_id=agent_id))
        assert store.texts(child) == [f"of {agent_id}"]


def test_a_key_means_the_session_of_the_agent_that_bound_it(store: Driver) -> None:
    other, hosts = SessionRef(NAMESPACE, "other"), SessionRef(NAMESPACE, "host's")

    def meant(agent_id: str | None) -> str | None:
        head = store.run(store.store.session_by_key(NAMESPACE, "key", agent_id))
        return head.ref.session_id if head is not None else None

    store.append(REF, "a", session_key="key", agent_id="ann")
    assert [meant(agent_id) for agent_id in ("ann", "bob", None)] == ["main", None, "main"]
    store.append(other, "b", session_key="key", agent_id="bob")
    assert [meant(agent_id) for agent_id in ("ann", "bob", None)] == ["main", "other", None]
    store.append(hosts, "c", session_key="key")
    names = ("ann", "bob", "carl", None)
    assert [meant(agent_id) for agent_id in names] == ["main", "other", "host's", "host's"]
    store.append(hosts, "d", agent_id="ann")
    assert meant("carl") is None


def test_settings_that_an_agent_made_wait_until_the_session_is_its_own(store: Driver) -> None:
    def engine() -> str | None:
        return store.run(store.store.settings(NAMESPACE, "session", REF.session_id)).engine

    for agent_id in ("ann", "bob"):
        write = Configure(NAMESPACE, "session", REF.session_id, engine=agent_id, agent_id=agent_id)
        store.write(write)
    assert engine() is None
    store.append(REF, "a", agent_id="ann")
    assert engine() == "ann"
    store.write(Configure(NAMESPACE, "session", REF.session_id, engine="not mine", agent_id="bob"))
    assert engine() == "ann"


def test_an_agent_lists_what_it_may_see(store: Driver) -> None:
    for number in range(6):
        owner = (None, "ann", "bob")[number % 3]
        store.append(SessionRef(NAMESPACE, f"s{number}"), "a", agent_id=owner)
    page, cursor = store.run(store.store.sessions(NAMESPACE, 3, None, "ann"))
    rest, end = store.run(store.store.sessions(NAMESPACE, 3, cursor, "ann"))
    assert sorted(head.ref.session_id for head in page + rest) == ["s0", "s1", "s3", "s4"]
    assert cursor is not None and end is None


def test_spawns_of_another_namespace_are_none_of_ours(store: Driver) -> None:
    store.append(REF, "a")
    store.write(PrepareSpawn(spawn()))
    assert store.write(RollBackSpawn("other", "p1")) is None
    assert store.write(EndSpawn("other", "child-key", erase=True)).spawns == []
    assert store.write(BeginSpawn(SessionRef("other", "child"), "child-key")) is None
    assert store.write(BeginSpawn(CHILD, "child-key")) is not None
