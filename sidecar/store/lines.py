"""Sessions as lines of JSON, and messages from elsewhere put into a store."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec
from msgspec import Raw, Struct

from sidecar.store.contract import SessionStore
from sidecar.store.stored import NewMessage, SessionRef, StoredMessage
from sidecar.store.writes import Append


class Owner(Struct, frozen=True):
    """The session whose messages are written."""

    ref: SessionRef
    message_format: str | None
    """`None` where nobody knows any more."""
    agent_id: str | None = None
    session_key: str | None = None


class MessageLine(Struct, rename="camel", omit_defaults=True):
    """One line."""

    namespace: str
    session_id: str
    message_format: str | None
    position: int
    message_id: str
    turn_id: str
    role: str
    timestamp: str
    agent_id: str | None = None
    session_key: str | None = None
    heartbeat: bool = False
    message: Raw | None = None
    """The message as it came; line breaks between its tokens became spaces."""
    issued: list[str] = []
    """The fenced parts of its text that the store's secret made."""
    damaged_message: str | None = None
    """What is left of a message that is no JSON text any more."""


def message_line(
    owner: Owner, message: StoredMessage, *, sound: bool = True, issued: list[str] | None = None
) -> bytes:
    """The line of a message, with its line break; one that is not `sound` is quoted as damaged."""
    body = message.body
    return (
        msgspec.json.encode(
            MessageLine(
                namespace=owner.ref.namespace,
                session_id=owner.ref.session_id,
                message_format=owner.message_format,
                position=message.position,
                message_id=message.message_id,
                turn_id=message.turn_id,
                role=message.role,
                timestamp=rfc3339(message.timestamp_ms),
                agent_id=owner.agent_id,
                session_key=owner.session_key,
                heartbeat=message.heartbeat,
                message=Raw(body.replace(b"\r", b" ").replace(b"\n", b" ")) if sound else None,
                issued=issued or [],
                damaged_message=None if sound else body.decode(errors="replace"),
            )
        )
        + b"\n"
    )


def rfc3339(milliseconds: int) -> str:
    """The time in UTC; the nearest one that can be written for times beyond the years 1 to 9999."""
    bounded = min(max(milliseconds, -62_135_596_800_000), 253_402_300_799_999)
    seconds, rest = divmod(bounded, 1000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:03d}Z".rjust(24, "0")


def is_json(body: bytes) -> bool:
    """Whether the body is JSON text; halves of surrogate pairs are let pass."""
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


_BATCH_BYTES = 1 << 20
_BATCH = 500
UNKNOWN_FORMAT = "openai"
"""The dialect of sessions whose own is not known any more."""


async def refill(store: SessionStore, owner: Owner, messages: Iterable[StoredMessage]) -> int:
    """Append messages to a session under their ids, turns and times; how many were new.

    Raises:
        StoreError: the store is not open or cannot be written.
    """
    stored = size = 0
    batch: list[NewMessage] = []
    for message in messages:
        batch.append(_anew(message))
        size += len(message.body)
        if len(batch) >= _BATCH or size >= _BATCH_BYTES:
            stored += await _append(store, owner, batch)
            batch, size = [], 0
    return stored + (await _append(store, owner, batch) if batch else 0)


async def _append(store: SessionStore, owner: Owner, batch: list[NewMessage]) -> int:
    write = Append(
        owner.ref,
        batch,
        message_format=owner.message_format or UNKNOWN_FORMAT,
        agent_id=owner.agent_id,
        session_key=owner.session_key,
    )
    return sum(item.stored for item in (await store.write(write)).items)


def _anew(message: StoredMessage) -> NewMessage:
    return NewMessage(
        body=message.body,
        role=message.role,
        opens_turn=message.role == "user" and not message.heartbeat,
        message_id=message.message_id,
        timestamp_ms=message.timestamp_ms,
        heartbeat=message.heartbeat,
        turn_id=message.turn_id,
    )
