"""`context/afterTurn`, `context/commitTurn`: finished turns."""

from __future__ import annotations

from msgspec import MsgspecError, json

from sidecar.engine.calls import AfterTurnRequest
from sidecar.messages.dialects.members import UsageMembers
from sidecar.protocol.context import (
    AfterTurnContextParams,
    AfterTurnContextResult,
    CommitTurnContextParams,
    CommitTurnContextResult,
)
from sidecar.rpc.call import Call
from sidecar.rpc.router import Order, Router
from sidecar.server.handlers.hand_over import HandOver
from sidecar.server.sessions.claims import claim
from sidecar.server.sessions.live import LiveSession
from sidecar.server.sidecar import Sidecar
from sidecar.server.standing_in import asked
from sidecar.store.stored import NewMessage
from sidecar.store.writes import RecordAdvancement


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve the methods that end turns."""
    handlers = TurnHandlers(sidecar)
    router.request(
        "context/afterTurn",
        AfterTurnContextParams,
        handlers.after_turn,
        order=Order.EXCLUSIVE,
        lane=sidecar.lanes.storing,
    )
    router.request(
        "context/commitTurn",
        CommitTurnContextParams,
        handlers.commit_turn,
        order=Order.EXCLUSIVE,
        lane=sidecar.lanes.storing,
    )


class TurnHandlers:
    """Aligns a turn with what is stored, and stores the rest."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def after_turn(self, params: AfterTurnContextParams, call: Call) -> AfterTurnContextResult:
        """Take in a finished turn, then let the engine react."""
        over = await HandOver.begin(self._sidecar, params, call)
        await self._end_turn(over.live, params)
        if not over.stores:
            return AfterTurnContextResult()
        new = await self._new_of(over, params)
        live = over.live
        if new or live.head is None:
            await over.keep(new)
        over.go_through()
        await self._sidecar.episodes.turn_ended(over.seat, live)
        reported = _input_tokens(bytes(params.usage))
        if reported:
            await live.learn("", reported)
        if over.seat.has("after_turn"):
            await self._tell_engine(over, params)
        return AfterTurnContextResult(fallback_for=live.stood_in)

    async def commit_turn(self, params: CommitTurnContextParams, call: Call) -> CommitTurnContextResult:
        """Store a turn once, however often its key comes."""
        sidecar, key = self._sidecar, params.advancement_key
        over = await HandOver.begin(sidecar, params, call)
        live = over.live
        if not over.stores:
            fresh = await sidecar.store.write(RecordAdvancement(live.ref, key))
            if fresh:
                await self._end_turn(live, params)
            return CommitTurnContextResult(status="committed" if fresh else "duplicate")
        if await sidecar.store.advancement_known(live.ref, key):
            return CommitTurnContextResult(status="duplicate")
        turn = sidecar.reconciler.read(live, params.messages)
        await over.keep_staged()
        heartbeat = bool(params.is_heartbeat)
        new = await sidecar.reconciler.of_turn(live, turn, heartbeat=heartbeat, committed=True)
        duplicate = await over.keep(new, key)
        if not duplicate:
            await claim(live)
            await self._end_turn(live, params)
            await sidecar.episodes.turn_ended(over.seat, live)
        status = "duplicate" if duplicate else "committed"
        return CommitTurnContextResult(status=status, fallback_for=live.stood_in)

    async def _new_of(self, over: HandOver, params: AfterTurnContextParams) -> list[NewMessage]:
        """What is not stored yet of the messages that came with the end of a turn."""
        reconciler, live, heartbeat = self._sidecar.reconciler, over.live, bool(params.is_heartbeat)
        if params.messages and (count := params.pre_prompt_message_count) is not None:
            return await reconciler.of_transcript(
                live, params.messages, heartbeat=heartbeat, turn_start=count
            )
        turn = reconciler.read(live, params.messages or ())
        await over.keep_staged()
        return await reconciler.of_turn(live, turn, heartbeat=heartbeat, committed=False)

    async def _tell_engine(self, over: HandOver, params: AfterTurnContextParams) -> None:
        seat, live = over.seat, over.live
        await live.refresh()
        request = AfterTurnRequest(
            budget=params.token_budget,
            heartbeat=bool(params.is_heartbeat),
            auto_compaction_summary=params.auto_compaction_summary,
        )
        _, fallback_for = await asked(
            self._sidecar,
            seat,
            "context/afterTurn",
            seat.engine.after_turn(seat.lend(await over.session_with_stubs()), request),
            params.session_id,
            _nothing_done,
        )
        live.stood_in = live.stood_in or fallback_for

    async def _end_turn(
        self, live: LiveSession, params: AfterTurnContextParams | CommitTurnContextParams
    ) -> None:
        """What was injected in the turn counts from now on; a summary by the host has removed all of it."""
        if self._sidecar.memory is not None and not params.is_heartbeat:
            await self._sidecar.memory.end_turn(live)
        if isinstance(params, AfterTurnContextParams) and params.auto_compaction_summary is not None:
            from sidecar.server.memory.forgetting import forget_injections

            await forget_injections(self._sidecar, live)


async def _nothing_done() -> None:
    """The messages of the turn are stored already."""


def _input_tokens(usage: bytes) -> int | None:
    """Input tokens in a provider's report, whatever it calls them."""
    try:
        total = json.decode(usage, type=UsageMembers).total() if usage else None
    except MsgspecError:
        return None
    return total.input_tokens if total else None
