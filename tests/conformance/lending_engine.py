"""An engine that is another one in each session: the broken one whose name the session's begins with."""

from sidecar.engine.calls import (
    AfterTurnRequest,
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    IncomingMessage,
    IngestOutcome,
    MaintainOutcome,
    PreflightOutcome,
)
from sidecar.engine.contract import EngineInfo
from sidecar.engine.host import EngineHost
from sidecar.engine.session import Session
from sidecar.engines.full import FullEngine
from tests.conformance.broken_engines import BROKEN


class LendingEngine(FullEngine):
    """Sound in sessions of other names."""

    info = EngineInfo(id="lending", name="Lending", version="1")

    def __init__(self, host: EngineHost) -> None:
        super().__init__(host)
        self._engines: dict[str, FullEngine] = {}

    def _of(self, session: Session) -> FullEngine:
        name = session.session_id.partition("-")[0]
        if name not in self._engines:
            self._engines[name] = BROKEN.get(name, FullEngine)(self.host)
        return self._engines[name]

    async def ingest(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        return await self._of(session).ingest(session, message)

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        return await self._of(session).assemble(session, request)

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        return await self._of(session).compact(session, request)

    async def after_turn(self, session: Session, request: AfterTurnRequest) -> None:
        await self._of(session).after_turn(session, request)

    async def maintain(self, session: Session, budget: int | None) -> MaintainOutcome:
        return await self._of(session).maintain(session, budget)

    async def preflight(self, session: Session, request: AssembleRequest) -> PreflightOutcome:
        return await self._of(session).preflight(session, request)
