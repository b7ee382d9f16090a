"""Ways to break truncation or deletion."""

from typing import Any

from pytest import MonkeyPatch

from sidecar.store import erasure, forks, rules
from sidecar.store.records import written_out
from tests.conformance.dictionary.buffer import MemoryBuffers
from tests.conformance.dictionary.tables import MemoryTables


def _rule(patch: MonkeyPatch, verb: str, around: Any) -> None:
    """Carry out a write by `around(rule, tables, write)`."""
    rule = rules._RULES[verb]
    patch.setitem(rules._RULES, verb, lambda tables, write: around(rule, tables, write))


def truncates_nothing(patch: MonkeyPatch) -> None:
    _rule(patch, "truncate", lambda rule, tables, write: 0)


def truncates_the_named_message_too(patch: MonkeyPatch) -> None:
    place = forks._place

    def one_less(tables: Any, record: Any, message_id: Any) -> int:
        return max(0, place(tables, record, message_id) - 1)

    def around(rule: Any, tables: Any, write: Any) -> Any:
        with MonkeyPatch.context() as inside:
            inside.setattr(forks, "_place", one_less)
            return rule(tables, write)

    _rule(patch, "truncate", around)


def keeps_the_first_message_for_ever(patch: MonkeyPatch) -> None:
    def around(rule: Any, tables: Any, write: Any) -> Any:
        record = tables.session(write.ref)
        if write.after_message_id is None and record is not None and record.message_count:
            owner, row = forks.row_at(tables, record, 1)
            write.after_message_id = written_out(row, owner.tag).name
        return rule(tables, write)

    _rule(patch, "truncate", around)


def raises_the_revision_for_nothing(patch: MonkeyPatch) -> None:
    def around(rule: Any, tables: Any, write: Any) -> Any:
        removed = rule(tables, write)
        if not removed:
            tables.session(write.ref).revision += 1
        return removed

    _rule(patch, "truncate", around)


def uses_ids_again_after_truncation(patch: MonkeyPatch) -> None:
    def around(rule: Any, tables: Any, write: Any) -> Any:
        removed = rule(tables, write)
        tables.session(write.ref).lift = 0
        return removed

    _rule(patch, "truncate", around)


def remembers_ids_of_removed_messages(patch: MonkeyPatch) -> None:
    drop = MemoryTables.drop_rows

    def dropped(tables: Any, uid: int, first: int) -> None:
        names = dict(tables._rows[uid].names)
        drop(tables, uid, first)
        tables._rows[uid].names.update(dict.fromkeys(names, 1))

    patch.setattr(MemoryTables, "drop_rows", dropped)


def keeps_the_revision_at_truncation(patch: MonkeyPatch) -> None:
    def around(rule: Any, tables: Any, write: Any) -> Any:
        before = getattr(tables.session(write.ref), "revision", 0)
        removed = rule(tables, write)
        tables.session(write.ref).revision = before
        return removed

    _rule(patch, "truncate", around)


def keeps_summaries_at_truncation(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryTables, "drop_summaries_behind", lambda *_: None)


def takes_an_unknown_message_for_the_last(patch: MonkeyPatch) -> None:
    patch.setattr(
        forks,
        "_place",
        lambda tables, record, message_id: (
            forks.place_of_id(tables, record, message_id or "") or record.message_count
        ),
    )


def lets_every_agent_change_a_session(patch: MonkeyPatch) -> None:
    admitted = forks.admitted
    patch.setattr(forks, "admitted", lambda tables, ref, _: admitted(tables, ref, None))
    patch.setattr(erasure, "is_foreign", lambda *_: False)


def binds_the_agent_before_it_refuses(patch: MonkeyPatch) -> None:
    def around(rule: Any, tables: Any, write: Any) -> Any:
        record = tables.session(write.ref)
        if record is not None and record.agent_id is None:
            record.agent_id = write.agent_id
        return rule(tables, write)

    _rule(patch, "truncate", around)


def leaves_turns_as_they_were_at_truncation(patch: MonkeyPatch) -> None:
    set_turns = forks._set_turns
    patch.setattr(
        forks,
        "_set_turns",
        lambda tables, record, source: None if record is source else set_turns(tables, record, source),
    )


def takes_turn_one_for_opened(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryTables, "opener_before", lambda *_: True)


def takes_turn_one_for_unopened(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryTables, "opener_before", lambda *_: False)


def forgets_the_name_of_the_turn_at_truncation(patch: MonkeyPatch) -> None:
    def around(rule: Any, tables: Any, write: Any) -> Any:
        removed = rule(tables, write)
        tables.session(write.ref).turn_label = None
        return removed

    _rule(patch, "truncate", around)


def leaves_what_belongs_to_a_deleted_session(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryTables, "drop_belongings", lambda *_: None)


def leaves_the_buffers_of_a_deleted_session(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryBuffers, "drop_session", lambda *_: None)


def leaves_the_bound_keys_of_a_deleted_session(patch: MonkeyPatch) -> None:
    drop = MemoryTables.drop_session

    def dropped(tables: Any, record: Any) -> None:
        keys = dict(tables._session_keys)
        head = record.head()
        drop(tables, record)
        tables._session_keys = keys
        tables._sessions[record.uid] = record
        assert head

    patch.setattr(MemoryTables, "drop_session", dropped)


def tells_that_everything_was_deleted(patch: MonkeyPatch) -> None:
    _rule(patch, "delete", lambda rule, tables, write: rule(tables, write) or True)


def leaves_the_belongings_of_no_session(patch: MonkeyPatch) -> None:
    _rule(
        patch,
        "delete",
        lambda rule, tables, write: rule(tables, write) if tables.session(write.ref) else False,
    )


def deletes_the_settings_of_an_agent_of_the_same_name(patch: MonkeyPatch) -> None:
    def around(rule: Any, tables: Any, write: Any) -> Any:
        tables._settings.pop((write.ref.namespace, "agent", write.ref.session_id), None)
        return rule(tables, write)

    _rule(patch, "delete", around)


def uses_uids_again(patch: MonkeyPatch) -> None:
    add = MemoryTables.add_session

    def added(tables: Any, record: Any) -> None:
        tables._next_uid = max(tables._sessions, default=0) + 1
        add(tables, record)

    patch.setattr(MemoryTables, "add_session", added)


def deletes_nothing(patch: MonkeyPatch) -> None:
    _rule(patch, "delete", lambda rule, tables, write: tables.session(write.ref) is not None)
