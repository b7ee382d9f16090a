"""Engines that know of no views: one cut for all budgets, stored or in memory, or none that lasts."""

from sidecar.engine import (
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    EngineInfo,
    Kept,
    Session,
    StoringEngine,
    keep_window,
)


class _Narrowing(StoringEngine):
    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """The window from the cut on, which only ever moves on."""
        cut = await self.cut(session)
        resolved = await session.timeline.resolve(cut) if cut else None
        window = await keep_window(session.timeline, request.budget, resolved)
        if window.cut:
            await self.keep(session, window.cut)
        return Assembly(items=[Kept(entry) for entry in (*window.system, *window.entries)])

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Nothing."""
        return CompactOutcome(compacted=False, reason="never")

    async def cut(self, session: Session) -> str:
        """Where the window begins."""
        raise NotImplementedError

    async def keep(self, session: Session, cut: str) -> None:
        """Remember that."""
        raise NotImplementedError


class NarrowingStored(_Narrowing):
    """Keeps its cut as a value of the session."""

    info = EngineInfo(id="narrowing-stored", name="Narrowing", version="1")

    async def cut(self, session: Session) -> str:
        """Where the window begins."""
        return (await session.state("cut") or b"").decode()

    async def keep(self, session: Session, cut: str) -> None:
        """Remember that."""
        await session.save_state("cut", cut.encode())


class NarrowingMemory(_Narrowing):
    """Keeps its cut in memory, as if there were one session."""

    info = EngineInfo(id="narrowing-memory", name="Narrowing", version="1")
    _cut = ""

    async def cut(self, session: Session) -> str:
        """Where the window begins."""
        return self._cut

    async def keep(self, session: Session, cut: str) -> None:
        """Remember that."""
        self._cut = cut


class LastTurns(_Narrowing):
    """The last two turns, whatever the budget."""

    info = EngineInfo(id="last-turns", name="Last turns", version="1")

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """Those of the newest entries that belong to them."""
        entries = (await session.timeline.tail(request.budget)).entries
        return Assembly(items=[Kept(e) for e in entries if e.turn > entries[-1].turn - 2])
