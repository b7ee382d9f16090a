"""Ways to break to which turn messages are given, or where they are put between others."""

from typing import Any

from msgspec.structs import replace
from pytest import MonkeyPatch

from sidecar.store import append, records, rules
from sidecar.store.errors import MessageMissing
from sidecar.store.records import OPENS
from sidecar.store.writes import AppendResult
from tests.conformance.dictionary.rows import OwnRows
from tests.conformance.dictionary.tables import MemoryTables


def _before_append(patch: MonkeyPatch, change: Any) -> None:
    """Change every `Append` before it is carried out."""
    rule = rules._RULES["append"]

    def changed(tables: Any, write: Any) -> Any:
        change(tables, write)
        return rule(tables, write)

    patch.setitem(rules._RULES, "append", changed)


def _each_message(patch: MonkeyPatch, **members: Any) -> None:
    def change(_: Any, write: Any) -> None:
        for message in write.messages:
            for name, value in members.items():
                setattr(message, name, value)

    _before_append(patch, change)


def _each_row(patch: MonkeyPatch, change: Any) -> None:
    add = MemoryTables.add_row
    patch.setattr(MemoryTables, "add_row", lambda tables, row, facts: add(tables, change(row), facts))


def _advancing(patch: MonkeyPatch, change: Any) -> None:
    advance = records.advance
    patch.setattr(append, "advance", lambda record, *given: advance(record, *change(record, *given)))


def opens_a_turn_for_every_user_message(patch: MonkeyPatch) -> None:
    def change(record: Any, *given: Any) -> Any:
        record.turn_opened = record.turn_opened or record.turn_count > 0
        return given

    _advancing(patch, change)


def begins_turns_anew_with_every_write(patch: MonkeyPatch) -> None:
    def change(tables: Any, write: Any) -> None:
        record = tables.session(write.ref)
        if record is not None:
            record.turn_count, record.turn_opened = 0, False

    _before_append(patch, change)


def opens_turns_for_heartbeats(patch: MonkeyPatch) -> None:
    _advancing(patch, lambda _, opens, heartbeat, label: (opens, False, label))


def opens_named_turns_for_heartbeats(patch: MonkeyPatch) -> None:
    _advancing(patch, lambda _, opens, heartbeat, label: (opens, heartbeat and label is None, label))


def ignores_names_of_turns(patch: MonkeyPatch) -> None:
    _each_message(patch, turn_id=None)


def lets_only_user_messages_open_named_turns(patch: MonkeyPatch) -> None:
    _advancing(patch, lambda _, opens, heartbeat, label: (opens, heartbeat, label if opens else None))


def takes_its_own_names_of_turns_for_strange(patch: MonkeyPatch) -> None:
    patch.setattr(records, "turn_name", lambda turn, label: label or "")


def puts_everything_at_the_end(patch: MonkeyPatch) -> None:
    _each_message(patch, after=None)


def counts_places_while_it_inserts(patch: MonkeyPatch) -> None:
    patch.setattr(append, "_inserted_before", lambda plan, position: 0)


def renumbers_what_moves(patch: MonkeyPatch) -> None:
    shift = MemoryTables.shift_rows

    def shifted(tables: Any, uid: int, first: int, by: int) -> None:
        shift(tables, uid, first, by)
        own: OwnRows = tables._rows[uid]
        own.replace([row._replace(number=None) for row in own.between(0, 1 << 60)])

    patch.setattr(MemoryTables, "shift_rows", shifted)


def lets_inserted_messages_join_the_next_turn(patch: MonkeyPatch) -> None:
    neighbour = append._neighbour
    patch.setattr(
        append,
        "_neighbour",
        lambda tables, record, after: neighbour(tables, record, min(after + 1, record.message_count)),
    )


def opens_turns_behind_the_last_message(patch: MonkeyPatch) -> None:
    def change(tables: Any, write: Any) -> None:
        record = tables.session(write.ref)
        for message in write.messages:
            if record is not None and message.after == record.message_count:
                message.after = None

    _before_append(patch, change)


def refuses_a_place_in_an_empty_session(patch: MonkeyPatch) -> None:
    def change(tables: Any, write: Any) -> None:
        if tables.session(write.ref) is None and any(each.after == 0 for each in write.messages):
            raise MessageMissing("there is nothing to go behind")

    _before_append(patch, change)


def keeps_the_revision_when_messages_move(patch: MonkeyPatch) -> None:
    insert = append.insert

    def inserted(tables: Any, record: Any, messages: Any) -> Any:
        before = record.revision
        items = insert(tables, record, messages)
        record.revision = before
        return items

    patch.setattr(append, "insert", inserted)


def tells_doubles_their_old_position(patch: MonkeyPatch) -> None:
    rule = rules._RULES["append"]

    def told(tables: Any, write: Any) -> Any:
        count = getattr(tables.session(write.ref), "message_count", 0)
        result: AppendResult = rule(tables, write)
        items = [
            item if item.stored else item._replace(position=min(item.position, count))
            for item in result.items
        ]
        return result._replace(items=items)

    patch.setitem(rules._RULES, "append", told)


def lets_inner_ids_decide_among_inserted_messages(patch: MonkeyPatch) -> None:
    def change(_: Any, write: Any) -> None:
        seen: set[str] = set()
        for message in write.messages:
            if message.after is not None and message.inner_id in seen:
                message.message_id = None
            seen.add(message.inner_id)

    _before_append(patch, change)


def moves_a_place_that_is_not_there(patch: MonkeyPatch) -> None:
    def change(tables: Any, write: Any) -> None:
        count = getattr(tables.session(write.ref), "message_count", 0)
        for message in write.messages:
            if message.after is not None:
                message.after = min(max(message.after, 0), count)

    _before_append(patch, change)


def leaves_summaries_where_they_were(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryTables, "shift_summaries", lambda *_: None)


def leaves_facts_at_their_positions(patch: MonkeyPatch) -> None:
    shift = MemoryTables.shift_rows

    def shifted(tables: Any, uid: int, first: int, by: int) -> None:
        for row in tables._rows[uid].between(first, 1 << 60):
            tables._facts.pop(row.row_id, None)
        shift(tables, uid, first, by)

    patch.setattr(MemoryTables, "shift_rows", shifted)


def inserts_into_the_forks_too(patch: MonkeyPatch) -> None:
    patch.setattr(append, "part_from_forks", lambda *_, **__: None)


def inserts_into_the_parent_of_a_fork(patch: MonkeyPatch) -> None:
    insert = append.insert

    def inserted(tables: Any, record: Any, messages: Any) -> Any:
        parent = tables.session_of(record.parent) if record.parent else None
        if parent is not None:
            insert(tables, parent, [replace(message) for message in messages])
        return insert(tables, record, messages)

    patch.setattr(append, "insert", inserted)


def appends_what_it_should_have_put_in(patch: MonkeyPatch) -> None:
    def change(tables: Any, write: Any) -> None:
        count = getattr(tables.session(write.ref), "message_count", 0)
        for message in write.messages:
            if message.after is not None and message.after < count:
                message.after += 1

    _before_append(patch, change)


def marks_no_opener(patch: MonkeyPatch) -> None:
    _each_row(patch, lambda row: row._replace(flags=row.flags & ~OPENS))
