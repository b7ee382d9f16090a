"""Takes messages in: reads and stores single ones, and several all or none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from sidecar.engine.calls import IncomingMessage, IngestOutcome
from sidecar.messages.contract import Mark, MessageError
from sidecar.messages.fence import OPENING_BYTES
from sidecar.messages.identity import keys, reuses_id, same_text, stub_refs
from sidecar.protocol.times import parse_rfc3339
from sidecar.rpc.errors import InvalidParams
from sidecar.server.engines.session import EngineSession, Slot
from sidecar.store.stored import Appended, NewMessage, StoredMessage
from sidecar.store.writes import Append, AppendResult

if TYPE_CHECKING:
    from sidecar.messages.contract import Dialect
    from sidecar.protocol.base import FallbackFor
    from sidecar.server.engines.instance import EngineInstance
    from sidecar.server.engines.runner import EngineRunner
    from sidecar.server.host_mistakes import DialectWatch
    from sidecar.server.profile import Host
    from sidecar.server.sessions.live import LiveSession
    from sidecar.store.contract import SessionStore


Ingest = Callable[[EngineSession, IncomingMessage], Awaitable[IngestOutcome]]
Store = Callable[[list[NewMessage]], Awaitable[AppendResult]]
Tell = Callable[[NewMessage, int, AppendResult], IngestOutcome]

SYNTHETIC = "synthetic"
DUPLICATE = "duplicate"
CONFLICT = "conflict"


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


class Intake:
    """Reads and stores single messages of one connection."""

    def __init__(self, host: Host, store: SessionStore, dialect: Dialect, watch: DialectWatch) -> None:
        self._host = host
        self._store = store
        self._read = dialect.read
        self._glance = dialect.glance
        self._look = watch.look

    def read(
        self,
        raw: bytes,
        *,
        path: str,
        message_id: str | None = None,
        turn_id: str | None = None,
        timestamp_ms: int | None = None,
        heartbeat: bool = False,
    ) -> NewMessage:
        """The message as the store takes it, whoever made it; `mark` tells whether it is one of our own.

        Raises:
            InvalidParams: it is no message; `path` is its place in the params.
        """
        try:
            glance = self._glance(raw)
            self._look(raw)
        except MessageError as error:
            name = path[1:].replace("/", "[", 1) + "]" if path.count("/") > 1 else path[1:]
            raise InvalidParams(f"{name}: {error.reason}", path=path + error.pointer) from None
        return NewMessage(
            body=raw,
            role=glance.role,
            opens_turn=glance.opens_turn and not heartbeat,
            message_id=message_id,
            inner_id=glance.inner_id,
            timestamp_ms=glance.timestamp_ms if timestamp_ms is None else timestamp_ms,
            heartbeat=heartbeat,
            turn_id=turn_id,
        )

    async def mark(self, live: LiveSession, raw: bytes) -> Mark | None:
        """The mark of a message that is ours, or made of stored ones and stubs for parts of them.

        Raises:
            MessageError: it is no message.
        """
        if OPENING_BYTES not in raw:
            return None
        reading = live.dialect.read(raw)
        stubs = stub_refs(reading)
        if not stubs:
            return reading.mark
        from sidecar.server.sessions.transcript import has_wholes

        return Mark("stub", stubs[0]) if await has_wholes(live, reading) else None

    def outcome(self, item: Appended, raw: bytes) -> IngestOutcome:
        """What the host is told about a message that was handed to the store."""
        if item.stored:
            return IngestOutcome(ingested=True, message_id=item.message_id, turn_id=item.turn_id)
        same = item.existing is None or item.existing == raw
        if not same and item.existing is not None:
            read = self._read
            same = same_text(read(item.existing), read(raw))
        return IngestOutcome(
            ingested=False,
            message_id=item.message_id,
            turn_id=item.turn_id,
            reason=DUPLICATE if same else CONFLICT,
        )

    def anew(self, items: Sequence[Appended], messages: Sequence[NewMessage]) -> list[NewMessage]:
        """Messages that were taken for known ones by an id inside them that their provider uses again."""
        read = self._read
        return [
            structs.replace(message, inner_id=None)
            for item, message in zip(items, messages, strict=True)
            if item.existing is not None
            and message.inner_id is not None
            and item.existing != message.body
            and reuses_id(read(item.existing), read(message.body))
        ]

    def name(self, raw: bytes, given: str | None = None) -> str:
        """An id for a message that is not stored: the host's, the one inside, or one made of what it says."""
        if given:
            return given
        from sidecar.server.sessions.timeline import made_up_name

        reading = self._read(raw)
        return reading.inner_id or made_up_name(reading, keys(reading))

    async def store(self, session: EngineSession, message: IncomingMessage) -> IngestOutcome:
        """Store one message for an engine; returns once it is durable."""
        new = self.read(
            message.raw,
            path="/message",
            message_id=message.message_id,
            turn_id=message.turn_id,
            timestamp_ms=message.timestamp_ms,
            heartbeat=message.heartbeat,
        )
        if mark := await self.mark(session.live, message.raw):
            return synthetic(mark, message.message_id)
        slot, session.slot = session.slot, None
        if slot is not None:
            session.stored = await slot.store(new)
            return session.stored
        write = self.append(session.session_id, [new], session.agent_id, session.session_key)
        result = await self._store.write(write)
        session.stored = self.outcome(result.items[0], message.raw)
        return session.stored

    def told(self, result: AppendResult, index: int, raw: bytes) -> IngestOutcome:
        """What the host is told about the message at an index of a write."""
        if result.duplicate:
            return IngestOutcome(ingested=False, message_id=self.name(raw), reason=DUPLICATE)
        return self.outcome(result.items[index], raw)

    def append(
        self,
        session_id: str,
        messages: list[NewMessage],
        agent_id: str | None,
        session_key: str | None,
        advancement_key: str | None = None,
    ) -> Append:
        """The write that stores messages in a session of this connection."""
        return Append(
            self._host.ref(session_id),
            messages,
            message_format=self._host.message_format,
            agent_id=agent_id,
            session_key=session_key,
            advancement_key=advancement_key,
        )


def synthetic(mark: Mark, message_id: str | None) -> IngestOutcome:
    """What the host is told when it hands a message of ours back."""
    return IngestOutcome(ingested=False, message_id=message_id or mark.ref, reason=SYNTHETIC)


def timestamp(text: str | None, path: str = "/timestamp") -> int | None:
    """Milliseconds of an RFC 3339 member of the params.

    Raises:
        InvalidParams: it is none.
    """
    if text is None:
        return None
    try:
        return parse_rfc3339(text)
    except ValueError as error:
        raise InvalidParams(f"{path[1:]}: {error}", path=path) from None


async def ingest_or_store(
    runner: EngineRunner,
    intake: Intake,
    instance: EngineInstance,
    method: str,
    session: EngineSession,
    message: IncomingMessage,
) -> tuple[IngestOutcome, FallbackFor | None]:
    """What an engine makes of a message; where it fails and something may stand in, the store takes it."""

    async def stored() -> IngestOutcome:
        return session.stored or await intake.store(session, message)

    work = instance.engine.ingest(instance.session_for(session), message)
    return await runner.run_or_fall_back(
        instance, method, work, session.session_id, stored, result=IngestOutcome
    )
