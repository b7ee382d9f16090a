"""Rows as callers get them.

Long ranges pass through here on the loop's thread, so the loops are flat.
"""

from collections.abc import Sequence

from sidecar.store.records import HEARTBEAT, MADE_UP, KeyedRow, MessageRow, SessionRecord, role_of
from sidecar.store.stored import Facts, KeyedMessage, StoredMessage


def stored_messages(owner: SessionRecord, rows: Sequence[MessageRow]) -> list[StoredMessage]:
    """Messages; `owner` is the session that owns the rows."""
    tag = owner.tag
    return [
        StoredMessage(
            position,
            name if name is not None else f"{tag}-{position if number is None else number}",
            turn,
            label if label is not None else f"t{turn}",
            role_of(role),
            timestamp_ms,
            flags & HEARTBEAT != 0,
            body,
        )
        for _, _, position, turn, role, timestamp_ms, flags, name, number, label, _, body in rows
    ]


def keyed_messages(owner: SessionRecord, rows: Sequence[KeyedRow]) -> list[KeyedMessage]:
    """Ids and facts; `owner` is the session that owns the rows."""
    tag = owner.tag
    return [
        KeyedMessage(
            position,
            name if name is not None else f"{tag}-{position if number is None else number}",
            None if flags & MADE_UP else name,
            inner_id,
            label if label is not None else f"t{turn}",
            None if tokens is None else Facts(tokens, *keys),
        )
        for position, turn, flags, name, number, label, inner_id, tokens, *keys in rows
    ]
