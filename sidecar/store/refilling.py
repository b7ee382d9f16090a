"""Puts messages that were read elsewhere into a store, session by session."""

from collections.abc import Iterable

from sidecar.store.contract import SessionStore
from sidecar.store.lines import Owner
from sidecar.store.stored import NewMessage, StoredMessage
from sidecar.store.writes import Append

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
