"""Sends the newest turns or tokens; what is too much goes in blocks, down to a low-water mark.

A window that slides at every turn begins differently each time, so that no provider's prompt cache ever
hits. One that falls to the low-water mark begins the same until it has filled up again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from sidecar.engine.calls import AssembleRequest, Assembly, CompactRequest, Kept
from sidecar.engine.contract import EngineInfo
from sidecar.engine.session import Session
from sidecar.engine.window import Window, drop_turns, keep_window
from sidecar.engines.windowed import WindowedEngine

if TYPE_CHECKING:
    from sidecar.engines.sliding_window.settings import SlidingWindowSettings


LOW_WATER = 0.5
CUT = "cut"


class Cut(NamedTuple):
    """Where the window begins; nothing stands in front of it."""

    cut: str
    tokens: int = 0
    text: str | None = None


class SlidingWindowEngine(WindowedEngine[Cut]):
    """The newest messages and nothing else; everything stays stored and searchable."""

    info = EngineInfo(id="sliding-window", name="Sliding window", version="1.0")
    settings_model = "sidecar.engines.sliding_window.settings:SlidingWindowSettings"
    shared_state = ()

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """System messages, then the window."""
        settings = self._settings()
        share = settings.lowWater if settings else LOW_WATER
        most = min(request.budget, (settings and settings.maxTokens) or request.budget)
        standing = await self.standing(session)
        window = await keep_window(session.timeline, most, standing.cut if standing else None, share=share)
        if settings and settings.maxTurns:
            left = max(1, int(settings.maxTurns * share))
            window = await drop_turns(session.timeline, window, settings.maxTurns, left)
        if window.moved:
            await session.save_state(CUT, (window.cut or "").encode())
        return Assembly(items=_items(window))

    async def standing(self, session: Session) -> Cut | None:
        """Where the window begins; `None` where nothing was cut, or the cut is not there any more."""
        kept = (await session.state(CUT) or b"").decode()
        cut = await session.timeline.resolve(kept) if kept else None
        if cut and cut != kept:
            await session.save_state(CUT, cut.encode())
        return Cut(cut) if cut else None

    async def advance(
        self, session: Session, window: Window, standing: Cut | None, request: CompactRequest, most: int
    ) -> Cut | None:
        """Moves the window; what leaves it stays stored."""
        del standing, request, most
        await session.save_state(CUT, (window.cut or "").encode())
        return Cut(window.cut or "")

    def compaction_share(self) -> float:
        """Share of the budget that a compaction to `threshold` leaves."""
        settings = self._settings()
        return settings.lowWater if settings else LOW_WATER

    def _settings(self) -> SlidingWindowSettings | None:
        return cast("SlidingWindowSettings | None", self.host.configured)


def _items(window: Window) -> list[Kept]:
    return [Kept(entry, "system") for entry in window.system] + [
        Kept(entry, "system" if entry.role == "system" else "recent") for entry in window.entries
    ]
