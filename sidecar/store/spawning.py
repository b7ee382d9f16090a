"""The rules of the writes around spawned sessions."""

from collections.abc import Callable, Sequence

from sidecar.store.admission import admitted, bind_agent, is_foreign, was_rewritten
from sidecar.store.erasure import delete
from sidecar.store.errors import SessionExists, SessionMissing, SessionTaken
from sidecar.store.forks import fork
from sidecar.store.primitives import Tables
from sidecar.store.records import SessionRecord
from sidecar.store.spawn import (
    BeginSpawn,
    EndSpawn,
    PrepareSpawn,
    RollBackSpawn,
    Spawn,
    SpawnEnd,
    SweepSpawns,
)
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Delete, Fork


def prepare_spawn(tables: Tables, write: PrepareSpawn) -> Spawn:
    """Apply a `PrepareSpawn`.

    Raises:
        SessionMissing: it forks, and the parent is not there or is another agent's.
        SessionExists: the child is there already, or another spawn of it has begun.
        SessionTaken: the child is there or prepared, and another agent's.
    """
    spawn = write.spawn
    parent = None
    if spawn.mode == "fork":
        if spawn.parent_id is None:
            raise SessionMissing(f"there is no session {spawn.parent_key!r} to fork")
        parent = admitted(tables, _parent(spawn), spawn.agent_id)
    earlier = tables.spawns.of_key(spawn.namespace, spawn.child_key)
    whose = spawn.agent_id, spawn.child_agent_id
    mine = [each for each in earlier if (each.agent_id, each.child_agent_id) == whose]
    waiting = [each for each in mine if not _has_begun(tables, each)]
    if spawn.child_id is not None and spawn.child_id not in {each.child_id for each in waiting}:
        _check_free(tables, SessionRef(spawn.namespace, spawn.child_id), spawn.agent_id)
    for each in waiting:
        _take_back(tables, each)
    if parent is not None:
        bind_agent(tables, parent, spawn.agent_id)
        spawn = spawn._replace(inherited=_snapshot(tables, _parent(spawn), spawn))
    tables.spawns.add(spawn)
    return spawn


def begin_spawn(tables: Tables, write: BeginSpawn) -> Spawn | None:
    """Apply a `BeginSpawn`."""
    if _record(tables, write.ref) is not None or _prepared_for(tables, write.ref) is not None:
        return None
    known = tables.spawns.of_key(write.ref.namespace, write.child_key)
    waiting = [each for each in known if each.child_id is None]
    spawn = next(reversed(spawns_for(waiting, write.agent_id, lambda each: each.child_agent_id)), None)
    if spawn is None or _is_over(spawn, tables.now_ms):
        return None
    begun = spawn._replace(child_id=write.ref.session_id)
    if spawn.mode == "fork":
        _snapshot(tables, spawn.snapshot, begun)
        _erase(tables, spawn.snapshot)
    tables.spawns.add(begun)
    return begun


def roll_back_spawn(tables: Tables, write: RollBackSpawn) -> Spawn | None:
    """Apply a `RollBackSpawn`."""
    spawn = tables.spawns.of_preparation(write.namespace, write.preparation_id)
    if spawn is None or spawn.ended_ms is not None or is_foreign(spawn.agent_id, write.agent_id):
        return None
    if _has_begun(tables, spawn):
        return None
    _take_back(tables, spawn)
    return spawn


def end_spawn(tables: Tables, write: EndSpawn) -> SpawnEnd:
    """Apply an `EndSpawn`."""
    spawns = _parents_own(tables, tables.spawns.of_key(write.namespace, write.child_key), write.agent_id)
    ended = tables.spawns.ended_of_key(write.namespace, write.child_key) if write.erase else []
    gone = spawns or _parents_own(tables, ended, write.agent_id)[-1:]
    erased: list[str] = []
    for each in gone:
        ref = each.child
        unborn = ref is not None and ref.namespace != write.namespace
        kept = ref is not None and not unborn and _record(tables, ref) is not None
        if ref is not None and (write.erase or unborn) and _erase(tables, ref) and not unborn:
            erased.append(ref.session_id)
        tables.spawns.drop(each)
        if kept and not write.erase:
            tables.spawns.add(each._replace(ended_ms=tables.now_ms, expires_ms=None))
    return SpawnEnd(spawns, list(dict.fromkeys(erased)))


def sweep_spawns(tables: Tables, write: SweepSpawns) -> list[Spawn]:
    """Apply a `SweepSpawns`; a child that has stored something keeps its spawn, which expires no more."""
    del write
    swept: list[Spawn] = []
    for spawn in tables.spawns.expired(tables.now_ms):
        if _has_begun(tables, spawn):
            tables.spawns.add(spawn._replace(expires_ms=None))
        else:
            _take_back(tables, spawn)
            swept.append(spawn)
    return swept


def _parent(spawn: Spawn) -> SessionRef:
    return SessionRef(spawn.namespace, spawn.parent_id or "")


def _snapshot(tables: Tables, source: SessionRef, spawn: Spawn) -> int:
    """Let the child, or what waits to become it, begin as `source` is now; how many messages it has.

    It belongs to the agent that it was prepared for, else to nobody yet.
    """
    target = spawn.child
    assert target is not None
    count = fork(tables, Fork(source, target, None)).message_count
    child = _record(tables, target)
    assert child is not None
    child.agent_id = None
    if spawn.child_id is not None:
        bind_agent(tables, child, spawn.child_agent_id)
        child.session_key = spawn.child_key
        tables.bind_key(spawn.namespace, spawn.child_key, spawn.child_agent_id, child.uid)
    tables.save_session(child)
    return count


def spawns_for(
    spawns: Sequence[Spawn], agent_id: str | None, agent_of: Callable[[Spawn], str | None]
) -> list[Spawn]:
    """Those of the spawns that an agent means.

    The host means its own, or those of the only agent that has any; an agent its own, else the host's.
    """
    own = [each for each in spawns if agent_of(each) == agent_id]
    if own:
        return own
    if agent_id is not None:
        return [each for each in spawns if agent_of(each) is None]
    return list(spawns) if len({agent_of(each) for each in spawns}) == 1 else []


def _parents_own(tables: Tables, spawns: Sequence[Spawn], agent_id: str | None) -> list[Spawn]:
    """The spawns that an agent may end: of those that the host prepared, the ones whose child it may see."""

    def is_hidden(spawn: Spawn) -> bool:
        child = _record(tables, spawn.child) if spawn.child is not None else None
        return spawn.agent_id is None and child is not None and is_foreign(child.agent_id, agent_id)

    found = spawns_for(spawns, agent_id, lambda each: each.agent_id)
    return [each for each in found if not is_hidden(each)]


def _check_free(tables: Tables, child: SessionRef, agent_id: str | None) -> None:
    """Refuse the name of a session that is there, or that another agent has prepared.

    Raises:
        SessionTaken: another agent has it.
        SessionExists: it is there.
    """
    record, prepared_for = _record(tables, child), _prepared_for(tables, child)
    if is_foreign(record.agent_id if record else prepared_for, agent_id):
        raise SessionTaken(child.session_id)
    if record is not None or prepared_for is not None:
        raise SessionExists(f"the session {child.session_id!r} is already there")


def _prepared_for(tables: Tables, ref: SessionRef) -> str | None:
    """The agent for which a session of this name was prepared."""
    spawn = tables.spawns.of_session(ref)
    return None if spawn is None else spawn.child_agent_id


def _take_back(tables: Tables, spawn: Spawn) -> None:
    if spawn.child is not None:
        _erase(tables, spawn.child)
    tables.spawns.drop(spawn)


def _has_begun(tables: Tables, spawn: Spawn) -> bool:
    """Whether the child has stored something, or removed something of what it began with."""
    child = _record(tables, spawn.child) if spawn.child is not None else None
    return child is not None and (child.message_count != spawn.inherited or was_rewritten(child))


def _is_over(spawn: Spawn, now_ms: int) -> bool:
    return spawn.expires_ms is not None and spawn.expires_ms <= now_ms


def _record(tables: Tables, ref: SessionRef) -> SessionRecord | None:
    return tables.session(ref)


def _erase(tables: Tables, ref: SessionRef) -> bool:
    return delete(tables, Delete(ref))
