"""`context/ingest`, `context/ingestBatch`: single messages."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, cast

from msgspec import Raw, structs

from sidecar.engine.calls import IncomingMessage, IngestOutcome
from sidecar.messages.fence import OPENING_BYTES
from sidecar.protocol.base import ABSENT, FallbackFor
from sidecar.protocol.context import (
    IngestBatchContextParams,
    IngestBatchContextResult,
    IngestContextParams,
    IngestContextResult,
)
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.router import PENDING, Call, Order, Pending, Router
from sidecar.server.engines.instance import LEGACY, EngineInstance
from sidecar.server.engines.session import EngineSession
from sidecar.server.failures import EngineFailed, to_rpc_error
from sidecar.server.sessions.intake import ingest_or_store, ingest_together, timestamp
from sidecar.server.sessions.timeline import SessionTimeline
from sidecar.server.sidecar import Sidecar
from sidecar.store.stored import NewMessage
from sidecar.store.writes import Append, AppendResult

if TYPE_CHECKING:
    from sidecar.messages.contract import Role
    from sidecar.server.sessions.live import LiveSession


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


def stores_directly(instance: EngineInstance) -> bool:
    """True where the engine leaves ingesting to the store, so that no coroutine is needed."""
    return instance.stores


class IngestHandlers:
    """Messages of an engine that stores go straight to the writer; the answer follows the commit."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    def ingest(
        self, params: IngestContextParams, call: Call
    ) -> Pending | IngestContextResult | Coroutine[object, object, IngestContextResult]:
        """Store one message."""
        stamp = timestamp(params.timestamp)
        instance = self._sidecar.engines.known(params.session_id, params.agent_id)
        raw = bytes(params.message)
        if instance is None or not stores_directly(instance) or OPENING_BYTES in raw:
            return self._ingest_by_engine(params, stamp)
        new = self._sidecar.intake.read(
            raw,
            path="/message",
            message_id=params.message_id,
            turn_id=params.turn_id,
            timestamp_ms=stamp,
            heartbeat=bool(params.is_heartbeat),
        )
        display = self._display(instance, raw, new.role)
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
        instance, snapshot = await self._sidecar.engines.begin(
            params.session_id, params.agent_id, params.session_key
        )
        live = await self._sidecar.sessions.open(params.session_id, params.agent_id, snapshot)
        session = self._session(instance, live, params)
        ours = await self._sidecar.intake.mark(session.live, message.raw)
        display = None if ours else self._display(instance, message.raw, new.role)
        outcome, fallback_for = await ingest_or_store(
            self._sidecar.runner, self._sidecar.intake, instance, "context/ingest", session, message
        )
        if outcome.ingested and not (session.live.head and session.live.head.message_count):
            await self._sidecar.episodes.session_began(instance, session.live)
        if not outcome.message_id:
            outcome = structs.replace(
                outcome, message_id=self._sidecar.intake.name(message.raw, params.message_id)
            )
        return _result(outcome, display, fallback_for)

    def _display(self, instance: EngineInstance, raw: bytes, role: str) -> bytes | None:
        """What users should see of a message, where its engine changes that.

        Raises:
            EngineFailed: the engine raised.
        """
        try:
            return instance.engine.display(raw, cast("Role", role), self._sidecar.dialect)
        except Exception as error:
            _log.exception("engine %s failed in display", instance.id)
            raise EngineFailed(instance.id, "context/ingest", type(error).__name__) from error

    def ingest_batch(
        self, params: IngestBatchContextParams, call: Call
    ) -> Pending | Coroutine[object, object, IngestBatchContextResult]:
        """Store several messages, all or none."""
        ids = params.message_ids
        if ids is not None and len(ids) != len(params.messages):
            raise InvalidParams(
                f"messageIds: {len(ids)} ids for {len(params.messages)} messages", path="/messageIds"
            )
        instance = self._sidecar.engines.known(params.session_id, params.agent_id)
        fenced = any(OPENING_BYTES in bytes(message) for message in params.messages)
        if instance is None or not stores_directly(instance) or fenced:
            return self._batch_by_engine(params, call)
        write = self._batch(params)
        known: list[str | None] = [None] * len(params.messages)
        call.on_cancel = partial(self._sidecar.store.withdraw, write)
        self._sidecar.store.submit(write, partial(self._batch_stored, call, known))
        return PENDING

    def _batch(self, params: IngestBatchContextParams) -> Append:
        """The write for a batch."""
        ids = params.message_ids or [None] * len(params.messages)
        heartbeat = bool(params.is_heartbeat)
        read = [
            self._sidecar.intake.read(
                bytes(raw), path=f"/messages/{i}", message_id=message_id, heartbeat=heartbeat
            )
            for i, (raw, message_id) in enumerate(zip(params.messages, ids, strict=True))
        ]
        return self._sidecar.intake.append(params.session_id, read, params.agent_id, params.session_key)

    def _batch_stored(self, call: Call, known: list[str | None], write: Append) -> None:
        if write.error is not None:
            call.fail(to_rpc_error(write.error, write.ref.session_id))
        else:
            call.reply(_batch_result(write, known))

    async def _batch_by_engine(
        self, params: IngestBatchContextParams, call: Call
    ) -> IngestBatchContextResult:
        instance, snapshot = await self._sidecar.engines.begin(
            params.session_id, params.agent_id, params.session_key
        )
        live = await self._sidecar.sessions.open(params.session_id, params.agent_id, snapshot)
        ids = params.message_ids or [None] * len(params.messages)
        write = self._batch(params)
        ours = [await self._sidecar.intake.mark(live, bytes(raw)) for raw in params.messages]
        known = [mark and (own or mark.ref) for mark, own in zip(ours, ids, strict=True)]
        write.messages = [m for m, mark in zip(write.messages, ours, strict=True) if mark is None]
        if stores_directly(instance):
            result: AppendResult = await self._sidecar.store.write(write)
            if result.head.message_count == sum(item.stored for item in result.items):
                await live.refresh()
                await self._sidecar.episodes.session_began(instance, live)
            return _batch_result(write, known)
        if instance.id == LEGACY:
            ids = params.message_ids or [None] * len(known)
            name = self._sidecar.intake.name
            named = [name(bytes(raw), id) for raw, id in zip(params.messages, ids, strict=True)]
            return IngestBatchContextResult(ingested_count=0, message_ids=named)
        handle = self._session(instance, live, params)
        messages = write.messages
        fallbacks: list[FallbackFor] = []

        async def ingest(session: EngineSession, message: IncomingMessage) -> IngestOutcome:
            outcome, fallback_for = await ingest_or_store(
                self._sidecar.runner, self._sidecar.intake, instance, "context/ingestBatch", session, message
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
            message_ids=[
                self._sidecar.intake.name(bytes(raw), own if own is not None else next(ids))
                for own, raw in zip(known, params.messages, strict=True)
            ],
            fallback_for=fallbacks[0] if fallbacks else None,
        )

    def _session(
        self,
        instance: EngineInstance,
        live: LiveSession,
        params: IngestContextParams | IngestBatchContextParams,
    ) -> EngineSession:
        count = live.head.message_count if live.head and instance.id != LEGACY else 0
        return EngineSession(
            live,
            SessionTimeline(self._sidecar.store, live.ref, live.stored, count),
            instance.id,
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
