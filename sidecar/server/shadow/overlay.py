"""A store whose reads are those of another one, and whose writes nobody else ever sees."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, field

from sidecar.server.sessions.live import EPOCH
from sidecar.store.contract import SessionStore
from sidecar.store.stored import Appended, SessionHead, SessionRef, SessionSettings, SummaryNode
from sidecar.store.writes import AddSummary, Append, AppendResult, SaveState, Write

KEPT_SESSIONS = 256
"""Sessions whose values and summaries are remembered; of others a shadow begins anew."""
OWN = ("engine.", EPOCH, "stubs")
"""Beginnings of the names of values that a shadow has for itself; the others it reads as they are."""


class _Written(Struct):
    uid: int | None = None
    values: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    nodes: dict[str, SummaryNode] = field(default_factory=dict[str, SummaryNode])


class OverlayStore:
    """See `sidecar.store.contract.SessionStore`; what is not here is asked of the store below."""

    def __init__(self, below: SessionStore) -> None:
        self._below = below
        self._sessions: OrderedDict[SessionRef, _Written] = OrderedDict()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._below, name)

    async def close(self) -> None:
        """Forget everything; the store below stays open."""
        self._sessions.clear()

    def submit(self, write: Write, done: Callable[[Any], None]) -> None:
        """Take a write, or pass over it."""
        task = asyncio.ensure_future(self.write(write))
        task.add_done_callback(lambda _: done(write))

    def withdraw(self, write: Write) -> bool:
        """A write cannot be taken back."""
        del write
        return False

    async def write(self, write: Write) -> Any:
        """What the write would have come to."""
        write.error = None
        match write:
            case SaveState():
                self._of(write.ref).values[write.name] = write.value
                write.result = None
            case AddSummary():
                head = await self.session(write.ref)
                write.result = head is not None and head.revision == write.revision
                if write.result:
                    nodes = self._of(write.ref).nodes
                    for replaced in write.replaces:
                        nodes.pop(replaced, None)
                    nodes[write.node.node_id] = write.node
            case Append():
                write.result = await self._appended(write)
            case _:
                write.result = None
        return write.result

    async def session(self, ref: SessionRef) -> SessionHead | None:
        """The head below; what was written for another session of that name is forgotten."""
        head = await self._below.session(ref)
        written = self._sessions.get(ref)
        if written is not None and head is not None:
            if written.uid not in (None, head.uid):
                del self._sessions[ref]
            else:
                written.uid = head.uid
        return head

    async def state(self, ref: SessionRef, name: str) -> bytes | None:
        """A value that was written here, else one below that is not of engines."""
        written = self._sessions.get(ref)
        if written is not None and name in written.values:
            return written.values[name]
        return None if name.startswith(OWN) else await self._below.state(ref, name)

    async def settings(self, namespace: str, scope: str, scope_id: str) -> SessionSettings:
        """Nothing: the same engine serves all sessions."""
        del namespace, scope, scope_id
        return SessionSettings(None, None)

    async def summaries(self, ref: SessionRef) -> list[SummaryNode]:
        """The summaries that were written here."""
        written = self._sessions.get(ref)
        nodes = written.nodes.values() if written is not None else ()
        return sorted(nodes, key=lambda node: (node.first_position, node.depth))

    async def summary_nodes(self, ref: SessionRef, node_ids: Sequence[str]) -> list[SummaryNode]:
        """Those of these ids."""
        wanted = set(node_ids)
        return [node for node in await self.summaries(ref) if node.node_id in wanted]

    async def _appended(self, write: Append) -> AppendResult:
        """What the store below has already of the messages, as if it had been stored now."""
        head = await self._below.session(write.ref)
        items: list[Appended] = []
        for message in write.messages:
            known = await self._below.message(write.ref, message.message_id) if message.message_id else None
            place, turn_id = (known.position, known.turn_id) if known else (0, message.turn_id or "t1")
            items.append(Appended(message.message_id or "", turn_id, place, True, None))
        return AppendResult(items, False, head or _nobody(write))

    def _of(self, ref: SessionRef) -> _Written:
        written = self._sessions.setdefault(ref, _Written())
        self._sessions.move_to_end(ref)
        if len(self._sessions) > KEPT_SESSIONS:
            self._sessions.popitem(last=False)
        return written


def _nobody(write: Append) -> SessionHead:
    """The head of a session that is not there."""
    return SessionHead(
        ref=write.ref,
        uid=0,
        agent_id=write.agent_id,
        session_key=write.session_key,
        message_format=write.message_format,
        message_count=0,
        turn_count=0,
        revision=0,
        created_ms=0,
        updated_ms=0,
    )
