"""The rules of the writes that keep something beside the messages, or erase a session whole."""

from sidecar.store.admission import admitted
from sidecar.store.lineage import owner_at, part_from_forks
from sidecar.store.primitives import Tables
from sidecar.store.records import SessionRecord
from sidecar.store.stored import SessionSettings
from sidecar.store.writes import AddSummary, Configure, Delete, RecordAdvancement, SaveFacts, SaveState, Touch


def delete(tables: Tables, write: Delete) -> bool:
    """Apply a `Delete`; whether the session was there.

    Raises:
        SessionMissing: it is another agent's.
    """
    there = tables.session(write.ref) is not None
    if there:
        record = admitted(tables, write.ref, write.agent_id)
        part_from_forks(tables, record, 0, keep=False)
        tables.drop_session(record)
    tables.drop_belongings(write.ref)
    return there


def configure(tables: Tables, write: Configure) -> None:
    """Apply a `Configure`: what is `None` stays as it is."""
    before = tables.settings_of(write.namespace, write.scope, write.scope_id)
    settings = SessionSettings(
        before.engine if write.engine is None else write.engine,
        before.config if write.config is None else write.config,
    )
    tables.save_settings(write.namespace, write.scope, write.scope_id, settings)


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
    if record is not None:
        _touch(tables, record)
    return record is not None


def _touch(tables: Tables, record: SessionRecord) -> None:
    record.updated_ms = tables.now_ms
    tables.save_session(record)


def record_advancement(tables: Tables, write: RecordAdvancement) -> bool:
    """Apply a `RecordAdvancement`; true where the key is new."""
    return tables.record_key(write.ref, write.advancement_key)
