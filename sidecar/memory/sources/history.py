"""Memory of what was said in earlier sessions of the same agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from sidecar.engine.signature import digest
from sidecar.memory.contract import Fragment, MemoryRequest, SourceHost
from sidecar.memory.sources.agent_remarks import NEWEST, AgentRemarks, agent_remarks
from sidecar.messages.text import fold
from sidecar.recall.recollection import day, hanging
from sidecar.recall.retrieval import retrieve
from sidecar.recall.situations import situation

if TYPE_CHECKING:
    from sidecar.recall.retrieval import Passage


class HistorySettings(BaseModel):
    """Settings of the source `history`."""

    model_config = ConfigDict(extra="forbid")

    tokenBudget: int | None = Field(default=None, ge=1)
    """Most tokens of this source in one compilation."""
    maxFragments: int = Field(default=8, ge=1, le=100)
    """Most passages that are offered for one prompt."""
    priority: int = Field(default=50, ge=0, le=100)
    """Of the best passage; the others follow below it."""


class HistorySource:
    """Searches the agent's other sessions as the engine `recall` searches the one that it serves."""

    name = "history"
    injection_points = ("per-message",)

    def __init__(self, host: SourceHost) -> None:
        self._host = host
        self._settings = host.settings(HistorySettings)

    async def get_context(self, request: MemoryRequest) -> list[Fragment]:
        """See `MemorySource`."""
        asked = situation(request.prompt or "", ())
        if not asked.question:
            return []
        remarks = agent_remarks(self._host, request, roles=("user", "assistant"))
        found = await retrieve(remarks, asked, NEWEST)
        best = _without_echoes(found, self._settings.maxFragments)
        return [self._fragment(remarks, passage, rank) for rank, passage in enumerate(best)]

    def _fragment(self, remarks: AgentRemarks, passage: Passage, rank: int) -> Fragment:
        remark = passage.remark
        whence = remarks.whence(remark.position)
        session_id = whence.ref.session_id if whence else ""
        return Fragment(
            content=f"{remark.role}: {hanging(passage.text)}",
            priority=max(self._settings.priority - rank, 0),
            id=digest(fold(passage.text))[:16],
            label=f"Earlier conversation ({session_id}, {remark.turn_id}, {day(remark.timestamp_ms)})",
        )


def _without_echoes(ranked: Sequence[Passage], most: int) -> list[Passage]:
    """The best passages; of those that say the same, quotes for example, the one that was said first."""
    chosen: list[Passage] = []
    said: list[str] = []
    for passage in ranked:
        text = fold(passage.text)
        echo = next((n for n, other in enumerate(said) if _is_echo(text, other)), None)
        if echo is None:
            chosen.append(passage)
            said.append(text)
        elif _when(passage) < _when(chosen[echo]):
            chosen[echo], said[echo] = passage, text
    return chosen[:most]


def _when(passage: Passage) -> tuple[int, int]:
    """What is stored together has one time; then the order in the session tells."""
    return passage.remark.timestamp_ms, passage.remark.position


def _is_echo(one: str, other: str) -> bool:
    """Whether one text is the other with a little around it."""
    shorter, longer = sorted((one, other), key=len)
    return shorter in longer and len(shorter) * 2 >= len(longer)
