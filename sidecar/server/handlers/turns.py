"""`context/bootstrap`, `context/afterTurn`, `context/commitTurn`: whole pieces of transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import MsgspecError, Raw, json

from sidecar.engine.contract import AfterTurnRequest, IncomingMessage, IngestOutcome
from sidecar.messages.dialects.members import UsageMembers
from sidecar.protocol.context import (
    AfterTurnContextParams,
    AfterTurnContextResult,
    BootstrapContextParams,
    BootstrapContextResult,
    CommitTurnContextParams,
    CommitTurnContextResult,
)
from sidecar.rpc.call import Call
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.progress import Progress
from sidecar.rpc.router import Order, Router
from sidecar.server.engine_session import EngineSession
from sidecar.server.engines import LEGACY
from sidecar.server.handlers.ingest import stores_directly
from sidecar.server.handlers.lane import import_lane
from sidecar.server.seat import Seat
from sidecar.server.sessions.claims import claim
from sidecar.server.sessions.gathering import Store, ingest_together
from sidecar.server.sessions.live import LiveSession
from sidecar.server.sessions.stubs import show_stubs
from sidecar.server.sessions.timeline import stored_timeline
from sidecar.server.sidecar import Sidecar
from sidecar.server.standing_in import asked, ingested
from sidecar.store.contract import AppendResult, NewMessage, RecordAdvancement

Params = BootstrapContextParams | AfterTurnContextParams | CommitTurnContextParams

BATCH = 500
"""Messages of a bootstrap that are stored in one step."""


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve the methods that hand over transcripts."""
    handlers = TurnHandlers(sidecar)
    router.request(
        "context/bootstrap",
        BootstrapContextParams,
        handlers.bootstrap,
        order=Order.EXCLUSIVE,
        lane=sidecar.lanes.importing,
    )
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
    """Aligns what the host hands over with what is stored, and stores the rest."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def bootstrap(self, params: BootstrapContextParams, call: Call) -> BootstrapContextResult:
        """Import what is new in the host's transcript."""
        if params.background:
            call.keep_only_lane(import_lane(params.session_id))
        seat, live = await self._open(params)
        if seat.id == LEGACY:
            return _nothing("the legacy engine stores nothing")
        if params.messages is not None:
            messages: Sequence[bytes | Raw] = params.messages
        elif params.session_file is not None:
            loaded = await self._load(params.session_file, params.session_file_format)
            if isinstance(loaded, str):
                return _nothing(loaded)
            messages = loaded
        else:
            raise InvalidParams("one of messages and sessionFile is needed", path="/messages")
        if params.background:
            return await self._import(seat, live, params, call, messages)
        new = await self._sidecar.reconciler.of_transcript(live, messages)
        step = BATCH if all(message.after is None for message in new) else max(len(new), 1)
        for start in range(0, len(new), step):
            await self._keep(seat, live, params, call, new[start : start + step])
        if not new:
            if live.head is None:
                await self._keep(seat, live, params, call, [])
            return _nothing("nothing new in the transcript")
        return BootstrapContextResult(
            bootstrapped=True, imported_messages=len(new), fallback_for=live.stood_in
        )

    async def _import(
        self,
        seat: Seat,
        live: LiveSession,
        params: BootstrapContextParams,
        call: Call,
        messages: Sequence[bytes | Raw],
    ) -> BootstrapContextResult:
        """Import step by step, while requests that store nothing go on."""
        from sidecar.server.sessions.importing import BackgroundImport

        async def keep(new: Sequence[NewMessage]) -> None:
            await self._keep(seat, live, params, call, new)

        progress = Progress(self._sidecar.peer, params.work_done_token)
        work = BackgroundImport(self._sidecar, live, keep, progress)
        call.on_cancel = work.cancel
        imported = await work.run(messages)
        call.on_cancel = _too_late
        if seat.has("after_turn") and seat.engine.info.turn_maintenance_mode == "background":
            session = self._session(seat, live, params)
            told = seat.engine.after_turn(seat.lend(session), AfterTurnRequest(budget=None))
            await self._sidecar.run_engine(seat, "context/afterTurn", told, params.session_id)
        if not imported:
            return _nothing("nothing new in the transcript")
        return BootstrapContextResult(bootstrapped=True, imported_messages=imported)

    async def after_turn(self, params: AfterTurnContextParams, call: Call) -> AfterTurnContextResult:
        """Take in a finished turn, then let the engine react."""
        seat, live = await self._open(params)
        await self._end_turn(live, params)
        if seat.id == LEGACY:
            return AfterTurnContextResult()
        heartbeat = bool(params.is_heartbeat)
        reconciler, count = self._sidecar.reconciler, params.pre_prompt_message_count
        if params.messages and count is not None:
            new = await reconciler.of_transcript(live, params.messages, heartbeat=heartbeat, turn_start=count)
        else:
            turn = reconciler.read(live, params.messages or ())
            await self._keep_staged(seat, live, params, call)
            new = await reconciler.of_turn(live, turn, heartbeat=heartbeat, committed=False)
        if new or live.head is None:
            await self._keep(seat, live, params, call, new)
        call.on_cancel = _too_late
        await self._sidecar.turn_ended(seat, live)
        reported = _input_tokens(bytes(params.usage))
        if reported:
            await live.learn("", reported)
        if seat.has("after_turn"):
            await live.refresh()
            request = AfterTurnRequest(
                budget=params.token_budget,
                heartbeat=heartbeat,
                auto_compaction_summary=params.auto_compaction_summary,
            )
            session = self._session(seat, live, params)
            await show_stubs(session, seat.engine.payload_tokens)
            _, fallback_for = await asked(
                self._sidecar,
                seat,
                "context/afterTurn",
                seat.engine.after_turn(seat.lend(session), request),
                params.session_id,
                _nothing_done,
            )
            live.stood_in = live.stood_in or fallback_for
        return AfterTurnContextResult(fallback_for=live.stood_in)

    async def commit_turn(self, params: CommitTurnContextParams, call: Call) -> CommitTurnContextResult:
        """Store a turn once, however often its key comes."""
        sidecar = self._sidecar
        seat, live = await self._open(params)
        if seat.id == LEGACY:
            fresh = await sidecar.store.write(RecordAdvancement(live.ref, params.advancement_key))
            if fresh:
                await self._end_turn(live, params)
            return CommitTurnContextResult(status="committed" if fresh else "duplicate")
        if await sidecar.store.advancement_known(live.ref, params.advancement_key):
            return CommitTurnContextResult(status="duplicate")
        turn = sidecar.reconciler.read(live, params.messages)
        await self._keep_staged(seat, live, params, call)
        new = await sidecar.reconciler.of_turn(
            live, turn, heartbeat=bool(params.is_heartbeat), committed=True
        )
        duplicate = await self._keep(seat, live, params, call, new, params.advancement_key)
        if not duplicate:
            await claim(live)
            await self._end_turn(live, params)
            await sidecar.turn_ended(seat, live)
        status = "duplicate" if duplicate else "committed"
        return CommitTurnContextResult(status=status, fallback_for=live.stood_in)

    async def _end_turn(
        self, live: LiveSession, params: AfterTurnContextParams | CommitTurnContextParams
    ) -> None:
        """What was injected in the turn counts from now on; a summary by the host has removed all of it."""
        if self._sidecar.memory is not None and not params.is_heartbeat:
            await self._sidecar.memory.end_turn(live)
        if isinstance(params, AfterTurnContextParams) and params.auto_compaction_summary is not None:
            from sidecar.server.memory.forgetting import forget_injections

            await forget_injections(self._sidecar, live)

    async def _keep_staged(self, seat: Seat, live: LiveSession, params: Params, call: Call) -> None:
        """Store what earlier transcripts of the host showed and no turn brought."""
        while staged := await self._sidecar.reconciler.staged(live):
            await self._keep(seat, live, params, call, staged)
            await self._sidecar.reconciler.unstage(live)

    async def _keep(
        self,
        seat: Seat,
        live: LiveSession,
        params: Params,
        call: Call,
        new: Sequence[NewMessage],
        advancement_key: str | None = None,
    ) -> bool:
        """Store messages by the engine's own way; returns whether the key was known."""
        sidecar = self._sidecar
        taken_back = isinstance(params, BootstrapContextParams) and params.background

        async def store(messages: Sequence[NewMessage]) -> AppendResult:
            result: AppendResult = await sidecar.store.write(
                sidecar.intake.append(
                    params.session_id, list(messages), params.agent_id, params.session_key, advancement_key
                )
            )
            if not taken_back:
                call.on_cancel = _too_late
            if not result.duplicate and (again := sidecar.intake.anew(result.items, messages)):
                await sidecar.store.write(
                    sidecar.intake.append(params.session_id, again, params.agent_id, params.session_key)
                )
            return result

        result = (
            await store(new) if stores_directly(seat) else await self._gather(seat, live, params, new, store)
        )
        await live.refresh()
        return result.duplicate

    async def _gather(
        self, seat: Seat, live: LiveSession, params: Params, new: Sequence[NewMessage], store: Store
    ) -> AppendResult:
        """Hand messages to an engine that looks at each before it is stored."""
        sidecar = self._sidecar
        results: list[AppendResult] = []

        async def keep(messages: list[NewMessage]) -> AppendResult:
            results.append(await store(messages))
            return results[0]

        async def ingest(session: EngineSession, message: IncomingMessage) -> IngestOutcome:
            outcome, fallback_for = await ingested(sidecar, seat, "context/ingest", session, message)
            live.stood_in = live.stood_in or fallback_for
            return outcome

        await ingest_together(
            new,
            lambda: self._session(seat, live, params),
            ingest,
            keep,
            lambda message, index, result: sidecar.intake.told(result, index, message.body),
        )
        return results[0]

    async def _load(self, locator: str, name: str | None) -> list[bytes] | str:
        """The messages of a transcript file, or why there are none."""
        from pathlib import Path

        from sidecar.messages.importers import TranscriptError, load

        path = Path(locator)
        if not await asyncio.to_thread(path.is_file):
            return "sessionFile names no file"
        try:
            transcript = await asyncio.to_thread(load, path, name)
        except TranscriptError as error:
            raise InvalidParams(f"sessionFile: {error}", path="/sessionFile") from None
        if transcript.message_format != self._sidecar.profile.message_format:
            raise InvalidParams(
                f"sessionFile: the file holds {transcript.message_format} messages",
                path="/sessionFile",
                messageFormat=transcript.message_format,
            )
        return [item.message for item in transcript.items]

    async def _open(self, params: Params) -> tuple[Seat, LiveSession]:
        seat = await self._sidecar.seats.of(params.session_id, params.agent_id, params.session_key)
        live = await self._sidecar.sessions.open(params.session_id, params.agent_id)
        live.stood_in = None
        return seat, live

    def _session(self, seat: Seat, live: LiveSession, params: Params) -> EngineSession:
        return EngineSession(
            live, stored_timeline(live), seat.id, agent_id=params.agent_id, session_key=params.session_key
        )


async def _nothing_done() -> None:
    """The messages of the turn are stored already."""


def _too_late() -> bool:
    """A part of the effect is there already, so the rest of it has to come."""
    return False


def _nothing(reason: str) -> BootstrapContextResult:
    return BootstrapContextResult(bootstrapped=False, imported_messages=0, reason=reason)


def _input_tokens(usage: bytes) -> int | None:
    """Input tokens in a provider's report, whatever it calls them."""
    try:
        total = json.decode(usage, type=UsageMembers).total() if usage else None
    except MsgspecError:
        return None
    return total.input_tokens if total else None
