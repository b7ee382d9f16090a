"""Sends older turns as an activity log and the last ones in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidecar.engine.calls import (
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    Kept,
    PreflightOutcome,
)
from sidecar.engine.contract import EngineInfo, StoringEngine
from sidecar.engine.entry import Entry
from sidecar.engine.host import EngineHost
from sidecar.engine.session import Session
from sidecar.engine.window import FARTHEST
from sidecar.engines.defaults import COMPACT_TO
from sidecar.engines.recollector import SHARED, Recollector
from sidecar.engines.terse.log import TEACHING
from sidecar.engines.terse.planning import Planner, load, save
from sidecar.messages.terse_tags import may_have_tags, strip_parts

if TYPE_CHECKING:
    from sidecar.messages.contract import Dialect, Role

RECALLED, MOST_RECALLED = 0.25, 400
"""Limits of recalled text, as a share of the room and in tokens: it is short-lived, because the window moves
every turn and recalled text goes with it."""


class TerseEngine(StoringEngine):
    """An activity log of older turns, the last turns in full."""

    info = EngineInfo(id="terse", name="Terse", version="1.0")
    settings_model = "sidecar.engines.settings:TerseSettings"
    shared_state = SHARED

    def __init__(self, host: EngineHost) -> None:
        super().__init__(host)
        self._planner = Planner(host)
        self._recollector = Recollector(host)
        self._teaching_tokens = 0

    def display(self, raw: bytes, role: Role, dialect: Dialect) -> bytes | None:
        """An assistant's message without its tags; `None` if it has none."""
        if role != "assistant" or not may_have_tags(raw):
            return None
        shown = dialect.change_texts(raw, strip_parts)
        return None if shown is raw else shown

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """System messages, the log, the reply to it, then the recent turns."""
        before = await load(session)
        room = request.budget - self._teaching(session)
        plan = await self._planner.plan(session, room, before)
        most = min(int(room * RECALLED), MOST_RECALLED)
        is_whole = (await session.timeline.tail(room)).whole
        cut = None if is_whole else plan.window.cut
        recalled = await self._recollector.open(session, request.prompt, cut)
        if recalled.tokens and plan.tokens + recalled.tokens > room:
            plan = await self._planner.plan(session, room - recalled.tokens, before)
        if cut and not recalled.tokens:
            spared = min(recalled.wanted(room), most)
            if plan.tokens + spared > room:
                plan = await self._planner.plan(session, room - spared, before)
        if plan.state != before:
            await save(session, plan.state)
        front = [*(Kept(entry, "system") for entry in plan.window.system), *plan.log.messages()]
        log = plan.tokens - plan.window.tokens
        if cut:
            await recalled.fill(plan.window, room, log, most=most)
        await recalled.save()
        items = recalled.placed(front, plan.window.entries)
        return Assembly(items=items, system_prompt_addition=TEACHING)

    async def take_note(self, session: Session, entry: Entry) -> None:
        """Preprocess a message for the next answer."""
        await self._recollector.take_note(session, entry)

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Move the window; messages that leave it stay stored."""
        state = await load(session)
        now = await self._planner.plan(session, request.budget * FARTHEST, state)
        target = _target(request, now.tokens)
        reason = f"{now.tokens} tokens are within the target of {target}"
        if now.tokens > target:
            smaller = await self._planner.plan(session, target, state)
            if smaller.tokens < now.tokens:
                await save(session, smaller.state)
                recalled = await self._recollector.open(session, "", smaller.window.cut)
                recalled.make_room()
                await recalled.save()
                return CompactOutcome(
                    compacted=True,
                    first_kept_message_id=smaller.window.cut,
                    tokens_before=now.tokens,
                    tokens_after=smaller.tokens,
                )
            reason = "only what the model needs next is left"
        return CompactOutcome(compacted=False, reason=reason, tokens_before=now.tokens)

    async def preflight(self, session: Session, request: AssembleRequest) -> PreflightOutcome:
        """Predict whether log and turns fit; if not, recommend a compaction."""
        plan = await self._planner.plan(session, request.budget * FARTHEST, await load(session))
        tokens = plan.tokens + self._teaching(session)
        fits = tokens <= request.budget
        return PreflightOutcome(fits=fits, estimated_tokens=tokens, action="none" if fits else "compact")

    def _teaching(self, session: Session) -> int:
        """Tokens of the addition to the system prompt."""
        if not self._teaching_tokens:
            self._teaching_tokens = self.host.tokens.count(TEACHING)
        return session.calibrated(self._teaching_tokens)


def _target(request: CompactRequest, current: int) -> int:
    """Tokens that a compaction should leave; with `force`, at most half of the current ones."""
    target = int(request.budget * (COMPACT_TO if request.target == "threshold" else 1.0))
    return min(target, current // 2) if request.force else target
