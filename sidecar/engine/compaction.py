"""Compaction by the runtime, for engines that do not compact themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidecar.engine.calls import CompactOutcome, CompactRequest
    from sidecar.engine.contract import ContextEngine
    from sidecar.engine.session import Session


async def delegate_compaction_to_runtime(
    engine: ContextEngine, session: Session, request: CompactRequest
) -> CompactOutcome:
    """What the runtime made of the request; an error of the host comes back as `ok: false`.

    An engine that compacts in this way declares `owns_compaction=False`.

    Raises:
        HostCapabilityMissing: the host does not answer `runtime/compact` (error 1004).
    """
    return await engine.host.delegate_compaction(session, request)
