"""The `full` engine: everything that fits, whole oldest turns dropped only when the budget forces it."""

from __future__ import annotations

from sidecar.engine.calls import (
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    Kept,
    PreflightOutcome,
)
from sidecar.engine.contract import EngineInfo, StoringEngine
from sidecar.engine.session import Session
from sidecar.engine.window import Window, cut_window, keep_window, whole_window

CUT = "cut"
TARGET_SHARE = 0.5
"""Share of the budget that a compaction to `threshold` leaves."""


class FullEngine(StoringEngine):
    """Sends the whole session while it fits."""

    info = EngineInfo(id="full", name="Full", version="1.0")
    shared_state = ()

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """System messages, then the window that fits."""
        window = await keep_window(session.timeline, request.budget, await _cut(session))
        if window.moved:
            await session.save_state(CUT, (window.cut or "").encode())
        return Assembly(items=_items(window))

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Moves the window; what leaves it stays stored."""
        window = await whole_window(session.timeline, request.budget, await _cut(session))
        before = window.tokens
        target = compaction_target(request, before)
        if before <= target:
            return CompactOutcome(
                compacted=False,
                reason=f"{before} tokens are within the target of {target}",
                tokens_before=before,
            )
        room = target if request.force else request.budget
        smaller = await cut_window(session.timeline, window.entries, room, target)
        if smaller.tokens >= before:
            return CompactOutcome(
                compacted=False, reason="only what the model needs next is left", tokens_before=before
            )
        await session.save_state(CUT, (smaller.cut or "").encode())
        return CompactOutcome(
            compacted=True,
            first_kept_message_id=smaller.cut,
            tokens_before=before,
            tokens_after=smaller.tokens,
        )

    async def preflight(self, session: Session, request: AssembleRequest) -> PreflightOutcome:
        """Whether the window fits as it is; a compaction makes it fit."""
        window = await whole_window(session.timeline, request.budget, await _cut(session))
        fits = window.tokens <= request.budget
        return PreflightOutcome(
            fits=fits, estimated_tokens=window.tokens, action="none" if fits else "compact"
        )


def compaction_target(request: CompactRequest, current: int) -> int:
    """Tokens that a compaction should leave; with `force`, always less than there are now."""
    share = TARGET_SHARE if request.target == "threshold" else 1.0
    target = int(request.budget * share)
    return min(target, current // 2) if request.force else target


def _items(window: Window) -> list[Kept]:
    return [Kept(entry, "system") for entry in window.system] + [
        Kept(entry, "system" if entry.role == "system" else "recent") for entry in window.entries
    ]


async def _cut(session: Session) -> str | None:
    """Where the window begins; `None` where nothing was cut, or the cut is not in the history any more."""
    kept = (await session.state(CUT) or b"").decode()
    cut = await session.timeline.resolve(kept) if kept else None
    if cut and cut != kept:
        await session.save_state(CUT, cut.encode())
    return cut
