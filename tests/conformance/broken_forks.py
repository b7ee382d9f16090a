"""Ways to break forks."""

from typing import Any

from pytest import MonkeyPatch

from sidecar.store import append, erasure, forks, reads, rules
from sidecar.store.errors import SessionMissing
from sidecar.store.records import MADE_UP, written_out
from tests.conformance.dictionary.tables import MemoryTables


def _rule(patch: MonkeyPatch, verb: str, around: Any) -> None:
    """Carry out a write by `around(rule, tables, write)`."""
    rule = rules._RULES[verb]
    patch.setitem(rules._RULES, verb, lambda tables, write: around(rule, tables, write))


def _fork(patch: MonkeyPatch, change: Any) -> None:
    """Change a session after it was forked: `change(tables, child, parent, write)`."""

    def around(rule: Any, tables: Any, write: Any) -> Any:
        rule(tables, write)
        child, parent = tables.session(write.child), tables.session(write.parent)
        change(tables, child, parent, write)
        return child.head()

    _rule(patch, "fork", around)


def copies_all_state_into_forks(patch: MonkeyPatch) -> None:
    def change(tables: Any, child: Any, _: Any, write: Any) -> None:
        tables._state[child.ref].update(tables._state[write.parent])

    _fork(patch, change)


def forks_start_empty(patch: MonkeyPatch) -> None:
    def change(_: Any, child: Any, *__: Any) -> None:
        child.message_count = child.shared = child.turn_count = 0
        child.parent = None

    _fork(patch, change)


def forks_take_the_whole_parent(patch: MonkeyPatch) -> None:
    _rule(
        patch,
        "fork",
        lambda rule, tables, write: (setattr(write, "at_message_id", None), rule(tables, write))[1],
    )


def forks_are_the_parent_itself(patch: MonkeyPatch) -> None:
    def change(tables: Any, _: Any, parent: Any, write: Any) -> None:
        tables._uids[write.child] = parent.uid

    _fork(patch, change)


def forks_know_their_own_ids_alone(patch: MonkeyPatch) -> None:
    def place(tables: Any, record: Any, message_id: str) -> int | None:
        number = forks.number_in(record.tag, message_id)
        found = None if number is None else tables.place_of_number(record.uid, number)
        return tables.place_of_name(record.uid, message_id) if found is None else found

    for module in (append, forks, reads):
        patch.setattr(module, "place_of_id", place)


def forks_know_all_ids_of_their_parent(patch: MonkeyPatch) -> None:
    place_of_id = forks.place_of_id

    def place(tables: Any, record: Any, message_id: str) -> int | None:
        found = place_of_id(tables, record, message_id)
        if found is None and record.parent is not None:
            return place_of_id(tables, tables.session_of(record.parent), message_id)
        return found

    for module in (append, reads):
        patch.setattr(module, "place_of_id", place)


def takes_ids_that_it_made_up_for_the_hosts(patch: MonkeyPatch) -> None:
    from tests.conformance.dictionary import tables

    def without_flag(row: Any, tag: str) -> Any:
        row = written_out(row, tag)
        return row._replace(flags=row.flags & ~MADE_UP)

    patch.setattr(tables, "written_out", without_flag)


def reads_one_level_of_forks(patch: MonkeyPatch) -> None:
    def spans(rows: Any, record: Any, first: int, last: int) -> Any:
        own = (record, max(first, record.shared + 1), last)
        if record.parent is None or first > record.shared:
            return [own]
        return [(rows.session_of(record.parent), first, min(last, record.shared)), own]

    for module in (forks, reads):
        patch.setattr(module, "spans", spans)


def takes_shared_messages_from_forks(patch: MonkeyPatch) -> None:
    for module in (erasure, forks):
        patch.setattr(module, "part_from_forks", lambda *_, **__: None)


def gives_all_that_is_shared_to_one_fork(patch: MonkeyPatch) -> None:
    move = MemoryTables.move_rows

    def moved(tables: Any, source: Any, uid: int, first: int, last: int) -> None:
        for row in tables._rows[source.uid].between(first, last):
            tables._facts.pop(row.row_id, None)
        move(tables, source, uid, first, last)

    patch.setattr(MemoryTables, "move_rows", moved)


def truncates_the_parent_of_a_fork(patch: MonkeyPatch) -> None:
    def around(rule: Any, tables: Any, write: Any) -> Any:
        record = tables.session(write.ref)
        parent = None if record is None or record.parent is None else tables.session_of(record.parent)
        if parent is not None:
            rule(tables, type(write)(parent.ref, write.after_message_id))
        return rule(tables, write)

    _rule(patch, "truncate", around)


def forks_no_empty_session(patch: MonkeyPatch) -> None:
    def around(rule: Any, tables: Any, write: Any) -> Any:
        record = tables.session(write.parent)
        if record is not None and not record.message_count:
            raise SessionMissing("there is nothing to fork")
        return rule(tables, write)

    _rule(patch, "fork", around)


def forks_have_no_summaries(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryTables, "copy_summaries", lambda *_: None)


def forks_are_nobodys(patch: MonkeyPatch) -> None:
    _fork(patch, lambda tables, child, *_: setattr(child, "agent_id", None))


def forks_over_what_is_there(patch: MonkeyPatch) -> None:
    def around(rule: Any, tables: Any, write: Any) -> Any:
        there = tables.session(write.child)
        if there is not None and write.child != write.parent:
            tables.drop_session(there)
        return there.head() if there is not None and write.child == write.parent else rule(tables, write)

    _rule(patch, "fork", around)
