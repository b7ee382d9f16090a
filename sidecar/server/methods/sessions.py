"""`session/*`: lists, reads, changes and pins stored sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

from msgspec import Raw, json

from sidecar.messages.dialects import dialect_of_family
from sidecar.messages.marks import issued
from sidecar.protocol.engine import ListChangedToolsParams
from sidecar.protocol.session import (
    ConfigureSessionParams,
    ConfigureSessionResult,
    DeleteSessionParams,
    DeleteSessionResult,
    ExportedMessage,
    ExportSessionParams,
    ExportSessionResult,
    ForkSessionParams,
    ForkSessionResult,
    GetSessionParams,
    GetSessionResult,
    ListSessionParams,
    ListSessionResult,
    Pin,
    PinSessionParams,
    PinSessionResult,
    PinsSessionParams,
    PinsSessionResult,
    SessionEntry,
    SessionImport,
    SummariesSessionParams,
    SummariesSessionResult,
    SummaryNode,
    TruncateSessionParams,
    TruncateSessionResult,
    UnpinSessionParams,
    UnpinSessionResult,
)
from sidecar.protocol.times import format_rfc3339
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.router import Call, Order, Router
from sidecar.server.engines.session import state_name
from sidecar.server.failures import EngineUnavailable, SettingsWrong
from sidecar.server.methods.lanes import OfSession, session_lane
from sidecar.server.sessions.live import IMPORT_STATE, LiveSession
from sidecar.server.sessions.pins import add_pin, load_pins, remove_pin
from sidecar.server.sessions.reconcile import claim_anew
from sidecar.server.sidecar import Sidecar
from sidecar.store.admission import is_foreign
from sidecar.store.stored import SessionHead, SessionRef, SessionSettings
from sidecar.store.writes import Adopt, Configure, Delete, Fork, Truncate

PAGE = 100
"""Sessions on a page where the request names no limit."""
EXPORT_PAGE = 200
"""Messages on a page of an export."""
EXPORT_BYTES = 8 << 20
"""Bytes of messages after which a page of an export ends."""
RECEIPTS = "receipts"
KEEPING = ("lossless",)
"""Engines that keep what their compactions did, in a value of that name: a JSON array."""


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve the methods around stored sessions."""
    reading, changing = SessionHandlers(sidecar), SessionChangeHandlers(sidecar)
    summaries, pins = SummaryHandlers(sidecar), PinHandlers(sidecar)

    def alone(params: OfSession) -> str | Sequence[str]:
        return sidecar.lanes.changing(params.session_id)

    router.request("session/list", ListSessionParams, reading.list)
    router.request("session/get", GetSessionParams, reading.get, order=Order.EXCLUSIVE, lane=session_lane)
    router.request(
        "session/export", ExportSessionParams, reading.export, order=Order.EXCLUSIVE, lane=session_lane
    )
    router.request(
        "session/summaries",
        SummariesSessionParams,
        summaries.summaries,
        order=Order.EXCLUSIVE,
        lane=session_lane,
    )
    router.request("session/pin", PinSessionParams, pins.pin, order=Order.EXCLUSIVE, lane=session_lane)
    router.request("session/unpin", UnpinSessionParams, pins.unpin, order=Order.EXCLUSIVE, lane=session_lane)
    router.request("session/pins", PinsSessionParams, pins.pins, order=Order.EXCLUSIVE, lane=session_lane)
    router.request(
        "session/configure",
        ConfigureSessionParams,
        changing.configure,
        order=Order.EXCLUSIVE,
        lane=lambda p: p.session_id,
    )
    router.request(
        "session/truncate", TruncateSessionParams, changing.truncate, order=Order.EXCLUSIVE, lane=alone
    )
    router.request(
        "session/fork",
        ForkSessionParams,
        changing.fork,
        order=Order.EXCLUSIVE,
        lane=lambda p: sidecar.lanes.changing(p.session_id, p.new_session_id),
    )
    router.request("session/delete", DeleteSessionParams, changing.delete, order=Order.EXCLUSIVE, lane=alone)


class SessionHandlers:
    """Reads sessions without an engine."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def list(self, params: ListSessionParams, call: Call) -> ListSessionResult:
        """One page of sessions, latest change first."""
        del call
        try:
            heads, cursor = await self._sidecar.store.sessions(
                self._sidecar.host.namespace, params.limit or PAGE, params.cursor, params.agent_id
            )
        except ValueError as error:
            raise InvalidParams(f"cursor: {error}", path="/cursor") from None
        return ListSessionResult(
            sessions=[SessionEntry(**await self._facts(head)) for head in heads], next_cursor=cursor
        )

    async def get(self, params: GetSessionParams, call: Call) -> GetSessionResult:
        """The short facts of one session."""
        del call
        head = await self._sidecar.sessions.stored_head(params.session_id, params.agent_id)
        return GetSessionResult(
            **await self._facts(head),
            agent_id=head.agent_id,
            turn_count=head.turn_count,
            importing=await self._importing(head),
        )

    async def export(self, params: ExportSessionParams, call: Call) -> ExportSessionResult:
        """One page of the stored messages, byte for byte."""
        del call
        head = await self._sidecar.sessions.stored_head(params.session_id, params.agent_id)
        first = self._position(params.cursor, head)
        last = min(first + EXPORT_PAGE - 1, head.message_count)
        messages: list[ExportedMessage] = []
        size, at = 0, first - 1
        reader = dialect_of_family(head.message_format, self._sidecar.store.secrets, head.root)
        for stored in await self._sidecar.store.messages(head.ref, first, last):
            size += len(stored.body)
            if messages and size > EXPORT_BYTES:
                break
            at = stored.position
            messages.append(
                ExportedMessage(
                    message_id=stored.message_id,
                    turn_id=stored.turn_id,
                    timestamp=format_rfc3339(stored.timestamp_ms),
                    message=Raw(stored.body),
                    issued=issued(reader, stored.body) or None,
                )
            )
        return ExportSessionResult(
            session_id=params.session_id,
            message_format=cast(Any, head.message_format),
            messages=messages,
            next_cursor=f"{head.uid}-{head.revision}-{at + 1}"
            if at < head.message_count and messages
            else None,
        )

    def _position(self, cursor: str | None, head: SessionHead) -> int:
        if cursor is None:
            return 1
        parts = cursor.split("-")
        if len(parts) != 3 or not all(p.isascii() and p.isdigit() and len(p) < 19 for p in parts):
            raise InvalidParams("cursor: it is not one of ours", path="/cursor")
        uid, revision, position = map(int, parts)
        if (uid, revision) != (head.uid, head.revision):
            raise InvalidParams(
                "cursor: the history has changed since", path="/cursor", hint="start again without a cursor"
            )
        return max(position, 1)

    async def _importing(self, head: SessionHead) -> SessionImport | None:
        value = await self._sidecar.store.state(head.ref, IMPORT_STATE)
        if value is None:
            return None
        runs = head.ref.session_id in self._sidecar.importing
        return SessionImport(state="running" if runs else "interrupted", total=int(value))

    async def _facts(self, head: SessionHead) -> dict[str, Any]:
        return {
            "session_id": head.ref.session_id,
            "session_key": head.session_key,
            "engine": await self._engine(head),
            "message_format": head.message_format,
            "message_count": head.message_count,
            "created_at": format_rfc3339(head.created_ms),
            "updated_at": format_rfc3339(head.updated_ms),
        }

    async def _engine(self, head: SessionHead) -> str:
        """The engine that serves a session, or that would if it could be loaded."""
        sidecar = self._sidecar
        try:
            return (await sidecar.engines.of(head.ref.session_id, head.agent_id)).id
        except EngineUnavailable as error:
            return error.engine_id


class SessionChangeHandlers:
    """Changes sessions in the store; what is cached of them follows."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def configure(self, params: ConfigureSessionParams, call: Call) -> ConfigureSessionResult:
        """Switch engine or settings for a session or an agent, from the next call on."""
        del call
        sidecar = self._sidecar
        scope: Literal["session", "agent"] = "session" if params.session_id is not None else "agent"
        scope_id = params.session_id if params.session_id is not None else params.agent_id
        if scope_id is None:
            raise InvalidParams("one of sessionId and agentId is needed", path="/sessionId")
        config = _object(params.config)
        before = await self._configured(params)
        default = await self._inherited(params)
        engine = params.engine or before.engine or default
        if config is None and before.config and engine != (before.engine or default):
            config = await self._fitting(engine, before.config)
        try:
            await sidecar.registry.check(engine, config if config is not None else before.config)
        except SettingsWrong as error:
            if config is None:
                raise
            setting, _, reason = str(error).removeprefix(f"plugins.entries.{engine}.").partition(": ")
            raise InvalidParams(f"{setting}: {reason}", path="/" + setting.replace(".", "/")) from None
        if params.engine is not None or config is not None:
            await sidecar.store.write(
                Configure(
                    sidecar.host.namespace,
                    scope,
                    scope_id,
                    engine=params.engine,
                    config=config,
                    agent_id=params.agent_id,
                )
            )
            sidecar.engines.forget()
            if params.session_id is not None:
                self._sidecar.session_changed(params.session_id, "configured", params.agent_id)
        now = await self._configured(params)
        if (now.engine or default) != (before.engine or default):
            sidecar.host.peer.notify(
                "tools/listChanged", ListChangedToolsParams(session_id=params.session_id)
            )
        return ConfigureSessionResult(engine=now.engine or default, config=Raw(now.config or b"{}"))

    async def truncate(self, params: TruncateSessionParams, call: Call) -> TruncateSessionResult:
        """Rewind a session to a message."""
        del call
        sidecar = self._sidecar
        ref = sidecar.host.ref(params.session_id)
        removed = await sidecar.store.write(Truncate(ref, params.after_message_id, agent_id=params.agent_id))
        if removed:
            sidecar.sessions.rewound(params.session_id)
            await claim_anew(sidecar.store, ref)
            self._sidecar.session_changed(params.session_id, "truncated")
        return TruncateSessionResult(removed_messages=removed)

    async def fork(self, params: ForkSessionParams, call: Call) -> ForkSessionResult:
        """Begin a new session with the messages of another."""
        del call
        sidecar = self._sidecar
        head = await sidecar.store.write(
            Fork(
                sidecar.host.ref(params.session_id),
                sidecar.host.ref(params.new_session_id),
                params.at_message_id,
                agent_id=params.agent_id,
            )
        )
        await claim_anew(sidecar.store, head.ref)
        sidecar.sessions.forget(params.new_session_id)
        sidecar.engines.forget()
        return ForkSessionResult(session_id=params.new_session_id, message_count=head.message_count)

    async def delete(self, params: DeleteSessionParams, call: Call) -> DeleteSessionResult:
        """Erase a session with all that belongs to it."""
        del call
        sidecar = self._sidecar
        owner = await sidecar.sessions.owner(params.session_id, params.agent_id)
        ref = sidecar.host.ref(params.session_id)
        deleted = await sidecar.store.write(Delete(ref, agent_id=params.agent_id))
        sidecar.engines.forget()
        if is_foreign(owner, params.agent_id):
            return DeleteSessionResult(deleted=False)
        sidecar.sessions.forget(params.session_id)
        if deleted:
            await sidecar.episodes.forget(params.session_id)
            self._sidecar.session_changed(params.session_id, "deleted")
        return DeleteSessionResult(deleted=deleted)

    async def _configured(self, params: ConfigureSessionParams) -> SessionSettings:
        """What is set already: another agent's session is as one that is not there."""
        engines = self._sidecar.engines
        if params.session_id is None:
            return await engines.set_for_agent(params.agent_id or "")
        snapshot = await self._sidecar.sessions.snapshot(params.session_id, params.agent_id)
        return engines.set_for(params.session_id, params.agent_id, snapshot)

    async def _inherited(self, params: ConfigureSessionParams) -> str:
        """The engine of a session, or agent, for which none is configured."""
        sidecar = self._sidecar
        if params.session_id is not None:
            agent_id = params.agent_id or await sidecar.sessions.owner(params.session_id, None)
            agents = await sidecar.engines.set_for_agent(agent_id) if agent_id else None
            if agents and agents.engine:
                return agents.engine
        return sidecar.registry.default_id

    async def _fitting(self, engine: str, config: bytes) -> bytes | None:
        """What replaces settings that were made for another engine: nothing where they are right for this."""
        try:
            await self._sidecar.registry.check(engine, config)
        except EngineUnavailable:
            return b"{}"
        return None


def _object(raw: Raw) -> bytes | None:
    """The bytes of a JSON object, `None` where it is absent.

    Raises:
        InvalidParams: it is something else.
    """
    given = bytes(raw)
    if given in (b"", b"null"):
        return None
    value: Any = json.decode(given)
    if not isinstance(value, dict):
        raise InvalidParams("config: expected an object", path="/config")
    return given


class SummaryHandlers:
    """Reads summaries from the store, whichever engine wrote them."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def summaries(self, params: SummariesSessionParams, call: Call) -> SummariesSessionResult:
        """Every summary, in the order of what it covers, deeper ones first."""
        del call
        ref = self._sidecar.host.ref(params.session_id)
        await self._sidecar.sessions.stored_head(params.session_id, params.agent_id)
        nodes = await self._sidecar.store.summaries(ref)
        ids: dict[int, str] = {}
        listed: list[SummaryNode] = []
        for node in sorted(nodes, key=lambda node: (node.first_position, -node.depth)):
            for position in (node.first_position, node.last_position):
                if position not in ids:
                    ids[position] = await self._message_id(ref, position)
            listed.append(
                SummaryNode(
                    node_id=node.node_id,
                    depth=node.depth,
                    text=node.text,
                    tokens=node.tokens,
                    quality=node.quality,
                    created_at=format_rfc3339(node.created_ms),
                    first_message_id=ids[node.first_position],
                    last_message_id=ids[node.last_position],
                    message_count=node.last_position - node.first_position + 1,
                    sources=list(node.sources),
                )
            )
        return SummariesSessionResult(summaries=listed, receipts=await self._receipts(ref) or None)

    async def _receipts(self, ref: SessionRef) -> list[Raw]:
        """What the compactions of the engines that keep receipts did, also where another serves by now."""
        kept = [await self._sidecar.store.state(ref, state_name(engine, RECEIPTS)) for engine in KEEPING]
        return [receipt for value in kept if value for receipt in json.decode(value, type=list[Raw])]

    async def _message_id(self, ref: SessionRef, position: int) -> str:
        return next((m.message_id for m in await self._sidecar.store.keyed(ref, position, position)), "")


class PinHandlers:
    """Keeps pins in the store; the guard of every answer reads them there."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def pin(self, params: PinSessionParams, call: Call) -> PinSessionResult:
        """Keep a message or a text through every compaction."""
        del call
        live = await self._session(params.session_id, params.agent_id)
        if params.message_id is not None:
            if await live.store.message(live.ref, params.message_id) is None:
                raise InvalidParams(
                    f"messageId: the session has no message {params.message_id[:200]!r}", path="/messageId"
                )
        elif not (params.text or "").strip():
            raise InvalidParams("text: it is empty", path="/text")
        pin, new = await add_pin(live, message_id=params.message_id, text=params.text, note=params.note)
        if new:
            self._sidecar.session_changed(params.session_id, "pinned")
        return PinSessionResult(pin_id=pin.pin_id)

    async def unpin(self, params: UnpinSessionParams, call: Call) -> UnpinSessionResult:
        """Take a pin off."""
        del call
        live = await self._session(params.session_id, params.agent_id)
        unpinned = await remove_pin(live, params.pin_id)
        if unpinned:
            self._sidecar.session_changed(params.session_id, "unpinned")
        return UnpinSessionResult(unpinned=unpinned)

    async def pins(self, params: PinsSessionParams, call: Call) -> PinsSessionResult:
        """Every pin, oldest first."""
        del call
        live = await self._session(params.session_id, params.agent_id, changes=False)
        return PinsSessionResult(
            pins=[
                Pin(
                    pin_id=pin.pin_id,
                    message_id=pin.message_id,
                    text=pin.text,
                    note=pin.note,
                    created_at=format_rfc3339(pin.created_ms),
                )
                for pin in await load_pins(live)
            ]
        )

    async def _session(self, session_id: str, agent_id: str | None, *, changes: bool = True) -> LiveSession:
        """The session, in whatever dialect it is; who changes it makes it its own.

        Raises:
            SessionMissing: it is not there, or another agent's.
        """
        sidecar = self._sidecar
        head = await sidecar.sessions.stored_head(session_id, agent_id)
        if changes and head.agent_id is None and agent_id is not None:
            await sidecar.store.write(Adopt(head.ref, agent_id))
        cached = sidecar.sessions.cached(session_id)
        return cached or LiveSession(
            sidecar.store, sidecar.host.ref(session_id), sidecar.dialect, sidecar.counter
        )
