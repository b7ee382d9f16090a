"""The rules of `Append`: messages at the end, known ones, and those that go in front of others.

Places count as they were before the write. What is already there moves up and keeps its ids, turns and facts;
sessions that share it keep what they had.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sidecar.store.admission import admitted_or_created
from sidecar.store.errors import MessageMissing
from sidecar.store.forks import own_behind, owner_at, part_from_forks, place_of_id, place_of_inner_id, row_at
from sidecar.store.primitives import Tables
from sidecar.store.records import (
    HEARTBEAT,
    MADE_UP,
    OPENS,
    KeyedRow,
    MessageRow,
    SessionRecord,
    advance,
    id_of,
    made_up,
    number_in,
    role_code,
    turn_name,
)
from sidecar.store.stored import Appended, NewMessage
from sidecar.store.writes import Append, AppendResult


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


class _Plan(NamedTuple):
    """What is to happen to the messages of a write, by their index."""

    existing: dict[int, int]
    """Doubles of stored messages, with the position before the write."""
    repeated: dict[int, int]
    """Doubles of an earlier message of the write."""
    inserted: dict[int, list[int]]
    """Messages to put behind a position."""
    appended: list[int]


def insert(tables: Tables, record: SessionRecord, messages: Sequence[NewMessage]) -> list[Appended]:
    """Store messages of which some have a place of their own."""
    plan = _planned(tables, record, messages)
    done: dict[int, Appended] = {}
    for index, position in plan.existing.items():
        done[index] = existing(tables, record, position)._replace(
            position=position + _inserted_before(plan, position)
        )
    end = record.message_count
    for after in sorted(plan.inserted, reverse=True):
        group = [messages[index] for index in plan.inserted[after]]
        first = after + 1 + _inserted_before(plan, after)
        for offset, item in enumerate(_insert_behind(tables, record, after, group)):
            done[plan.inserted[after][offset]] = item._replace(position=first + offset)
    for index in plan.appended:
        done[index] = store_at_end(tables, record, messages[index])
    for index, earlier in plan.repeated.items():
        done[index] = done[earlier]._replace(stored=False, existing=messages[earlier].body)
    if any(after < end for after in plan.inserted):
        record.revision += 1
    if plan.inserted:
        record.updated_ms = tables.now_ms
        tables.save_session(record)
    return [done[index] for index in range(len(messages))]


def _planned(tables: Tables, record: SessionRecord, messages: Sequence[NewMessage]) -> _Plan:
    plan = _Plan({}, {}, {}, [])
    names: dict[str, int] = {}
    inner_ids: dict[str, int] = {}
    for index, message in enumerate(messages):
        place = place_of_double(tables, record, message)
        if place is not None:
            plan.existing[index] = place
            continue
        earlier = None if message.message_id is None else names.get(message.message_id)
        if earlier is None and message.inner_id is not None:
            earlier = inner_ids.get(message.inner_id)
            if earlier is not None and None not in (message.message_id, messages[earlier].message_id):
                earlier = None
        if earlier is not None:
            plan.repeated[index] = earlier
            continue
        if message.message_id is not None:
            names[message.message_id] = index
        if message.inner_id is not None:
            inner_ids.setdefault(message.inner_id, index)
        if message.after is None or record.message_count == 0:
            plan.appended.append(index)
        else:
            plan.inserted.setdefault(message.after, []).append(index)
    return plan


def _inserted_before(plan: _Plan, position: int) -> int:
    return sum(len(group) for after, group in plan.inserted.items() if after < position)


def _insert_behind(
    tables: Tables, record: SessionRecord, after: int, messages: list[NewMessage]
) -> list[Appended]:
    neighbour = _neighbour(tables, record, after)
    if after < record.message_count:
        _make_room(tables, record, after, len(messages))
    items: list[Appended] = []
    for position, message in enumerate(messages, after + 1):
        items.append(_insert_one(tables, record, position, message, neighbour))
    return items


def _neighbour(tables: Tables, record: SessionRecord, after: int) -> KeyedRow:
    """The message whose turn is joined."""
    position = max(after, 1)
    owner = owner_at(tables, record, position)
    return tables.keyed_rows(owner.uid, position, position)[0]


def _make_room(tables: Tables, record: SessionRecord, after: int, count: int) -> None:
    part_from_forks(tables, record, after, keep=True)
    own_behind(tables, record, after)
    tables.shift_rows(record.uid, after + 1, count)
    tables.shift_summaries(record.uid, after, count)


def _insert_one(
    tables: Tables,
    record: SessionRecord,
    position: int,
    message: NewMessage,
    neighbour: KeyedRow,
) -> Appended:
    name = message.message_id
    if name is not None:
        keep_clear_of(record, name)
    record.message_count += 1
    number = record.message_count + record.lift
    flags = 0
    if message.heartbeat:
        flags = HEARTBEAT
    elif message.opens_turn:
        flags = OPENS
        record.turn_opened = True
    tables.add_row(
        MessageRow(
            tables.take_row_ids(1),
            record.uid,
            position,
            neighbour.turn,
            role_code(message.role),
            tables.now_ms if message.timestamp_ms is None else message.timestamp_ms,
            flags,
            name,
            number if name is None else None,
            neighbour.turn_label,
            message.inner_id,
            message.body,
        ),
        message.facts,
    )
    message_id = made_up(record.tag, number) if name is None else name
    return Appended(message_id, turn_name(neighbour.turn, neighbour.turn_label), position, True, None)


def append(tables: Tables, write: Append) -> AppendResult:
    """Apply an `Append`.

    Raises:
        SessionMissing: the session is not there and may not be made, or is another agent's.
        FormatMismatch: the session holds messages of another dialect.
        MessageMissing: a message goes behind a position that is not there.
    """
    inserts = _check_places(tables, write)
    record = admitted_or_created(tables, write)
    key = write.advancement_key
    if key is not None and not tables.record_key(write.ref, key):
        return AppendResult([], True, record.head())
    if inserts:
        items = insert(tables, record, write.messages)
    else:
        items = [store_at_end(tables, record, message) for message in write.messages]
    return AppendResult(items, False, record.head())


def _check_places(tables: Tables, write: Append) -> bool:
    """Whether any message goes elsewhere than the end."""
    places = [message.after for message in write.messages if message.after is not None]
    if not places:
        return False
    record = tables.session(write.ref)
    count = 0 if record is None else record.message_count
    if min(places) < 0 or max(places) > count:
        raise MessageMissing(f"a message goes behind position {max(places)}, the session has {count}")
    return True
