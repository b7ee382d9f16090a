"""The `recall` engine: the newest messages, and of older ones what the situation calls for."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sidecar.engine.contract import EngineInfo
from sidecar.engines.defaults import COMPACT_TO
from sidecar.engines.windowed import PlainWindow

if TYPE_CHECKING:
    from sidecar.engines.settings import RecallSettings


class RecallEngine(PlainWindow):
    """The newest messages, and older ones that the prompt calls for."""

    info = EngineInfo(id="recall", name="Recall", version="1.0")
    settings_model = "sidecar.engines.settings:RecallSettings"
    shortens_results = True

    def compaction_share(self) -> float:
        """Share of the budget that a compaction to `threshold` leaves."""
        settings = cast("RecallSettings | None", self.host.configured)
        return settings.compactTo if settings else COMPACT_TO
