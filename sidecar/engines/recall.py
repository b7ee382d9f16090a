"""The `recall` engine: the newest messages, and older ones relevant to the situation."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sidecar.engine.contract import EngineInfo
from sidecar.engines.defaults import COMPACT_TO
from sidecar.engines.windowed import PlainWindow

if TYPE_CHECKING:
    from sidecar.engines.settings import RecallSettings


class RecallEngine(PlainWindow):
    """Sends the newest messages, and older ones relevant to the prompt."""

    info = EngineInfo(id="recall", name="Recall", version="1.0")
    settings_model = "sidecar.engines.settings:RecallSettings"
    shortens_results = True

    def compaction_share(self) -> float:
        """Share of the budget filled after a compaction to `threshold`."""
        settings = cast("RecallSettings | None", self.host.configured)
        return settings.compactTo if settings else COMPACT_TO
