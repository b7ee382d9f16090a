"""The `full` engine: everything that fits, whole oldest turns dropped only when the budget forces it."""

from __future__ import annotations

from sidecar.engine.contract import EngineInfo
from sidecar.engines.defaults import COMPACT_TO
from sidecar.engines.windowed import PlainWindow


class FullEngine(PlainWindow):
    """Sends the whole session while it fits, the newest turns with what the prompt calls for beyond that."""

    info = EngineInfo(id="full", name="Full", version="1.0")

    def compaction_share(self) -> float:
        """Share of the budget that a compaction to `threshold` leaves."""
        return COMPACT_TO
