"""Sends the newest turns, and of older ones what the situation calls for."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec import structs

from sidecar.engine.calls import AssembleRequest, Assembly, CompactOutcome, CompactRequest, PreflightOutcome
from sidecar.engine.contract import EngineInfo, StoringEngine
from sidecar.engine.entry import Entry
from sidecar.engine.host import EngineHost
from sidecar.engine.session import Session
from sidecar.engine.window import whole_window
from sidecar.engines.recall.defaults import COMPACT_TO
from sidecar.engines.recall.planning import Planner
from sidecar.engines.recall.state import load, save
from sidecar.engines.recollecting import asked_last, prompt_key

if TYPE_CHECKING:
    from sidecar.engines.recall.settings import RecallSettings


class RecallEngine(StoringEngine):
    """The newest turns, and older ones that the prompt calls for."""

    info = EngineInfo(id="recall", name="Recall", version="1.0")
    settings_model = "sidecar.engines.recall.settings:RecallSettings"
    shared_state = ()
    shortens_results = True

    def __init__(self, host: EngineHost) -> None:
        super().__init__(host)
        self._planner = Planner(host)

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """System messages, notes, then the newest turns with what was recalled along them."""
        before = await load(session)
        plan = await self._planner.plan(session, request, before)
        if plan.state != before:
            await save(session, plan.state)
        return Assembly(items=plan.items())

    async def take_note(self, session: Session, entry: Entry) -> None:
        """Reads what the next answer is likely to need of a message."""
        self._planner.take_note(session, entry)

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Moves the window and lets go of what was recalled; all of it stays stored."""
        state = await load(session)
        window = await whole_window(session.timeline, request.budget, state.cut or None)
        before = window.tokens + session.calibrated(state.plain_tokens)
        target = self._target(request, before)
        if before <= target:
            reason = f"{before} tokens are within the target of {target}"
            return CompactOutcome(compacted=False, reason=reason, tokens_before=before)
        smaller, fresh = await self._planner.cut(session, request.budget, state.cut or None, target)
        after = smaller.tokens + session.calibrated(fresh.plain_tokens)
        if after >= before:
            reason = "only what the model needs next is left"
            return CompactOutcome(compacted=False, reason=reason, tokens_before=before)
        # Whoever asks for room does not want it filled again in the same turn.
        quiet = prompt_key(await asked_last(session))
        await save(session, structs.replace(fresh, quiet=quiet))
        return CompactOutcome(
            compacted=True, first_kept_message_id=smaller.cut, tokens_before=before, tokens_after=after
        )

    async def preflight(self, session: Session, request: AssembleRequest) -> PreflightOutcome:
        """Whether the window fits with what was recalled so far; a compaction makes it fit."""
        state = await load(session)
        window = await whole_window(session.timeline, request.budget, state.cut or None)
        tokens = window.tokens + session.calibrated(state.plain_tokens)
        fits = tokens <= request.budget
        return PreflightOutcome(fits=fits, estimated_tokens=tokens, action="none" if fits else "compact")

    def _target(self, request: CompactRequest, current: int) -> int:
        settings = cast("RecallSettings | None", self.host.configured)
        share = (settings.compactTo if settings else COMPACT_TO) if request.target == "threshold" else 1.0
        target = int(request.budget * share)
        return min(target, current // 2) if request.force else target
