"""Keeps what fits, and lets one summary stand for what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec import structs

from sidecar.engine.calls import AssembleRequest, Assembly, CompactRequest, Kept, Made
from sidecar.engine.contract import EngineInfo
from sidecar.engine.session import Session
from sidecar.engine.window import Window, keep_window
from sidecar.engines.default import digest as digests
from sidecar.engines.default.digest import Digest
from sidecar.engines.windowed import WindowedEngine
from sidecar.summarize.contract import Summariser

if TYPE_CHECKING:
    from sidecar.engines.default.settings import DefaultSettings


SUMMARY_TOKENS = 1500
COMPACT_TO = 0.5
SUMMARY_SHARE = 0.25
"""The summary never takes more of a budget than this."""
SOURCES = 400
"""Messages that one summary is made of at most, the newest ones; what is older stays stored."""


class DefaultEngine(WindowedEngine[Digest]):
    """One summary of older messages, the recent ones intact."""

    info = EngineInfo(id="default", name="Default", version="1.0")
    settings_model = "sidecar.engines.default.settings:DefaultSettings"
    shared_state = ()

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """System messages, the summary, then the window that fits."""
        digest = await digests.load(session)
        cut = digest.cut if digest else None
        shown = digest.shown_tokens if digest else 0
        window = await keep_window(session.timeline, request.budget, cut, shown)
        if window.moved:
            reserve = self.reserve(request.budget)
            window = await keep_window(session.timeline, request.budget, cut, reserve)
            if window.moved:
                digest = await self._advance(session, window, digest, reserve, self.host.extractive)
        if digest and digest.shown_tokens and window.tokens + digest.tokens > request.budget:
            digest = structs.replace(digest, left_out=True)
            await digests.save(session, digest)
        return Assembly(items=_items(window, digest))

    async def standing(self, session: Session) -> Digest | None:
        """The summary, which knows where the window begins."""
        return await digests.load(session)

    async def advance(
        self, session: Session, window: Window, standing: Digest | None, request: CompactRequest, most: int
    ) -> Digest | None:
        """Summarises the older part of the window, with the host's model where it has one."""
        session.progress("summarising", 10)
        advanced = await self._advance(
            session,
            window,
            standing,
            most,
            self.host.summariser,
            request.custom_instructions or "",
        )
        return None if advanced is standing else advanced

    def reserve(self, budget: int) -> int:
        """Tokens of a budget that are kept free for the summary."""
        settings = self._settings()
        most = settings.summaryTokens if settings else SUMMARY_TOKENS
        return min(most, int(budget * SUMMARY_SHARE))

    def compaction_share(self) -> float:
        """Share of the budget that a compaction to `threshold` leaves."""
        settings = self._settings()
        return settings.compactTo if settings else COMPACT_TO

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

    def _settings(self) -> DefaultSettings | None:
        return cast("DefaultSettings | None", self.host.configured)


def _items(window: Window, digest: Digest | None) -> list[Kept | Made]:
    items: list[Kept | Made] = [Kept(entry, "system") for entry in window.system]
    if digest and digest.text and not digest.left_out:
        items.append(digest.as_message())
    return items + [Kept(entry, "system" if entry.role == "system" else "recent") for entry in window.entries]
