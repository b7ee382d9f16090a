"""The `legacy` engine: the host manages its own history, the sidecar stores nothing."""

from __future__ import annotations

from sidecar.engine.calls import (
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    IncomingMessage,
    IngestOutcome,
    Kept,
)
from sidecar.engine.contract import ContextEngine, EngineInfo
from sidecar.engine.session import Session


class LegacyEngine(ContextEngine):
    """Passes the host's messages through and delegates compaction to the host."""

    info = EngineInfo(id="legacy", name="Legacy", version="1.0", owns_compaction=False)
    shared_state = ()

    async def ingest(self, session: Session, message: IncomingMessage) -> IngestOutcome:  # noqa: ARG002
        """Store nothing."""
        return IngestOutcome(
            ingested=False, message_id=message.message_id or "", reason="the legacy engine stores nothing"
        )

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """The host's messages unchanged, even if they exceed the budget."""
        del request
        entries = (await session.timeline.tail(1 << 60)).entries
        return Assembly(items=[Kept(entry) for entry in entries], as_came=True)

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Let the host compact.

        Raises:
            HostCapabilityMissing: the host does not answer `runtime/compact`.
        """
        return await self.host.delegate_compaction(session, request)
