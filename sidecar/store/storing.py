"""How one message comes to be stored, or is found to be there already."""

from sidecar.store.identity import id_of, made_up, number_in
from sidecar.store.lineage import owner_at, place_of_id, place_of_inner_id, row_at
from sidecar.store.primitives import Tables
from sidecar.store.records import HEARTBEAT, MADE_UP, MessageRow, SessionRecord, role_code
from sidecar.store.stored import Appended, NewMessage
from sidecar.store.turns import advance, turn_name


def store_at_end(tables: Tables, record: SessionRecord, message: NewMessage) -> Appended:
    """Store one message behind all others, unless it is there already."""
    name = message.message_id
    if name is not None or message.inner_id is not None:
        place = place_of_double(tables, record, message)
        if place is not None:
            return existing(tables, record, place)
        if name is not None:
            keep_clear_of(record, name)
    heartbeat = message.heartbeat
    flags = advance(record, message.opens_turn, heartbeat, message.turn_id)
    if heartbeat:
        flags |= HEARTBEAT
    position = record.message_count = record.message_count + 1
    number = position + record.lift
    label = record.turn_label
    stamp = message.timestamp_ms
    tables.add_row(
        MessageRow(
            tables.take_row_ids(1),
            record.uid,
            position,
            record.turn_count,
            role_code(message.role),
            tables.now_ms if stamp is None else stamp,
            flags,
            name,
            number if number != position and name is None else None,
            label,
            message.inner_id,
            message.body,
        ),
        message.facts,
    )
    record.updated_ms = tables.now_ms
    tables.save_session(record)
    return Appended(
        made_up(record.tag, number) if name is None else name,
        turn_name(record.turn_count, label),
        position,
        True,
        None,
    )


def place_of_double(tables: Tables, record: SessionRecord, message: NewMessage) -> int | None:
    """The position of the message that this one repeats.

    An id inside the message decides only where one of the two came without an id of the host.
    """
    place = None
    if message.message_id is not None:
        place = place_of_id(tables, record, message.message_id)
    if place is None and message.inner_id is not None:
        place = place_of_inner_id(tables, record, message.inner_id)
        if place is not None and message.message_id is not None and _has_host_id(tables, record, place):
            place = None
    return place


def _has_host_id(tables: Tables, record: SessionRecord, position: int) -> bool:
    owner = owner_at(tables, record, position)
    row = tables.keyed_rows(owner.uid, position, position)[0]
    return row.name is not None and not row.flags & MADE_UP


def existing(tables: Tables, record: SessionRecord, position: int) -> Appended:
    """What is told of a message that is not stored again."""
    owner, row = row_at(tables, record, position)
    message_id = id_of(owner.tag, row.name, row.number, row.position)
    return Appended(message_id, turn_name(row.turn, row.turn_label), position, False, row.body)


def keep_clear_of(record: SessionRecord, name: str) -> None:
    """Number what follows beyond an id of the host that looks like one still to be made up."""
    number = number_in(record.tag, name)
    if number is not None:
        record.lift = max(record.lift, number - record.message_count)
