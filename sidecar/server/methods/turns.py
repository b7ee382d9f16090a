"""`context/afterTurn`, `context/commitTurn`: finished turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from msgspec import MsgspecError, json

from sidecar.engine.calls import AfterTurnRequest, IncomingMessage, IngestOutcome
from sidecar.engine.guard.continuity import ViewRecord
from sidecar.messages.dialects.base import UsageMembers
from sidecar.protocol.base import SessionParams
from sidecar.protocol.context import (
    AfterTurnContextParams,
    AfterTurnContextResult,
    CommitTurnContextParams,
    CommitTurnContextResult,
)
from sidecar.rpc.router import Call, Order, Router
from sidecar.server.engines.instance import LEGACY, EngineInstance
from sidecar.server.engines.session import EngineSession
from sidecar.server.methods.ingest import stores_directly
from sidecar.server.sessions.intake import ingest_or_store, ingest_together
from sidecar.server.sessions.live import LiveSession
from sidecar.server.sessions.pruning import show_stubs
from sidecar.server.sessions.reconcile import claim
from sidecar.server.sidecar import Sidecar
from sidecar.store.stored import NewMessage
from sidecar.store.writes import AppendResult, RecordAdvancement


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
        await self._sidecar.episodes.turn_ended(over.instance, live)
        reported = _input_tokens(bytes(params.usage))
        if reported:
            await live.learn("", reported)
        if over.instance.has("after_turn"):
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
        turn = await sidecar.reconciler.read(live, params.messages)
        await over.keep_staged()
        heartbeat = bool(params.is_heartbeat)
        new = await sidecar.reconciler.of_turn(live, turn, heartbeat=heartbeat, committed=True)
        duplicate = await over.keep(new, key)
        if not duplicate:
            await claim(live)
            await self._end_turn(live, params)
            await sidecar.episodes.turn_ended(over.instance, live)
        status = "duplicate" if duplicate else "committed"
        return CommitTurnContextResult(status=status, fallback_for=live.stood_in)

    async def _new_of(self, over: HandOver, params: AfterTurnContextParams) -> list[NewMessage]:
        """What is not stored yet of the messages that came with the end of a turn."""
        reconciler, live, heartbeat = self._sidecar.reconciler, over.live, bool(params.is_heartbeat)
        if params.messages and (count := params.pre_prompt_message_count) is not None:
            return await reconciler.of_transcript(
                live, params.messages, heartbeat=heartbeat, turn_start=count
            )
        turn = await reconciler.read(live, params.messages or ())
        await over.keep_staged()
        return await reconciler.of_turn(live, turn, heartbeat=heartbeat, committed=False)

    async def _tell_engine(self, over: HandOver, params: AfterTurnContextParams) -> None:
        instance, live = over.instance, over.live
        await live.refresh()
        for view, budget in await live.to_act_on(params.token_budget) or [(None, None)]:
            request = AfterTurnRequest(
                budget=budget,
                heartbeat=bool(params.is_heartbeat),
                auto_compaction_summary=params.auto_compaction_summary,
            )
            _, fallback_for = await self._sidecar.runner.run_or_fall_back(
                instance,
                "context/afterTurn",
                instance.engine.after_turn(instance.session_for(await over.session_about(view)), request),
                params.session_id,
                _nothing_done,
            )
            live.stood_in = live.stood_in or fallback_for
        await live.keep_epoch(await live.continuity(), begun=False)

    async def _end_turn(
        self, live: LiveSession, params: AfterTurnContextParams | CommitTurnContextParams
    ) -> None:
        """What was injected in the turn counts from now on; a summary by the host has removed all of it."""
        if self._sidecar.memory is not None and not params.is_heartbeat:
            await self._sidecar.memory.end_turn(live)
        if isinstance(params, AfterTurnContextParams) and params.auto_compaction_summary is not None:
            from sidecar.server.sessions.memory import forget_injections

            views = (await live.continuity()).record.views
            await forget_injections(live, {view.id for view in views})


async def _nothing_done() -> None:
    """The messages of the turn are stored already."""


def _input_tokens(usage: bytes) -> int | None:
    """Input tokens in a provider's report, whatever it calls them."""
    try:
        total = json.decode(usage, type=UsageMembers).total() if usage else None
    except MsgspecError:
        return None
    return total.input_tokens if total else None


class HandOver:
    """Stores what is new by the way of the session's engine."""

    def __init__(
        self, sidecar: Sidecar, instance: EngineInstance, live: LiveSession, params: SessionParams, call: Call
    ) -> None:
        self.instance = instance
        self.live = live
        self.can_be_taken_back = False
        """True where what is stored goes again if the request is cancelled."""
        self._sidecar = sidecar
        self._params = params
        self._call = call

    @classmethod
    async def begin(cls, sidecar: Sidecar, params: SessionParams, call: Call) -> Self:
        """The request at its session, which need not be there yet."""
        instance, snapshot = await sidecar.engines.begin(
            params.session_id, params.agent_id, params.session_key
        )
        live = await sidecar.sessions.open(params.session_id, params.agent_id, snapshot)
        live.stood_in = None
        return cls(sidecar, instance, live, params, call)

    @property
    def stores(self) -> bool:
        """False for the engine that stores nothing."""
        return self.instance.id != LEGACY

    def session(self) -> EngineSession:
        """The session as it is stored, for a call of the engine."""
        return EngineSession(
            self.live,
            self.live.stored_timeline(),
            self.instance.id,
            agent_id=self._params.agent_id,
            session_key=self._params.session_key,
        )

    async def session_about(self, view: ViewRecord | None) -> EngineSession:
        """The session for a call about a view, with what stays replaced there."""
        session = self.session()
        if view is not None:
            session.about(view, self.instance.engine.shared_state)
        await show_stubs(session, self.instance.engine.payload_tokens)
        return session

    async def keep(self, new: Sequence[NewMessage], advancement_key: str | None = None) -> bool:
        """Store messages, all or none; true where the key was known, and nothing was stored."""
        if stores_directly(self.instance):
            result = await self._store(new, advancement_key)
        else:
            result = await self._gather(new, advancement_key)
        await self.live.refresh()
        return result.duplicate

    async def keep_staged(self) -> None:
        """Store what earlier transcripts of the host showed and no turn brought."""
        reconciler = self._sidecar.reconciler
        while staged := await reconciler.staged(self.live):
            await self.keep(staged)
            await reconciler.unstage(self.live)

    def go_through(self) -> None:
        """Let nobody cancel the request any more: a part of its effect is there, so the rest has to come."""
        self._call.on_cancel = _too_late

    async def _store(self, messages: Sequence[NewMessage], advancement_key: str | None) -> AppendResult:
        params, store, intake = self._params, self._sidecar.store, self._sidecar.intake
        whose = params.agent_id, params.session_key
        result: AppendResult = await store.write(
            intake.append(params.session_id, list(messages), *whose, advancement_key)
        )
        if not self.can_be_taken_back:
            self.go_through()
        if not result.duplicate and (again := intake.anew(result.items, messages)):
            await store.write(intake.append(params.session_id, again, *whose))
        return result

    async def _gather(self, new: Sequence[NewMessage], advancement_key: str | None) -> AppendResult:
        """Hand messages to an engine that looks at each before it is stored."""
        sidecar, instance, live = self._sidecar, self.instance, self.live
        results: list[AppendResult] = []

        async def keep(messages: list[NewMessage]) -> AppendResult:
            results.append(await self._store(messages, advancement_key))
            return results[0]

        async def ingest(session: EngineSession, message: IncomingMessage) -> IngestOutcome:
            outcome, fallback_for = await ingest_or_store(
                sidecar.runner, sidecar.intake, instance, "context/ingest", session, message
            )
            live.stood_in = live.stood_in or fallback_for
            return outcome

        await ingest_together(
            new,
            self.session,
            ingest,
            keep,
            lambda message, index, result: sidecar.intake.told(result, index, message.body),
        )
        return results[0]


def _too_late() -> bool:
    return False
