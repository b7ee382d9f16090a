"""Engines that are right in all but one thing, and one that lends its place to them."""

from typing import Any

from msgspec import json
from msgspec.structs import replace

from sidecar.engine.calls import (
    AfterTurnRequest,
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    IncomingMessage,
    IngestOutcome,
    Made,
    MaintainOutcome,
    PreflightOutcome,
)
from sidecar.engine.contract import EngineInfo
from sidecar.engine.host import EngineHost
from sidecar.engine.session import Session
from sidecar.engines.full import FullEngine

WHOLE = 1 << 40
"""Tokens that no session holds."""


def _told(assembly: Assembly, text: str) -> Assembly:
    """The assembly with a text of the engine's in front."""
    made = Made(role="user", kind="memory", ref="note", text=text, timestamp_ms=0, lasting=True)
    return replace(assembly, items=[made, *assembly.items])


def _changed(message: IncomingMessage, **members: Any) -> IncomingMessage:
    return replace(message, raw=json.encode({**json.decode(message.raw), **members}))


class TakesNothingIn(FullEngine):
    async def ingest(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        return IngestOutcome(ingested=False, reason="not today")


class TakesEverythingForNew(FullEngine):
    async def ingest(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        return replace(await super().ingest(session, message), ingested=True)


class StoresNoResultsOfTools(FullEngine):
    async def ingest(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        if json.decode(message.raw)["role"] == "tool":
            return IngestOutcome(ingested=False, reason="too long")
        return await super().ingest(session, message)


class StoresCapitals(FullEngine):
    async def ingest(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        text = json.decode(message.raw)["content"]
        return await super().ingest(session, _changed(message, content=text and text.upper()))


class GreetsWhereNothingWasSaid(FullEngine):
    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        return _told(await super().assemble(session, request), "Welcome.")


class ShowsNothingThatIsNotStored(FullEngine):
    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        assembly = await super().assemble(session, request)
        return assembly if session.history.count else Assembly(items=[])


class FailsWhereRoomIsScarce(FullEngine):
    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        if request.budget < 1000:
            raise ValueError("there is no room")
        return await super().assemble(session, request)


class FailsWhereItHasToCut(FullEngine):
    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        if not (await session.timeline.tail(request.budget)).whole:
            raise ValueError("not everything fits")
        return await super().assemble(session, request)


class CountsItsAnswers(FullEngine):
    answers = 0

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        self.answers += 1
        return _told(await super().assemble(session, request), f"This is answer {self.answers}.")


class ShowsTheNewestTurnAlone(FullEngine):
    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        return Assembly(items=[])


class TellsWhatOtherSessionsHold(FullEngine):
    def __init__(self, host: EngineHost) -> None:
        super().__init__(host)
        self.heard: list[str] = []

    async def ingest(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        self.heard.append(message.raw.decode())
        return await super().ingest(session, message)

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        return _told(await super().assemble(session, request), " ".join(self.heard))


class DeclinesWithoutAWord(FullEngine):
    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        return CompactOutcome(compacted=False)


class StoresWhatItMakesOfTheHistory(FullEngine):
    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        raw = b'{"role":"user","content":"What was said so far: much."}'
        await self.host.store_message(session, IncomingMessage(raw=raw))
        return await super().compact(session, request)


class TakesNothingToDoForAFailure(FullEngine):
    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        outcome = await super().compact(session, request)
        return replace(outcome, ok=outcome.compacted)


class KeepsADiaryAmongTheMessages(FullEngine):
    async def after_turn(self, session: Session, request: AfterTurnRequest) -> None:
        raw = b'{"role":"assistant","content":"Dear diary."}'
        await self.host.store_message(session, IncomingMessage(raw=raw))


class PromisesThatEverythingFits(FullEngine):
    async def preflight(self, session: Session, request: AssembleRequest) -> PreflightOutcome:
        outcome = await super().preflight(session, request)
        return replace(outcome, fits=True, action="none")


class FailsWhereNothingNeedsMaintenance(FullEngine):
    async def maintain(self, session: Session, budget: int | None) -> MaintainOutcome:
        raise ValueError("there is nothing to do")


class RemembersUntilItIsDisposedOf(FullEngine):
    heard = 0

    async def ingest(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        self.heard += 1
        return await super().ingest(session, message)

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        return _told(await super().assemble(session, request), f"I have heard {self.heard} messages.")


class HasNoName(FullEngine):
    info = EngineInfo(id="nameless", name="", version="1")


class ServesUnderAnotherId(FullEngine):
    info = EngineInfo(id="two-faced", name="Two faces", version="1")

    def __init__(self, host: EngineHost) -> None:
        super().__init__(host)
        self.info = EngineInfo(id="other-face", name="Two faces", version="1")  # type: ignore[misc]


class DoesNotStart(FullEngine):
    info = EngineInfo(id="stillborn", name="Stillborn", version="1")

    def __init__(self, host: EngineHost) -> None:
        raise ValueError("not today")


class CompactsWhatItLeavesToTheHost(FullEngine):
    info = EngineInfo(id="eager", name="Eager", version="1", owns_compaction=False)


OF_SESSIONS = (
    TakesNothingIn,
    TakesEverythingForNew,
    StoresNoResultsOfTools,
    StoresCapitals,
    GreetsWhereNothingWasSaid,
    ShowsNothingThatIsNotStored,
    FailsWhereRoomIsScarce,
    FailsWhereItHasToCut,
    CountsItsAnswers,
    ShowsTheNewestTurnAlone,
    TellsWhatOtherSessionsHold,
    DeclinesWithoutAWord,
    StoresWhatItMakesOfTheHistory,
    TakesNothingToDoForAFailure,
    KeepsADiaryAmongTheMessages,
    PromisesThatEverythingFits,
    FailsWhereNothingNeedsMaintenance,
    RemembersUntilItIsDisposedOf,
)
"""Broken in what they do with a session, so that one sidecar can serve them all."""

OF_THEMSELVES = (HasNoName, ServesUnderAnotherId, DoesNotStart, CompactsWhatItLeavesToTheHost)
"""Broken in what they say of themselves, so that each needs a sidecar of its own."""

BROKEN: dict[str, type[FullEngine]] = {kind.__name__: kind for kind in (*OF_SESSIONS, *OF_THEMSELVES)}
"""Every broken engine by its name."""
