"""The source `episodes`: messages of handed-over turns that match the prompt."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from sidecar.episodes.contract import Remembered
from sidecar.memory.contract import Fragment, InjectionPoint, MemoryRequest, SourceHost, SourceUnavailable
from sidecar.recall.passages import passages
from sidecar.recall.situations import Situation, situation
from sidecar.store.search.terms import document_terms

LIMIT = 5
PRIORITY = 40.0
"""Priority of the best hit; each further one has one less. Notes and facts rank above it."""
LOOKED_AT = 4
"""Hits requested for each one wanted, because the model already sees some of them."""


class EpisodesSettings(BaseModel):
    """`plugins.entries.episodes.config`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    limit: int = Field(default=LIMIT, ge=1, le=50)
    """Maximum number of messages recalled for one prompt."""


class EpisodesSource:
    """Searches the back end of episodes; leaves out messages that are in the model's context."""

    name = "episodes"
    injection_points: Sequence[InjectionPoint] = ("per-message",)

    def __init__(self, host: SourceHost) -> None:
        if host.episodes is None:
            raise SourceUnavailable("there are no episodes to search: set episodes.enabled")
        self._host = host
        self._backend = host.episodes
        self._limit = host.settings(EpisodesSettings).limit

    async def get_context(self, request: MemoryRequest) -> list[Fragment]:
        """One fragment for each message that matches the prompt, with its best passage."""
        asked = situation(request.prompt or "", ())
        if not asked.question:
            return []
        found = await self._backend.search(
            self._host.namespace, request.agent_id, asked.question, self._limit * LOOKED_AT
        )
        telling = [
            hit for hit in found if hit.text.strip() and not await self._is_seen(hit, request.session_id)
        ]
        return [
            Fragment(
                id=hit.id or None,
                content=_line(hit, asked),
                priority=max(PRIORITY - rank, 0.0),
                label="Said earlier",
            )
            for rank, hit in enumerate(telling[: self._limit])
        ]

    async def _is_seen(self, hit: Remembered, session_id: str | None) -> bool:
        """Whether the message is in the model's context."""
        if session_id is None or hit.session_id != session_id:
            return False
        return await self._host.is_in_context(session_id, hit.message_id)


def _line(hit: Remembered, asked: Situation) -> str:
    who = ", ".join(part for part in (hit.timestamp[:10], hit.role) if part)
    text = _best(hit.text, asked).strip()
    return f"[{who}] {text}" if who else text


def _best(text: str, asked: Situation) -> str:
    """The passage with the most terms of the prompt; the first one if several are equal."""
    pieces = passages(text)
    wanted = frozenset(asked.terms)
    return max(pieces, key=lambda piece: len(wanted & document_terms(piece).counts.keys()), default=text)
