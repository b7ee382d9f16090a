"""The engines `full` and `recall`: everything that fits, else the newest turns with what is recalled."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sidecar.engine.contract import EngineInfo
from sidecar.engines.defaults import COMPACT_TO
from sidecar.engines.windowed import PlainWindow

if TYPE_CHECKING:
    from sidecar.engines.settings import RecallSettings


class FullEngine(PlainWindow):
    """Sends the whole session while it fits, then the newest turns and recalled older messages."""

    info = EngineInfo(id="full", name="Full", version="1.0")

    def compaction_share(self) -> float:
        """Share of the budget filled after a compaction to `threshold`."""
        return COMPACT_TO


class RecallEngine(FullEngine):
    """`full` without pruning: old tool results in its window stay whole."""

    info = EngineInfo(id="recall", name="Recall", version="1.0")
    settings_model = "sidecar.engines.settings:RecallSettings"
    shortens_results = True

    def compaction_share(self) -> float:
        """Share of the budget filled after a compaction to `threshold`."""
        settings = cast("RecallSettings | None", self.host.configured)
        return settings.compactTo if settings else super().compaction_share()
