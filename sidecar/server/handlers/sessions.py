"""`session/list`, `session/get`, `session/export`: looking at sessions, in whatever dialect they are."""

from __future__ import annotations

from typing import Any, cast

from msgspec import Raw

from sidecar.protocol.session import (
    ExportedMessage,
    ExportSessionParams,
    ExportSessionResult,
    GetSessionParams,
    GetSessionResult,
    ListSessionParams,
    ListSessionResult,
    SessionEntry,
    SessionImport,
)
from sidecar.protocol.times import format_rfc3339
from sidecar.rpc.call import Call
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.router import Order, Router
from sidecar.server.handlers.lane import session_lane
from sidecar.server.seating import EngineUnavailable
from sidecar.server.sessions.live import IMPORT_STATE
from sidecar.server.sessions.registry import check_owner
from sidecar.server.sidecar import Sidecar
from sidecar.store.errors import SessionMissing
from sidecar.store.stored import SessionHead

PAGE = 100
"""Sessions on a page where the request names no limit."""
EXPORT_PAGE = 200
"""Messages on a page of an export."""
EXPORT_BYTES = 8 << 20
"""Bytes of messages after which a page of an export ends."""


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve the methods that look at sessions."""
    handlers = SessionHandlers(sidecar)
    router.request("session/list", ListSessionParams, handlers.list)
    router.request("session/get", GetSessionParams, handlers.get, order=Order.EXCLUSIVE, lane=session_lane)
    router.request(
        "session/export", ExportSessionParams, handlers.export, order=Order.EXCLUSIVE, lane=session_lane
    )


class SessionHandlers:
    """Reads sessions without an engine."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def list(self, params: ListSessionParams, call: Call) -> ListSessionResult:
        """One page of sessions, latest change first."""
        del call
        try:
            heads, cursor = await self._sidecar.store.sessions(
                self._sidecar.profile.namespace, params.limit or PAGE, params.cursor
            )
        except ValueError as error:
            raise InvalidParams(f"cursor: {error}", path="/cursor") from None
        if params.agent_id is not None:
            heads = [head for head in heads if head.agent_id in (None, params.agent_id)]
        return ListSessionResult(
            sessions=[SessionEntry(**await self._facts(head)) for head in heads], next_cursor=cursor
        )

    async def get(self, params: GetSessionParams, call: Call) -> GetSessionResult:
        """The short facts of one session."""
        del call
        head = await self.head(params.session_id, params.agent_id)
        return GetSessionResult(
            **await self._facts(head),
            agent_id=head.agent_id,
            turn_count=head.turn_count,
            importing=await self._importing(head),
        )

    async def export(self, params: ExportSessionParams, call: Call) -> ExportSessionResult:
        """One page of the stored messages, byte for byte."""
        del call
        head = await self.head(params.session_id, params.agent_id)
        first = self._position(params.cursor, head)
        last = min(first + EXPORT_PAGE - 1, head.message_count)
        messages: list[ExportedMessage] = []
        size, at = 0, first - 1
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

    async def head(self, session_id: str, agent_id: str | None) -> SessionHead:
        """The head of a session that this agent may see.

        Raises:
            SessionMissing: there is none.
        """
        head = await self._sidecar.store.session(self._sidecar.ref(session_id))
        if head is None:
            raise SessionMissing(f"there is no session {session_id!r}")
        check_owner(head, agent_id)
        return head

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
            return (await sidecar.seats.of(head.ref.session_id, head.agent_id)).id
        except EngineUnavailable as error:
            return error.engine_id
