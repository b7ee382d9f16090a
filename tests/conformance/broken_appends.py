"""Ways to break how messages are stored, recognised or numbered."""

from typing import Any

from pytest import MonkeyPatch

from sidecar.store import admission, append, forks, rules
from sidecar.store.errors import StoreUnavailable
from sidecar.store.stored import SessionRef
from tests.conformance.dictionary.store import MemoryStore
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


def folds_white_space_in_bodies(patch: MonkeyPatch) -> None:
    _each_row(patch, lambda row: row._replace(body=b" ".join(row.body.split())))


def tells_positions_from_zero(patch: MonkeyPatch) -> None:
    store = append.store_at_end

    def told(*given: Any) -> Any:
        item = store(*given)
        return item._replace(position=item.position - 1)

    patch.setattr(append, "store_at_end", told)


def makes_up_one_id_for_all(patch: MonkeyPatch) -> None:
    _each_row(patch, lambda row: row._replace(number=1) if row.name is None else row)


def ignores_ids_of_the_host(patch: MonkeyPatch) -> None:
    _each_message(patch, message_id=None)


def ignores_inner_ids(patch: MonkeyPatch) -> None:
    _each_message(patch, inner_id=None)


def stores_doubles_again(patch: MonkeyPatch) -> None:
    patch.setattr(append, "place_of_double", lambda *_: None)
    patch.setattr(append, "place_of_double", lambda *_: None)


def asks_inner_ids_first(patch: MonkeyPatch) -> None:
    by_id = append.place_of_double

    def place(tables: Any, record: Any, message: Any) -> int | None:
        found = None
        if message.inner_id is not None:
            found = forks.place_of_inner_id(tables, record, message.inner_id)
        return by_id(tables, record, message) if found is None else found

    patch.setattr(append, "place_of_double", place)


def takes_inner_ids_for_ids(patch: MonkeyPatch) -> None:
    patch.setattr(append, "_has_host_id", lambda *_: False)


def forgets_the_ids_it_made_up(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryTables, "place_of_number", lambda *_: None)


def makes_up_ids_that_the_host_has_taken(patch: MonkeyPatch) -> None:
    patch.setattr(append, "keep_clear_of", lambda *_: None)


def reads_any_digits_as_a_number_of_its_own(patch: MonkeyPatch) -> None:
    def number(tag: str, message_id: str) -> int | None:
        digits = message_id.rpartition("-")[2]
        return int(digits) if digits.isdigit() and message_id.startswith(tag) else None

    patch.setattr(forks, "number_in", number)


def stamps_with_its_own_time(patch: MonkeyPatch) -> None:
    _each_message(patch, timestamp_ms=None)


def knows_five_roles(patch: MonkeyPatch) -> None:
    patch.setattr(append, "role_code", lambda role: {"user": "u", "assistant": "a"}.get(role, "o"))


def takes_every_key_for_new(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryTables, "record_key", lambda *_: True)


def uses_up_the_key_of_a_refused_append(patch: MonkeyPatch) -> None:
    _before_append(
        patch,
        lambda tables, write: (
            write.message_format == "anthropic" and tables.record_key(write.ref, write.advancement_key)
        ),
    )


def keeps_two_lists_of_keys(patch: MonkeyPatch) -> None:
    patch.setitem(rules._RULES, "record_advancement", lambda *_: True)


def makes_every_session(patch: MonkeyPatch) -> None:
    _before_append(patch, lambda _, write: setattr(write, "create", True))


def makes_no_empty_session(patch: MonkeyPatch) -> None:
    def change(_: Any, write: Any) -> None:
        if not write.messages:
            raise StoreUnavailable("there is nothing to store")

    _before_append(patch, change)


def binds_no_agent(patch: MonkeyPatch) -> None:
    patch.setattr(admission, "bind_agent", lambda *_: None)


def knows_one_namespace(patch: MonkeyPatch) -> None:
    by_ref = MemoryTables.session
    patch.setattr(
        MemoryTables, "session", lambda tables, ref: by_ref(tables, SessionRef("host", ref.session_id))
    )


def keeps_the_first_binding_of_a_key(patch: MonkeyPatch) -> None:
    patch.setattr(
        MemoryTables,
        "bind_key",
        lambda tables, namespace, key, agent_id, uid: tables._session_keys.setdefault(
            (namespace, key), {}
        ).setdefault(agent_id, uid),
    )


def fails_what_was_queued_with_a_refused_write(patch: MonkeyPatch) -> None:
    tell = MemoryStore.tell

    def spoil(store: Any, batch: Any) -> None:
        failed = [write.error for write in batch if write.error is not None]
        for write in batch:
            write.error = write.error or (failed[0] if failed else None)
        tell(store, batch)

    patch.setattr(MemoryStore, "tell", spoil)
