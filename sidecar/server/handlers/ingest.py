"""`context/ingest` and `context/ingestBatch`."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, cast

from msgspec import Raw

from sidecar.engine.calls import IncomingMessage, IngestOutcome
from sidecar.messages.contract import Mark
from sidecar.protocol.base import ABSENT, FallbackFor
from sidecar.protocol.context import (
    IngestBatchContextParams,
    IngestBatchContextResult,
    IngestContextParams,
    IngestContextResult,
)
from sidecar.rpc.call import Call
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.router import PENDING, Order, Pending, Router
from sidecar.server.engine_session import EngineSession
from sidecar.server.engines import LEGACY
from sidecar.server.failures import EngineFailed, to_rpc_error
from sidecar.server.intake import synthetic, timestamp
from sidecar.server.seat import Seat
from sidecar.server.sessions.gathering import ingest_together
from sidecar.server.sessions.timeline import SessionTimeline
from sidecar.server.sidecar import Sidecar
from sidecar.server.standing_in import ingested
from sidecar.store.stored import NewMessage
from sidecar.store.writes import Append, AppendResult

if TYPE_CHECKING:
    from sidecar.messages.contract import Role

_log = logging.getLogger(__name__)


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve the methods that take messages in."""
    handlers = IngestHandlers(sidecar)
    router.request(
        "context/ingest",
        IngestContextParams,
        handlers.ingest,
        order=Order.PIPELINED,
        lane=sidecar.lanes.storing,
    )
    router.request(
        "context/ingestBatch",
        IngestBatchContextParams,
        handlers.ingest_batch,
        order=Order.PIPELINED,
        lane=sidecar.lanes.storing,
    )


def stores_directly(seat: Seat) -> bool:
    """True where the engine leaves ingesting to the store, so that no coroutine is needed."""
    return seat.stores


class IngestHandlers:
    """Messages of an engine that stores go straight to the writer; the answer follows the commit."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    def ingest(
        self, params: IngestContextParams, call: Call
    ) -> Pending | IngestContextResult | Coroutine[object, object, IngestContextResult]:
        """Store one message."""
        stamp = timestamp(params.timestamp)
        seat = self._sidecar.seats.known(params.session_id, params.agent_id)
        if seat is None or not stores_directly(seat):
            return self._ingest_by_engine(params, stamp)
        raw = bytes(params.message)
        new = self._sidecar.intake.read(
            raw,
            path="/message",
            message_id=params.message_id,
            turn_id=params.turn_id,
            timestamp_ms=stamp,
            heartbeat=bool(params.is_heartbeat),
        )
        if isinstance(new, Mark):
            return _result(synthetic(new, params.message_id))
        display = self._display(seat, raw, new.role)
        write = self._sidecar.intake.append(params.session_id, [new], params.agent_id, params.session_key)
        call.on_cancel = partial(self._sidecar.store.withdraw, write)
        self._sidecar.store.submit(write, partial(self._stored, call, raw, display))
        return PENDING

    def _stored(self, call: Call, raw: bytes, display: bytes | None, write: Append) -> None:
        if write.error is not None:
            call.fail(to_rpc_error(write.error, write.ref.session_id))
            return
        item = write.result.items[0]
        if not item.stored and (again := self._sidecar.intake.anew([item], write.messages)):
            write = self._sidecar.intake.append(
                write.ref.session_id, again, write.agent_id, write.session_key
            )
            call.on_cancel = partial(self._sidecar.store.withdraw, write)
            self._sidecar.store.submit(write, partial(self._stored, call, raw, display))
        elif item.stored and display is None:
            call.reply(IngestContextResult(ingested=True, message_id=item.message_id, turn_id=item.turn_id))
        else:
            call.reply(_result(self._sidecar.intake.outcome(item, raw), display))

    async def _ingest_by_engine(self, params: IngestContextParams, stamp: int | None) -> IngestContextResult:
        message = IncomingMessage(
            raw=bytes(params.message),
            message_id=params.message_id,
            turn_id=params.turn_id,
            timestamp_ms=stamp,
            heartbeat=bool(params.is_heartbeat),
        )
        self._sidecar.warm_up()
        new = self._sidecar.intake.read(message.raw, path="/message")
        seat = await self._sidecar.seats.of(params.session_id, params.agent_id, params.session_key)
        session = await self._session(seat, params)
        display = None if isinstance(new, Mark) else self._display(seat, message.raw, new.role)
        outcome, fallback_for = await ingested(self._sidecar, seat, "context/ingest", session, message)
        if outcome.ingested and not (session.live.head and session.live.head.message_count):
            await self._sidecar.episodes.session_began(seat, session.live)
        return _result(outcome, display, fallback_for)

    def _display(self, seat: Seat, raw: bytes, role: str) -> bytes | None:
        """What users should see of a message, where its engine changes that.

        Raises:
            EngineFailed: the engine raised.
        """
        try:
            return seat.engine.display(raw, cast("Role", role), self._sidecar.dialect)
        except Exception as error:
            _log.exception("engine %s failed in display", seat.id)
            raise EngineFailed(seat.id, "context/ingest", type(error).__name__) from error

    def ingest_batch(
        self, params: IngestBatchContextParams, call: Call
    ) -> Pending | Coroutine[object, object, IngestBatchContextResult]:
        """Store several messages, all or none."""
        ids = params.message_ids
        if ids is not None and len(ids) != len(params.messages):
            raise InvalidParams(
                f"messageIds: {len(ids)} ids for {len(params.messages)} messages", path="/messageIds"
            )
        seat = self._sidecar.seats.known(params.session_id, params.agent_id)
        if seat is None or not stores_directly(seat):
            return self._batch_by_engine(params, call)
        write, known = self._batch(params)
        call.on_cancel = partial(self._sidecar.store.withdraw, write)
        self._sidecar.store.submit(write, partial(self._batch_stored, call, known))
        return PENDING

    def _batch(self, params: IngestBatchContextParams) -> tuple[Append, list[str | None]]:
        """The write for a batch, and for each message the id of our own that it carries, if it does."""
        new: list[NewMessage] = []
        known: list[str | None] = []
        ids = params.message_ids or [None] * len(params.messages)
        for i, (raw, message_id) in enumerate(zip(params.messages, ids, strict=True)):
            read = self._sidecar.intake.read(
                bytes(raw), path=f"/messages/{i}", message_id=message_id, heartbeat=bool(params.is_heartbeat)
            )
            if isinstance(read, Mark):
                known.append(message_id or read.ref)
            else:
                known.append(None)
                new.append(read)
        write = self._sidecar.intake.append(params.session_id, new, params.agent_id, params.session_key)
        return write, known

    def _batch_stored(self, call: Call, known: list[str | None], write: Append) -> None:
        if write.error is not None:
            call.fail(to_rpc_error(write.error, write.ref.session_id))
        else:
            call.reply(_batch_result(write, known))

    async def _batch_by_engine(
        self, params: IngestBatchContextParams, call: Call
    ) -> IngestBatchContextResult:
        seat = await self._sidecar.seats.of(params.session_id, params.agent_id, params.session_key)
        write, known = self._batch(params)
        if stores_directly(seat):
            result: AppendResult = await self._sidecar.store.write(write)
            if result.head.message_count == sum(item.stored for item in result.items):
                live = await self._sidecar.sessions.open(params.session_id, params.agent_id)
                await self._sidecar.episodes.session_began(seat, live)
            return _batch_result(write, known)
        if seat.id == LEGACY:
            ids = params.message_ids or [None] * len(known)
            return IngestBatchContextResult(ingested_count=0, message_ids=[id or "" for id in ids])
        handle = await self._session(seat, params)
        messages = write.messages
        fallbacks: list[FallbackFor] = []

        async def ingest(session: EngineSession, message: IncomingMessage) -> IngestOutcome:
            outcome, fallback_for = await ingested(
                self._sidecar, seat, "context/ingestBatch", session, message
            )
            fallbacks.extend([fallback_for] if fallback_for else [])
            return outcome

        async def store(given: list[NewMessage]) -> AppendResult:
            write.messages = given
            result: AppendResult = await self._sidecar.store.write(write)
            call.on_cancel = _too_late
            return result

        outcomes = await ingest_together(
            messages,
            handle.another,
            ingest,
            store,
            lambda message, index, result: self._sidecar.intake.told(result, index, message.body),
        )
        ids = iter(outcome.message_id for outcome in outcomes)
        return IngestBatchContextResult(
            ingested_count=sum(outcome.ingested for outcome in outcomes),
            message_ids=[own if own is not None else next(ids) for own in known],
            fallback_for=fallbacks[0] if fallbacks else None,
        )

    async def _session(
        self, seat: Seat, params: IngestContextParams | IngestBatchContextParams
    ) -> EngineSession:
        sidecar = self._sidecar
        live = await sidecar.sessions.open(params.session_id, params.agent_id)
        count = live.head.message_count if live.head and seat.id != LEGACY else 0
        return EngineSession(
            live,
            SessionTimeline(sidecar.store, live.ref, live.stored, count),
            seat.id,
            agent_id=params.agent_id,
            session_key=params.session_key,
        )


def _too_late() -> bool:
    """The messages are stored, so the answer has to say so."""
    return False


def _batch_result(write: Append, known: list[str | None]) -> IngestBatchContextResult:
    items = iter(write.result.items)
    return IngestBatchContextResult(
        ingested_count=sum(item.stored for item in write.result.items),
        message_ids=[own if own is not None else next(items).message_id for own in known],
    )


def _result(
    outcome: IngestOutcome, display: bytes | None = None, fallback_for: FallbackFor | None = None
) -> IngestContextResult:
    display = outcome.display_message or display
    return IngestContextResult(
        ingested=outcome.ingested,
        message_id=outcome.message_id,
        turn_id=outcome.turn_id,
        display_message=Raw(display) if display else ABSENT,
        reason=outcome.reason,
        fallback_for=fallback_for,
    )
