"""Keeps what fits, and lets one summary stand for what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sidecar.engine.contract import (
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    EngineInfo,
    Kept,
    Made,
    PreflightOutcome,
    Session,
    StoringEngine,
)
from sidecar.engine.window import Window, cut_window, keep_window, whole_window
from sidecar.engines.default import digest as digests
from sidecar.engines.default.defaults import COMPACT_TO, SUMMARY_TOKENS
from sidecar.engines.default.digest import Digest
from sidecar.summarize.contract import Summariser

if TYPE_CHECKING:
    from sidecar.engines.default.settings import DefaultSettings

SUMMARY_SHARE = 0.25
"""The summary never takes more of a budget than this."""
SOURCES = 400
"""Messages that one summary is made of at most, the newest ones; what is older stays stored."""


class DefaultEngine(StoringEngine):
    """One summary of older messages, the recent ones intact."""

    info = EngineInfo(id="default", name="Default", version="1.0")
    settings_model = "sidecar.engines.default.settings:DefaultSettings"

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """System messages, the summary, then the window that fits."""
        digest = await digests.load(session)
        cut = digest.cut if digest else None
        window = await keep_window(session.timeline, request.budget, cut, digest.tokens if digest else 0)
        if window.moved:
            reserve = self._summary_tokens(request.budget)
            window = await keep_window(session.timeline, request.budget, cut, reserve)
            if window.moved:
                digest = await self._advance(session, window, digest, reserve, self.host.extractive)
        return Assembly(items=_items(window, digest))

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Summarises the older part of the window, with the host's model where it has one."""
        digest = await digests.load(session)
        reserve = self._summary_tokens(request.budget)
        window = await whole_window(session.timeline, request.budget, digest.cut if digest else None)
        before = window.tokens + (digest.tokens if digest else 0)
        target = self._target(request, before)
        if before <= target:
            reason = f"{before} tokens are within the target of {target}"
            return CompactOutcome(compacted=False, reason=reason, tokens_before=before)
        room = (target if request.force else request.budget) - reserve
        smaller = await cut_window(session.timeline, window.entries, max(room, 0), max(target - reserve, 0))
        if smaller.tokens >= window.tokens:
            reason = "only what the model needs next is left"
            return CompactOutcome(compacted=False, reason=reason, tokens_before=before)
        session.progress("summarising", 10)
        advanced = await self._advance(
            session, smaller, digest, reserve, self.host.summariser, request.custom_instructions or ""
        )
        if advanced is digest or advanced is None:
            reason = "the history changed while the summary was written"
            return CompactOutcome(compacted=False, reason=reason, tokens_before=before)
        return CompactOutcome(
            compacted=True,
            summary=advanced.text,
            first_kept_message_id=smaller.cut,
            tokens_before=before,
            tokens_after=smaller.tokens + advanced.tokens,
        )

    async def preflight(self, session: Session, request: AssembleRequest) -> PreflightOutcome:
        """Whether the window fits as it is; a compaction makes it fit."""
        digest = await digests.load(session)
        window = await whole_window(session.timeline, request.budget, digest.cut if digest else None)
        tokens = window.tokens + (digest.tokens if digest else 0)
        fits = tokens <= request.budget
        return PreflightOutcome(fits=fits, estimated_tokens=tokens, action="none" if fits else "compact")

    async def _advance(
        self,
        session: Session,
        window: Window,
        digest: Digest | None,
        target: int,
        summariser: Summariser,
        instructions: str = "",
    ) -> Digest | None:
        """The summary moved on to the window's cut; `digest` as it was where that was not possible."""
        if window.cut is None or (digest and digest.cut == window.cut):
            return digest
        dropped = await session.timeline.before(window.cut, SOURCES, digest.cut if digest else None)
        advanced = await digests.extend(
            summariser, digest, dropped, window.cut, target, session.count, instructions
        )
        kept = await digests.replace(session, digest, advanced)
        return advanced if kept else digest

    def _summary_tokens(self, budget: int) -> int:
        settings = self._settings()
        most = settings.summaryTokens if settings else SUMMARY_TOKENS
        return min(most, int(budget * SUMMARY_SHARE))

    def _target(self, request: CompactRequest, current: int) -> int:
        settings = self._settings()
        share = settings.compactTo if settings else COMPACT_TO
        target = int(request.budget * (share if request.target == "threshold" else 1.0))
        return min(target, current // 2) if request.force else target

    def _settings(self) -> DefaultSettings | None:
        return cast("DefaultSettings | None", self.host.configured)


def _items(window: Window, digest: Digest | None) -> list[Kept | Made]:
    items: list[Kept | Made] = [Kept(entry, "system") for entry in window.system]
    if digest and digest.text:
        items.append(digest.as_message())
    return items + [Kept(entry, "system" if entry.role == "system" else "recent") for entry in window.entries]
