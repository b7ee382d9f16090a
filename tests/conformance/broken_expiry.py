"""Ways to break the erasing of sessions that nobody uses any more."""

from typing import Any

from msgspec.structs import replace
from pytest import MonkeyPatch

from sidecar.store import erasure, rules
from tests.conformance.dictionary.tables import MemoryTables


def expires_in_sight_of_all(patch: MonkeyPatch) -> None:
    patch.setattr(MemoryTables, "rename_session", lambda tables, record, ref: None)


def forgets_what_is_being_erased(patch: MonkeyPatch) -> None:
    idle = MemoryTables.idle_sessions

    def only_in_sight(tables: Any, before_ms: int, limit: int) -> Any:
        found = idle(tables, before_ms, limit)
        return [head for head in found if not erasure.is_set_aside(head.ref)]

    patch.setattr(MemoryTables, "idle_sessions", only_in_sight)


def expires_what_has_changed(patch: MonkeyPatch) -> None:
    rule = rules._RULES["expire"]

    def around(tables: Any, write: Any) -> Any:
        record = tables.session(write.ref)
        if record is not None:
            write.head = replace(record.head(), uid=write.head.uid)
        return rule(tables, write)

    patch.setitem(rules._RULES, "expire", around)


def expires_what_forks_share(patch: MonkeyPatch) -> None:
    patch.setattr(erasure, "part_from_forks", lambda tables, record, after, keep: None)


def tells_the_newest_idle_session_first(patch: MonkeyPatch) -> None:
    idle = MemoryTables.idle_sessions
    patch.setattr(
        MemoryTables,
        "idle_sessions",
        lambda tables, before_ms, limit: idle(tables, before_ms, 9)[::-1][:limit],
    )


def counts_erased_bytes_as_used(patch: MonkeyPatch) -> None:
    used = MemoryTables.used_bytes
    most = [0]

    def at_most(tables: Any) -> int:
        most[0] = max(most[0], used(tables))
        return most[0]

    patch.setattr(MemoryTables, "used_bytes", at_most)
