"""The `sliding-window` engine: the newest turns or tokens, evicted in blocks, down to a low-water mark.

A window that slides every turn begins differently each time, so no prompt cache ever hits. A window that
drops to a low-water mark keeps its start until it has filled up again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sidecar.engine.contract import EngineInfo
from sidecar.engine.session import Session
from sidecar.engine.window import Window, drop_turns
from sidecar.engines.defaults import LOW_WATER
from sidecar.engines.windowed import PlainWindow

if TYPE_CHECKING:
    from sidecar.engines.settings import SlidingWindowSettings


class SlidingWindowEngine(PlainWindow):
    """The newest messages; everything stays stored and searchable."""

    info = EngineInfo(id="sliding-window", name="Sliding window", version="1.0")
    settings_model = "sidecar.engines.settings:SlidingWindowSettings"
    buffers_episodes = True

    async def fewer(self, session: Session, window: Window) -> tuple[Window, bool]:
        """The window limited to the configured number of turns."""
        settings = self._settings
        if not (settings and settings.maxTurns):
            return window, False
        left = max(1, int(settings.maxTurns * settings.lowWater))
        dropped = await drop_turns(session.timeline, window, settings.maxTurns, left)
        return dropped, dropped is not window

    def most(self, budget: int) -> int:
        """The smaller of the budget and the setting."""
        settings = self._settings
        return min(budget, (settings and settings.maxTokens) or budget)

    def compaction_share(self) -> float:
        """Share of the budget filled after a compaction to `threshold`."""
        return self._settings.lowWater if self._settings else LOW_WATER

    def filled_share(self) -> float:
        """Share of the budget filled after an eviction."""
        return self.compaction_share()

    @property
    def _settings(self) -> SlidingWindowSettings | None:
        return cast("SlidingWindowSettings | None", self.host.configured)
