"""Sessions in a memory store, as engines and the guard see them."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any, TypeVar

from sidecar.engine.guard.answer import Guard
from sidecar.messages.contract import Dialect, Reading
from sidecar.messages.dialects import dialect as dialect_of
from sidecar.messages.marks import Marks
from sidecar.server.sessions.timeline import SessionTimeline, StoredEntries
from sidecar.store.sqlite.memory import MemoryStore
from sidecar.store.stored import NewMessage, SessionRef
from sidecar.store.writes import Append
from sidecar.tokens.estimate import EstimateCounter
from sidecar.tokens.message_cost import message_tokens

_T = TypeVar("_T")

LIMIT_S = 30
REF = SessionRef("unit", "s")
COUNTER = EstimateCounter()
TEST_KEY = b"context-engine-protocol test key"
"""The published key of the vectors."""
MARKS = Marks([TEST_KEY], REF.root)


def cost(reading: Reading) -> int:
    """Tokens of a message, as the sidecar counts them."""
    return message_tokens(reading, COUNTER)


class Told:
    """A session with the given messages."""

    def __init__(self, dialect: str, messages: Sequence[bytes], heartbeats: Collection[int] = ()) -> None:
        self.dialect: Dialect = dialect_of(dialect).marked(MARKS)
        self.guard = Guard(self.dialect, cost, COUNTER.count)
        self._messages = messages
        self._heartbeats = heartbeats

    def run(self, work: Callable[[SessionTimeline], Coroutine[Any, Any, _T]]) -> _T:
        """What a coroutine function makes of the session's timeline."""
        return asyncio.run(asyncio.wait_for(self._run(work), LIMIT_S))

    async def _run(self, work: Callable[[SessionTimeline], Coroutine[Any, Any, _T]]) -> _T:
        store = MemoryStore()
        await store.open()
        new = [self._new(raw, heartbeat=i in self._heartbeats) for i, raw in enumerate(self._messages)]
        await store.write(Append(REF, new, message_format=self.dialect.name))
        stored = StoredEntries(store, REF, self.dialect, cost)
        head = await store.session(REF)
        assert head is not None
        await stored.follow(head)
        try:
            return await work(SessionTimeline(store, REF, stored, head.message_count))
        finally:
            await store.close()

    def _new(self, raw: bytes, *, heartbeat: bool) -> NewMessage:
        reading = self.dialect.read(raw)
        return NewMessage(
            body=raw,
            role=reading.role,
            opens_turn=reading.opens_turn and not heartbeat,
            inner_id=None,
            timestamp_ms=reading.timestamp_ms,
            heartbeat=heartbeat,
        )
