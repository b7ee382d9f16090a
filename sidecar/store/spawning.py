"""The rules of the writes around spawned sessions."""

from sidecar.store.admission import was_rewritten
from sidecar.store.branching import fork
from sidecar.store.errors import SessionExists, SessionMissing
from sidecar.store.keeping import delete
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
        SessionMissing: it forks, and the parent is not there.
        SessionExists: the child is there already, or another spawn of it has begun.
    """
    spawn = write.spawn
    if spawn.mode == "fork" and (spawn.parent_id is None or _record(tables, _parent(spawn)) is None):
        raise SessionMissing(f"there is no session {spawn.parent_id or spawn.parent_key!r} to fork")
    earlier = tables.spawns.of_key(spawn.namespace, spawn.child_key)
    waiting = [each for each in earlier if not _has_begun(tables, each)]
    freed = {each.child_id for each in waiting}
    child = SessionRef(spawn.namespace, spawn.child_id) if spawn.child_id is not None else None
    if child is not None and spawn.child_id not in freed and _record(tables, child) is not None:
        raise SessionExists(f"the session {child.session_id!r} is already there")
    for each in waiting:
        _take_back(tables, each)
    if spawn.mode == "fork":
        spawn = spawn._replace(inherited=_snapshot(tables, _parent(spawn), spawn))
    tables.spawns.add(spawn)
    return spawn


def begin_spawn(tables: Tables, write: BeginSpawn) -> Spawn | None:
    """Apply a `BeginSpawn`."""
    if _record(tables, write.ref) is not None:
        return None
    known = tables.spawns.of_key(write.ref.namespace, write.child_key)
    spawn = next((each for each in reversed(known) if each.child_id is None), None)
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
    if spawn is None or _has_begun(tables, spawn):
        return None
    _take_back(tables, spawn)
    return spawn


def end_spawn(tables: Tables, write: EndSpawn) -> SpawnEnd:
    """Apply an `EndSpawn`."""
    spawns = tables.spawns.of_key(write.namespace, write.child_key)
    bound = tables.spawns.bound_to(write.namespace, write.child_key)
    refs = [each.child for each in spawns] + [None if bound is None else tables.session_of(bound).ref]
    erased: list[str] = []
    for ref in dict.fromkeys(ref for ref in refs if ref is not None):
        unborn = ref.namespace != write.namespace
        if (write.erase or unborn) and _erase(tables, ref) and not unborn:
            erased.append(ref.session_id)
    for each in spawns:
        tables.spawns.drop(each)
    return SpawnEnd(spawns, erased)


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

    It belongs to nobody yet: the agent that is spawned may be another one.
    """
    target = spawn.child
    assert target is not None
    count = fork(tables, Fork(source, target, None)).message_count
    child = _record(tables, target)
    assert child is not None
    child.agent_id = None
    if spawn.child_id is not None:
        child.session_key = spawn.child_key
        tables.bind_key(spawn.namespace, spawn.child_key, child.uid)
    tables.save_session(child)
    return count


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
