"""`subagent/prepareSpawn`, `subagent/rollbackSpawn`, `subagent/ended`: sessions that sessions spawn."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from sidecar.protocol.session import (
    EndedSubagentParams,
    EndedSubagentResult,
    PrepareSpawnSubagentParams,
    PrepareSpawnSubagentResult,
    RollbackSpawnSubagentParams,
    RollbackSpawnSubagentResult,
)
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.router import Call, Order, Router
from sidecar.server.engines.session import EngineSession, spawned_session
from sidecar.server.failures import SessionNotFound
from sidecar.server.sidecar import Sidecar
from sidecar.store.errors import SessionExists, SessionMissing, SessionTaken
from sidecar.store.spawn import EndSpawn, PrepareSpawn, RollBackSpawn, Spawn, SpawnEnd


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve the methods about subagents."""
    handlers = SubagentHandlers(sidecar)
    router.request(
        "subagent/prepareSpawn",
        PrepareSpawnSubagentParams,
        handlers.prepare,
        order=Order.EXCLUSIVE,
        lane=handlers.lanes_of_spawn,
    )
    router.request(
        "subagent/rollbackSpawn",
        RollbackSpawnSubagentParams,
        handlers.roll_back,
        order=Order.EXCLUSIVE,
        lane=lambda params: sidecar.lanes.of_preparation(params.preparation_id),
    )
    router.request(
        "subagent/ended",
        EndedSubagentParams,
        handlers.ended,
        order=Order.EXCLUSIVE,
        lane=lambda params: sidecar.lanes.of_key(params.child_session_key),
    )


class SubagentHandlers:
    """Keeps what a child begins with, until it has begun or is not wanted any more."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    def lanes_of_spawn(self, params: PrepareSpawnSubagentParams) -> Sequence[str]:
        """A spawn waits for what is stored in the parent; the child waits for the spawn."""
        lanes = self._sidecar.lanes
        parent = lanes.of_key(
            params.parent_session_key, params.parent_session_id, params.agent_id, agents_own=True
        )
        child = lanes.of_key(params.child_session_key, params.child_session_id)
        return list(dict.fromkeys((*parent, *child)))

    async def prepare(self, params: PrepareSpawnSubagentParams, call: Call) -> PrepareSpawnSubagentResult:
        """Keep a snapshot of the parent, or nothing, as the beginning of the child."""
        sidecar = self._sidecar
        now_ms = int(time.time() * 1000)
        wanted = Spawn(
            namespace=sidecar.host.namespace,
            preparation_id=os.urandom(12).hex(),
            parent_key=params.parent_session_key,
            parent_id=await self._parent_id(params),
            child_key=params.child_session_key,
            child_id=params.child_session_id,
            mode=params.context_mode,
            inherited=0,
            prepared_ms=now_ms,
            expires_ms=None if params.ttl_ms is None else now_ms + params.ttl_ms,
            agent_id=params.agent_id,
            child_agent_id=params.child_agent_id or params.agent_id,
        )
        if wanted.child_id is not None and wanted.child_id == wanted.parent_id:
            raise InvalidParams("childSessionId: a session cannot spawn itself", path="/childSessionId")
        try:
            spawn: Spawn = await sidecar.store.write(PrepareSpawn(wanted))
        except SessionTaken:
            raise
        except SessionMissing:
            raise SessionNotFound(params.parent_session_id or params.parent_session_key) from None
        except SessionExists as error:
            raise InvalidParams(
                f"childSessionId: {error}", path="/childSessionId", hint="choose an id that is not taken"
            ) from None
        call.on_cancel = _too_late
        if spawn.child_id is not None:
            sidecar.sessions.forget(spawn.child_id)
        sidecar.engines.forget()
        sidecar.lanes.note_preparation(
            spawn.preparation_id, sidecar.lanes.of_key(spawn.child_key, spawn.child_id)
        )
        await self._tell_engine(spawn)
        sidecar.spawns.watch(spawn.expires_ms)
        return PrepareSpawnSubagentResult(preparation_id=spawn.preparation_id)

    async def roll_back(self, params: RollbackSpawnSubagentParams, call: Call) -> RollbackSpawnSubagentResult:
        """Remove what was prepared, unless the child has stored something."""
        rolled_back = await self._roll_back(params.preparation_id, params.agent_id, call)
        return RollbackSpawnSubagentResult(rolled_back=rolled_back)

    async def ended(self, params: EndedSubagentParams, call: Call) -> EndedSubagentResult:
        """Forget how a child was spawned; its data goes where it was deleted."""
        sidecar = self._sidecar
        end: SpawnEnd = await sidecar.store.write(
            EndSpawn(
                sidecar.host.namespace,
                params.child_session_key,
                erase=params.reason == "deleted",
                agent_id=params.agent_id,
            )
        )
        call.on_cancel = _too_late
        await sidecar.spawns.ended(end.spawns, params.reason)
        for session_id in end.erased:
            sidecar.sessions.forget(session_id)
            sidecar.engines.forget()
            await sidecar.episodes.forget(session_id)
            sidecar.session_changed(session_id, "deleted")
        return EndedSubagentResult()

    async def _parent_id(self, params: PrepareSpawnSubagentParams) -> str | None:
        """The session that spawns: the one that is named, else the one that its key means."""
        if params.parent_session_id is not None:
            return params.parent_session_id
        sidecar = self._sidecar
        head = await sidecar.store.session_by_key(
            sidecar.host.namespace, params.parent_session_key, params.agent_id
        )
        return head.ref.session_id if head else None

    async def _tell_engine(self, spawn: Spawn) -> None:
        """Let the parent's engine prepare what it keeps of a spawn; the spawn goes where it fails."""
        sidecar = self._sidecar
        instance = await sidecar.engines.of(spawn.parent_id or "", spawn.agent_id)
        if not instance.has("prepare_spawn"):
            return
        try:
            parent = await self._parent(spawn, instance.id)
            work = instance.engine.prepare_spawn(
                parent and instance.session_for(parent), spawned_session(spawn)
            )
            await sidecar.runner.run(instance, "subagent/prepareSpawn", work)
        except BaseException:
            await self._roll_back(spawn.preparation_id, spawn.agent_id, None)
            raise

    async def _parent(self, spawn: Spawn, engine_id: str) -> EngineSession | None:
        sidecar = self._sidecar
        if spawn.parent_id is None:
            return None
        live = await sidecar.sessions.look(spawn.parent_id, spawn.agent_id)
        if live.head is None:
            return None
        return EngineSession(live, live.stored_timeline(), engine_id, session_key=spawn.parent_key)

    async def _roll_back(self, preparation_id: str, agent_id: str | None, call: Call | None) -> bool:
        sidecar = self._sidecar
        write = RollBackSpawn(sidecar.host.namespace, preparation_id, agent_id=agent_id)
        spawn: Spawn | None = await sidecar.store.write(write)
        if spawn is None:
            return False
        if call is not None:
            call.on_cancel = _too_late
        await sidecar.spawns.ended([spawn], "rolledBack")
        return True


def _too_late() -> bool:
    """The effect is durable, so the answer has to say so."""
    return False
