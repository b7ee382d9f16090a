"""An engine that takes messages in by itself, and raises wherever the session's name says so."""

from sidecar.engine import (
    AfterTurnRequest,
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    EngineInfo,
    IncomingMessage,
    IngestOutcome,
    Kept,
    MaintainOutcome,
    PreflightOutcome,
    Session,
    StoringEngine,
)


class Moody(StoringEngine):
    """Sends everything, where it sends anything."""

    info = EngineInfo(id="moody", name="Moody", version="1")

    async def ingest(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        """Store it, with trouble before or behind."""
        _perhaps("before", session)
        outcome = await self.host.store_message(session, message)
        _perhaps("behind", session)
        return outcome

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """All that fits."""
        entries = (await session.timeline.tail(request.budget)).entries
        return Assembly(items=[Kept(entry) for entry in entries])

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Nothing to do."""
        _perhaps("compact", session)
        return CompactOutcome(compacted=False, reason="there is nothing to do")

    async def after_turn(self, session: Session, request: AfterTurnRequest) -> None:
        """Nothing to do."""
        _perhaps("after_turn", session)

    async def maintain(self, session: Session, budget: int | None) -> MaintainOutcome:
        """Nothing to do."""
        _perhaps("maintain", session)
        return MaintainOutcome()

    async def preflight(self, session: Session, request: AssembleRequest) -> PreflightOutcome:
        """Fits."""
        _perhaps("preflight", session)
        return PreflightOutcome(fits=True, estimated_tokens=7, action="none")


def _perhaps(where: str, session: Session) -> None:
    if session.session_id.startswith(where):
        raise ValueError(f"no mood for {where}")
