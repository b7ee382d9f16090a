"""Reads of a session as its callers see it: its own messages behind those it shares."""

from sidecar.store.lineage import owner_at, place_of_id, row_at, spans
from sidecar.store.presenting import keyed_messages, stored_messages
from sidecar.store.primitives import RowReads
from sidecar.store.records import role_code
from sidecar.store.stored import KeyedMessage, SessionRef, StoredMessage


def read_messages(reads: RowReads, ref: SessionRef, first: int, last: int) -> list[StoredMessage]:
    """See `SessionStore.messages`."""
    record = reads.session(ref)
    if record is None:
        return []
    found: list[StoredMessage] = []
    for owner, start, end in spans(reads, record, first, min(last, record.message_count)):
        found += stored_messages(owner, reads.rows(owner.uid, start, end))
    return found


def read_messages_of_role(reads: RowReads, ref: SessionRef, role: str) -> list[StoredMessage]:
    """See `SessionStore.messages_of_role`."""
    record = reads.session(ref)
    if record is None:
        return []
    code = role_code(role)
    found: list[StoredMessage] = []
    for owner, start, end in spans(reads, record, 1, record.message_count):
        found += stored_messages(owner, reads.rows_of_role(owner.uid, code, start, end))
    return found


def read_message(reads: RowReads, ref: SessionRef, message_id: str) -> StoredMessage | None:
    """See `SessionStore.message`."""
    record = reads.session(ref)
    place = None if record is None else place_of_id(reads, record, message_id)
    if record is None or place is None:
        return None
    owner, row = row_at(reads, record, place)
    return stored_messages(owner, [row])[0]


def read_keyed(reads: RowReads, ref: SessionRef, first: int, last: int) -> list[KeyedMessage]:
    """See `SessionStore.keyed`."""
    record = reads.session(ref)
    if record is None:
        return []
    found: list[KeyedMessage] = []
    for owner, start, end in spans(reads, record, first, min(last, record.message_count)):
        found += keyed_messages(owner, reads.keyed_rows(owner.uid, start, end))
    return found


def read_turn_start(reads: RowReads, ref: SessionRef, turn: int) -> int | None:
    """See `SessionStore.turn_start`. Turns never fall along a session, so halving finds the first of one."""
    record = reads.session(ref)
    if record is None or not 0 < turn <= record.turn_count:
        return None

    def turn_at(position: int) -> int:
        return reads.turn_at(owner_at(reads, record, position).uid, position)

    low, high = 1, record.message_count
    while low < high:
        middle = (low + high) // 2
        if turn_at(middle) < turn:
            low = middle + 1
        else:
            high = middle
    return low if turn_at(low) == turn else None
