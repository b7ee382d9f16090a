"""Base of the engines that send the newest part of a session in full, from a cut that rarely moves."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from sidecar.engine.calls import AssembleRequest, CompactOutcome, CompactRequest, PreflightOutcome
from sidecar.engine.contract import StoringEngine
from sidecar.engine.session import Session
from sidecar.engine.window import Window, cut_window, whole_window


class Standing(Protocol):
    """Where the window begins, and what stands in front of it."""

    @property
    def cut(self) -> str:
        """Id of the first message that is sent in full."""
        ...

    @property
    def tokens(self) -> int:
        """What stands in front of the window takes so many; 0 where nothing does."""
        ...

    @property
    def text(self) -> str | None:
        """The summary of what is not sent; `None` for engines that write none."""
        ...


S = TypeVar("S", bound=Standing)


LEAST = 64
"""Tokens that a compaction has to free where a summary takes their place."""


class WindowedEngine(StoringEngine, Generic[S]):
    """Compacts by moving the cut; what is in front of it stays stored."""

    buffers_episodes = True

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Moves the window to the target, and lets `advance` say what stands in front of it."""
        standing = await self.standing(session)
        window = await whole_window(session.timeline, request.budget, standing.cut if standing else None)
        before = window.tokens + (standing.tokens if standing else 0)
        target = self._target(request, before)
        if before <= target:
            return _declined(f"{before} tokens are within the target of {target}", before)
        reserve = min(self.reserve(request.budget), target // 2)
        room = (target if request.force else request.budget) - reserve
        smaller = await cut_window(session.timeline, window.entries, max(room, 0), max(target - reserve, 0))
        freed = before - smaller.tokens
        if smaller.tokens >= window.tokens or freed < min(reserve, LEAST):
            return _declined("only what the model needs next is left", before)
        advanced = await self.advance(session, smaller, standing, request, min(reserve, freed - 1))
        if advanced is None:
            return _declined("the history changed while the summary was written", before)
        return CompactOutcome(
            compacted=True,
            summary=advanced.text,
            first_kept_message_id=smaller.cut,
            tokens_before=before,
            tokens_after=smaller.tokens + advanced.tokens,
        )

    async def preflight(self, session: Session, request: AssembleRequest) -> PreflightOutcome:
        """Whether the window fits as it is; a compaction makes it fit."""
        standing = await self.standing(session)
        window = await whole_window(session.timeline, request.budget, standing.cut if standing else None)
        tokens = window.tokens + (standing.tokens if standing else 0)
        fits = tokens <= request.budget
        return PreflightOutcome(fits=fits, estimated_tokens=tokens, action="none" if fits else "compact")

    async def standing(self, session: Session) -> S | None:
        """Where the window begins; `None` where nothing was cut, or the cut is not there any more."""
        raise NotImplementedError

    async def advance(
        self, session: Session, window: Window, standing: S | None, request: CompactRequest, most: int
    ) -> S | None:
        """What stands in front of a smaller window, in `most` tokens, kept already.

        `None` where that was not possible.
        """
        raise NotImplementedError

    def compaction_share(self) -> float:
        """Share of the budget that a compaction to `threshold` leaves."""
        raise NotImplementedError

    def reserve(self, budget: int) -> int:  # noqa: ARG002
        """Tokens of a budget that are kept free for what stands in front of the window."""
        return 0

    def _target(self, request: CompactRequest, current: int) -> int:
        """Tokens that a compaction should leave; with `force`, always less than there are now."""
        share = self.compaction_share() if request.target == "threshold" else 1.0
        target = int(request.budget * share)
        return min(target, current // 2) if request.force else target


def _declined(reason: str, tokens: int) -> CompactOutcome:
    return CompactOutcome(compacted=False, reason=reason, tokens_before=tokens)
