"""Takes single messages in: what is read of them, and what the host is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from sidecar.engine.calls import IncomingMessage, IngestOutcome
from sidecar.messages.contract import Mark, MessageError
from sidecar.messages.fence import OPENING_BYTES
from sidecar.messages.identity import reuses_id, same_text, stands_for
from sidecar.protocol.times import parse_rfc3339
from sidecar.rpc.errors import InvalidParams
from sidecar.store.stored import Appended, NewMessage
from sidecar.store.writes import Append, AppendResult

if TYPE_CHECKING:
    from sidecar.server.engine_session import EngineSession
    from sidecar.server.sidecar import Sidecar

SYNTHETIC = "synthetic"
DUPLICATE = "duplicate"
CONFLICT = "conflict"


class Intake:
    """Reads and stores single messages of one connection."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._glance = sidecar.dialect.glance

    def read(
        self,
        raw: bytes,
        *,
        path: str,
        message_id: str | None = None,
        turn_id: str | None = None,
        timestamp_ms: int | None = None,
        heartbeat: bool = False,
    ) -> NewMessage | Mark:
        """The message as the store takes it, or its mark where it is one of our own.

        Raises:
            InvalidParams: it is no message; `path` is its place in the params.
        """
        try:
            if OPENING_BYTES in raw and (mark := self._mark(raw)):
                return mark
            glance = self._glance(raw)
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

    def outcome(self, item: Appended, raw: bytes) -> IngestOutcome:
        """What the host is told about a message that was handed to the store."""
        if item.stored:
            return IngestOutcome(ingested=True, message_id=item.message_id, turn_id=item.turn_id)
        same = item.existing is None or item.existing == raw
        if not same and item.existing is not None:
            read = self._sidecar.dialect.read
            same = same_text(read(item.existing), read(raw))
        return IngestOutcome(
            ingested=False,
            message_id=item.message_id,
            turn_id=item.turn_id,
            reason=DUPLICATE if same else CONFLICT,
        )

    def anew(self, items: Sequence[Appended], messages: Sequence[NewMessage]) -> list[NewMessage]:
        """Messages that were taken for known ones by an id inside them that their provider uses again."""
        read = self._sidecar.dialect.read
        return [
            structs.replace(message, inner_id=None)
            for item, message in zip(items, messages, strict=True)
            if item.existing is not None
            and message.inner_id is not None
            and item.existing != message.body
            and reuses_id(read(item.existing), read(message.body))
        ]

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
        if isinstance(new, Mark):
            return synthetic(new, message.message_id)
        slot, session.slot = session.slot, None
        if slot is not None:
            session.stored = await slot.store(new)
            return session.stored
        write = self.append(session.session_id, [new], session.agent_id, session.session_key)
        result = await self._sidecar.store.write(write)
        session.stored = self.outcome(result.items[0], message.raw)
        return session.stored

    def told(self, result: AppendResult, index: int, raw: bytes) -> IngestOutcome:
        """What the host is told about the message at an index of a write."""
        if result.duplicate:
            return IngestOutcome(ingested=False, reason=DUPLICATE)
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
            self._sidecar.ref(session_id),
            messages,
            message_format=self._sidecar.profile.message_format,
            agent_id=agent_id,
            session_key=session_key,
            advancement_key=advancement_key,
        )

    def _mark(self, raw: bytes) -> Mark | None:
        reading = self._sidecar.dialect.read(raw)
        if reading.mark is not None:
            return reading.mark
        ref = stands_for(reading)
        return Mark("stub", ref) if ref else None


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
