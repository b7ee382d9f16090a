"""Which rule carries out which write, and the rules of those that keep something beside the messages."""

from collections.abc import Callable
from typing import Any

from sidecar.store.admission import adopt, bind_agent, is_foreign, set_for
from sidecar.store.append import append
from sidecar.store.erasure import delete, expire
from sidecar.store.errors import StoreError
from sidecar.store.forks import fork, owner_at, truncate
from sidecar.store.primitives import Tables
from sidecar.store.records import SessionRecord
from sidecar.store.spawning import begin_spawn, end_spawn, prepare_spawn, roll_back_spawn, sweep_spawns
from sidecar.store.stored import SessionSettings
from sidecar.store.writes import AddSummary, Configure, RecordAdvancement, SaveFacts, SaveState, Touch, Write


def configure(tables: Tables, write: Configure) -> None:
    """Apply a `Configure`: what is `None` stays as it is."""
    scope_id = write.scope_id
    if write.ref is not None and write.agent_id is not None:
        record = tables.session(write.ref)
        if record is None or is_foreign(record.agent_id, write.agent_id):
            scope_id = set_for(scope_id, write.agent_id)
        else:
            bind_agent(tables, record, write.agent_id)
    before = tables.settings_of(write.namespace, write.scope, scope_id)
    settings = SessionSettings(
        before.engine if write.engine is None else write.engine,
        before.config if write.config is None else write.config,
    )
    tables.save_settings(write.namespace, write.scope, scope_id, settings)


def save_state(tables: Tables, write: SaveState) -> None:
    """Apply a `SaveState`, unless it is meant for another session of that name."""
    if write.uid is not None:
        record = tables.session(write.ref)
        if record is None or record.uid != write.uid:
            return
    tables.save_state(write.ref, write.name, write.value)


def save_facts(tables: Tables, write: SaveFacts) -> None:
    """Apply a `SaveFacts`, unless the messages have changed since."""
    record = tables.session(write.ref)
    if record is None or record.revision != write.revision:
        return
    for position, facts in write.facts:
        if 0 < position <= record.message_count:
            tables.save_facts(owner_at(tables, record, position).uid, position, facts)


def add_summary(tables: Tables, write: AddSummary) -> bool:
    """Apply an `AddSummary`, unless the messages have changed since."""
    record = tables.session(write.ref)
    if record is None or record.revision != write.revision:
        return False
    tables.drop_summaries(record.uid, write.replaces)
    tables.add_summary(record.uid, write.node)
    _touch(tables, record)
    return True


def touch(tables: Tables, write: Touch) -> bool:
    """Apply a `Touch`; whether the session is there."""
    record = tables.session(write.ref)
    if record is None or is_foreign(record.agent_id, write.agent_id):
        return False
    _touch(tables, record)
    return True


def _touch(tables: Tables, record: SessionRecord) -> None:
    record.updated_ms = tables.now_ms
    tables.save_session(record)


def record_advancement(tables: Tables, write: RecordAdvancement) -> bool:
    """Apply a `RecordAdvancement`; true where the key is new."""
    return tables.record_key(write.ref, write.advancement_key)


_RULES: dict[str, Callable[[Tables, Any], Any]] = {
    "adopt": adopt,
    "append": append,
    "truncate": truncate,
    "fork": fork,
    "delete": delete,
    "expire": expire,
    "configure": configure,
    "save_state": save_state,
    "save_facts": save_facts,
    "add_summary": add_summary,
    "touch": touch,
    "record_advancement": record_advancement,
    "push_episode": lambda tables, write: tables.buffers.push(write),
    "claim_episodes": lambda tables, write: tables.buffers.claim(write),
    "drop_episodes": lambda tables, write: tables.buffers.drop(write),
    "add_injected_id": lambda tables, write: tables.buffers.add_injected_id(
        write.place, write.session_id, write.item_id
    ),
    "clear_injected_ids": lambda tables, write: tables.buffers.clear_injected_ids(write),
    "prepare_spawn": prepare_spawn,
    "begin_spawn": begin_spawn,
    "roll_back_spawn": roll_back_spawn,
    "end_spawn": end_spawn,
    "sweep_spawns": sweep_spawns,
}


def apply(tables: Tables, write: Write) -> None:
    """Carry out one write, and set its `result` or `error`.

    A rule refuses before it changes anything, so a refusal needs no undoing. Whatever else is raised comes
    from the store itself, and leaves it to the store to undo the step.
    """
    write.result = None
    write.error = None
    try:
        write.result = _RULES[write.verb](tables, write)
    except StoreError as error:
        write.error = error
