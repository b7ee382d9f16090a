"""Ways to break what is kept beside messages."""

from typing import Any

from pytest import MonkeyPatch

from sidecar.store import rules
from sidecar.store.forks import owner_at
from sidecar.store.stored import SessionSettings
from tests.conformance.dictionary.tables import MemoryTables


def forgets_facts_that_come_with_messages(patch: MonkeyPatch) -> None:
    add = MemoryTables.add_row
    patch.setattr(MemoryTables, "add_row", lambda tables, row, _: add(tables, row, None))


def saves_facts_one_message_too_late(patch: MonkeyPatch) -> None:
    save = MemoryTables.save_facts
    patch.setattr(
        MemoryTables,
        "save_facts",
        lambda tables, uid, position, facts: save(tables, uid, position + 1, facts),
    )


def _with_todays_revision(patch: MonkeyPatch, verb: str) -> None:
    rule = rules._RULES[verb]

    def around(tables: Any, write: Any) -> Any:
        record = tables.session(write.ref)
        if record is not None:
            write.revision = record.revision
        return rule(tables, write)

    patch.setitem(rules._RULES, verb, around)


def saves_facts_of_any_revision(patch: MonkeyPatch) -> None:
    _with_todays_revision(patch, "save_facts")


def adds_summaries_of_any_revision(patch: MonkeyPatch) -> None:
    _with_todays_revision(patch, "add_summary")


def saves_no_facts_of_shared_messages(patch: MonkeyPatch) -> None:
    def owner(tables: Any, record: Any, position: int) -> Any:
        del position
        return record

    patch.setattr(rules, "owner_at", owner)
    assert owner_at is not owner


def hands_out_no_messages_without_facts(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryTables, "without_facts", lambda *_: ([], True))


def hands_out_messages_without_facts_once(patch: MonkeyPatch) -> None:
    find = MemoryTables.without_facts

    def found(tables: Any, limit: int) -> Any:
        result = find(tables, limit)
        tables._lacking.clear()
        return result

    patch.setattr(MemoryTables, "without_facts", found)


def hands_out_all_messages_without_facts(patch: MonkeyPatch) -> None:
    find = MemoryTables.without_facts
    patch.setattr(MemoryTables, "without_facts", lambda tables, _: find(tables, 1 << 30))


def forgets_that_copies_lack_facts(patch: MonkeyPatch) -> None:
    copy_rows = MemoryTables.copy_rows

    def copy(tables: Any, *given: Any) -> None:
        lacking = dict(tables._lacking)
        copy_rows(tables, *given)
        tables._lacking = lacking

    patch.setattr(MemoryTables, "copy_rows", copy)


def tells_summaries_as_they_came(patch: MonkeyPatch) -> None:
    patch.setattr(
        MemoryTables,
        "summaries",
        lambda tables, ref, **_: list(tables._summaries.get(tables._uids.get(ref), {}).values()),
    )


def always_tells_the_texts_of_summaries(patch: MonkeyPatch) -> None:
    told = MemoryTables.summaries
    patch.setattr(MemoryTables, "summaries", lambda tables, ref, **_: told(tables, ref))


def finds_summaries_of_any_id(patch: MonkeyPatch) -> None:
    patch.setattr(
        MemoryTables,
        "summary_nodes",
        lambda tables, ref, _: list(tables._summaries.get(tables._uids.get(ref), {}).values()),
    )


def replaces_no_summaries(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryTables, "drop_summaries", lambda *_: None)


def keeps_the_first_summary_of_an_id(patch: MonkeyPatch) -> None:
    patch.setattr(
        MemoryTables,
        "add_summary",
        lambda tables, uid, node: tables._summaries[uid].setdefault(node.node_id, node),
    )


def takes_summaries_for_no_change(patch: MonkeyPatch) -> None:
    rule = rules._RULES["add_summary"]

    def add(tables: Any, write: Any) -> Any:
        record = tables.session(write.ref)
        before = record and record.updated_ms
        result = rule(tables, write)
        if record is not None:
            record.updated_ms = before
            tables.save_session(record)
        return result

    patch.setitem(rules._RULES, "add_summary", add)


def touches_nothing(patch: MonkeyPatch) -> None:
    patch.setitem(rules._RULES, "touch", lambda tables, write: tables.session(write.ref) is not None)


def removes_no_state(patch: MonkeyPatch) -> None:
    save = MemoryTables.save_state
    patch.setattr(
        MemoryTables,
        "save_state",
        lambda tables, ref, name, value: None if value is None else save(tables, ref, name, value),
    )


def keeps_state_for_whoever_has_the_name(patch: MonkeyPatch) -> None:
    patch.setitem(
        rules._RULES,
        "save_state",
        lambda tables, write: tables.save_state(write.ref, write.name, write.value),
    )


def reads_large_values_with_a_snapshot(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryTables, "values", lambda tables, ref: dict(tables._state.get(ref, {})))


def replaces_settings_whole(patch: MonkeyPatch) -> None:
    patch.setitem(
        rules._RULES,
        "configure",
        lambda tables, write: tables.save_settings(
            write.namespace, write.scope, write.scope_id, SessionSettings(write.engine, write.config)
        ),
    )


def inherits_settings_over_those_of_the_fork(patch: MonkeyPatch) -> None:
    rule = rules._RULES["fork"]

    def fork(tables: Any, write: Any) -> Any:
        tables._settings.pop(("host", "session", write.child.session_id), None)
        return rule(tables, write)

    patch.setitem(rules._RULES, "fork", fork)
