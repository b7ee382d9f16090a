"""Which engine serves which session, as it is configured now."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from sidecar.server.engines import LEGACY
from sidecar.store.spawn import BeginSpawn
from sidecar.store.stored import SessionSettings

if TYPE_CHECKING:
    from sidecar.server.seat import Seat
    from sidecar.server.sidecar import Sidecar

MOST = 20_000
"""Sessions whose configured engine is remembered without asking the store."""


class Seats:
    """Finds the engine of a session, and remembers it for what must not wait for the store."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._known: OrderedDict[tuple[str, str | None], Seat] = OrderedDict()

    def known(self, session_id: str, agent_id: str | None) -> Seat | None:
        """The engine of a session, if that is known without asking the store."""
        return self._known.get((session_id, agent_id))

    async def of(self, session_id: str, agent_id: str | None, session_key: str | None = None) -> Seat:
        """The engine that serves a session, by what this process or another one has set.

        A session that was prepared for a subagent under `session_key` begins with this.

        Raises:
            EngineUnavailable: the engine that was configured for it cannot serve.
        """
        sidecar = self._sidecar
        exemption = sidecar.exempt and sidecar.exempt.of(session_id, session_key)
        if exemption is not None and exemption.ignores:
            return await sidecar.slot.take(LEGACY)
        known = exemption is not None or (session_id, agent_id) in self._known
        if session_key is not None and not known:
            await self._begin_spawned(session_id, session_key)
        own = await self.configured("session", session_id)
        if agent_id is None and (head := await sidecar.store.session(sidecar.ref(session_id))):
            owner = head.agent_id
        else:
            owner = agent_id
        agents = await self.configured("agent", owner) if owner else SessionSettings(None, None)
        seat = await sidecar.slot.take(own.engine or agents.engine, own.config or agents.config)
        if seat.takes_note:
            sidecar.take_note()
        self._known[session_id, agent_id] = seat
        if len(self._known) > MOST:
            self._known.popitem(last=False)
        return seat

    async def configured(self, scope: Literal["session", "agent"], scope_id: str) -> SessionSettings:
        """What `session/configure` has set."""
        sidecar = self._sidecar
        return await sidecar.store.settings(sidecar.profile.namespace, scope, scope_id)

    def forget(self) -> None:
        """Ask the store again which engine serves which session."""
        self._known.clear()

    def buffering(self) -> Iterator[str]:
        """Ids of sessions whose engine has their turns handed over as episodes."""
        return (session_id for (session_id, _), seat in self._known.items() if seat.buffers_episodes)

    async def _begin_spawned(self, session_id: str, session_key: str) -> None:
        """Let the session be the child that waits under its key, if one does."""
        sidecar = self._sidecar
        waiting = await sidecar.store.spawns_of_key(sidecar.profile.namespace, session_key)
        if any(spawn.child_id is None for spawn in waiting):
            await sidecar.store.write(BeginSpawn(sidecar.ref(session_id), session_key))
