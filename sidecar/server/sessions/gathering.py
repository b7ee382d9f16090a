"""Lets an engine take in several messages of which the store then takes all or none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from sidecar.engine.calls import IncomingMessage, IngestOutcome
from sidecar.server.engine_session import EngineSession
from sidecar.store.stored import NewMessage, StoredMessage
from sidecar.store.writes import AppendResult

Ingest = Callable[[EngineSession, IncomingMessage], Awaitable[IngestOutcome]]
Store = Callable[[list[NewMessage]], Awaitable[AppendResult]]
Tell = Callable[[NewMessage, int, AppendResult], IngestOutcome]


class Slot:
    """Where one message waits until all have come to be stored."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.message: NewMessage | None = None
        self.waits: asyncio.Future[None] = loop.create_future()
        self.outcome: asyncio.Future[IngestOutcome] = loop.create_future()

    async def store(self, message: NewMessage) -> IngestOutcome:
        """What became of the message, once all of them are stored."""
        self.message = message
        self.waits.set_result(None)
        return await self.outcome


async def ingest_together(
    messages: Sequence[NewMessage],
    session: Callable[[], EngineSession],
    ingest: Ingest,
    store: Store,
    tell: Tell,
) -> list[IngestOutcome]:
    """What the engine makes of each message; if it fails at one of them, none is stored.

    `session` makes a handle for each message, `store` is called once, `tell` says what became of a message
    that stands at an index of what was stored.
    """
    slots: list[Slot] = []
    tasks: list[asyncio.Task[IngestOutcome]] = []
    try:
        for message in messages:
            slot, handle = Slot(), session()
            handle.slot = slot
            slots.append(slot)
            tasks.append(asyncio.ensure_future(_ingested(ingest, handle, message)))
            await asyncio.wait((tasks[-1], slot.waits), return_when=asyncio.FIRST_COMPLETED)
            if tasks[-1].done():
                tasks[-1].result()
        waiting = [i for i, slot in enumerate(slots) if slot.message is not None and not tasks[i].done()]
        result = await store([_placed(slots[i].message, messages[i]) for i in waiting])
        for n, i in enumerate(waiting):
            slots[i].outcome.set_result(tell(messages[i], n, result))
        return [await task for task in tasks]
    finally:
        for task in tasks:
            task.cancel()


def incoming(message: NewMessage | StoredMessage) -> IncomingMessage:
    """A message of the store as engines take it in."""
    return IncomingMessage(
        raw=message.body,
        message_id=message.message_id,
        turn_id=message.turn_id,
        timestamp_ms=message.timestamp_ms,
        heartbeat=message.heartbeat,
    )


async def _ingested(ingest: Ingest, session: EngineSession, message: NewMessage) -> IngestOutcome:
    return await ingest(session, incoming(message))


def _placed(given: NewMessage | None, message: NewMessage) -> NewMessage:
    """What the engine has handed over, in the place of the message that it was given."""
    assert given is not None
    given.after = message.after
    return given
