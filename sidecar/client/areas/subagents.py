"""The `subagent/*` requests."""

from __future__ import annotations

from typing import Literal

from sidecar.client.areas.requesting import Requesting
from sidecar.protocol.subagent import (
    EndedSubagentParams,
    EndedSubagentResult,
    PrepareSpawnSubagentParams,
    PrepareSpawnSubagentResult,
    RollbackSpawnSubagentParams,
    RollbackSpawnSubagentResult,
)


class SubagentRequests(Requesting):
    """Contexts of child sessions."""

    async def prepare_spawn(
        self,
        parent_session_key: str,
        child_session_key: str,
        context_mode: Literal["isolated", "fork"],
        *,
        parent_session_id: str | None = None,
        child_session_id: str | None = None,
        ttl_ms: int | None = None,
    ) -> str | None:
        """Prepare a child's context; answers with what to roll back by.

        Raises:
            SessionNotFound: the parent of a fork is unknown.
        """
        params = PrepareSpawnSubagentParams(
            parent_session_key=parent_session_key,
            child_session_key=child_session_key,
            context_mode=context_mode,
            parent_session_id=parent_session_id,
            child_session_id=child_session_id,
            ttl_ms=ttl_ms,
        )
        return (
            await self.request("subagent/prepareSpawn", params, PrepareSpawnSubagentResult)
        ).preparation_id

    async def rollback_spawn(self, preparation_id: str) -> bool:
        """Take a preparation back; false where it is unknown, or the child has stored something."""
        params = RollbackSpawnSubagentParams(preparation_id=preparation_id)
        return (await self.request("subagent/rollbackSpawn", params, RollbackSpawnSubagentResult)).rolled_back

    async def subagent_ended(
        self, child_session_key: str, reason: Literal["deleted", "completed", "swept", "released"]
    ) -> None:
        """Tell that a child session has ended; `deleted` erases its data."""
        params = EndedSubagentParams(child_session_key=child_session_key, reason=reason)
        await self.request("subagent/ended", params, EndedSubagentResult)
