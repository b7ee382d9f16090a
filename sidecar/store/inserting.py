"""Messages that are stored in front of others.

Places count as they were before the write. What is already there moves up and keeps its ids, turns and facts;
sessions that share it keep what they had.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sidecar.store.identity import made_up
from sidecar.store.lineage import own_behind, owner_at, part_from_forks
from sidecar.store.primitives import Tables
from sidecar.store.records import HEARTBEAT, OPENS, KeyedRow, MessageRow, SessionRecord, role_code
from sidecar.store.stored import Appended, NewMessage
from sidecar.store.storing import existing, keep_clear_of, place_of_double, store_at_end
from sidecar.store.turns import turn_name


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
