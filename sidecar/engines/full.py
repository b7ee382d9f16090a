"""The `full` engine: everything that fits, whole oldest turns dropped only when the budget forces it."""

from __future__ import annotations

from sidecar.engine.contract import EngineInfo
from sidecar.engines.defaults import COMPACT_TO
from sidecar.engines.windowed import PlainWindow


class FullEngine(PlainWindow):
    """Sends the whole session while it fits, then the newest turns and recalled older messages."""

    info = EngineInfo(id="full", name="Full", version="1.0")

    def compaction_share(self) -> float:
        """Share of the budget filled after a compaction to `threshold`."""
        return COMPACT_TO
