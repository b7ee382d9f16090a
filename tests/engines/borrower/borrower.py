"""An engine that says in its answers what it was lent."""

import asyncio
from contextvars import Context

from sidecar.engine import (
    AfterTurnRequest,
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    EngineInfo,
    Kept,
    Session,
    StoringEngine,
)
from sidecar.store.search import SearchQuery

STEPS = 3


class Borrower(StoringEngine):
    """Sends everything, with what it found out in the system prompt."""

    info = EngineInfo(id="borrower", name="Borrower", version="1")

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """All messages; pins, hits and values in the addition."""
        pins = [pin.made.text if pin.made else pin.entries[0].message_id for pin in await session.pins()]
        found = await session.history.search(SearchQuery(text="heliotrope", kind="literal"))
        told = (await session.state("told") or b"").decode()
        count = session.history.count
        addition = f"pins={sorted(pins)} hits={len(found.hits)} count={count} told={told}"
        entries = (await session.timeline.tail(request.budget)).entries
        return Assembly(items=[Kept(entry) for entry in entries], system_prompt_addition=addition)

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Nothing but reports of progress."""
        heard: list[str] = []
        session.report_to(lambda message, percentage: heard.append(f"{message} {percentage}"))
        session.progress("to myself", 1)
        for step in range(STEPS):
            self.host.log("info", f"step {step}")
        return CompactOutcome(compacted=False, reason="; ".join(heard))

    async def after_turn(self, session: Session, request: AfterTurnRequest) -> None:
        """Start work that goes on after the answer."""
        self._task = asyncio.get_running_loop().create_task(self._later(), context=Context())
        await session.save_state("told", b"after the turn")

    async def _later(self) -> None:
        async with self.host.working("Thinking it over") as report:
            report("half of it", 50)
