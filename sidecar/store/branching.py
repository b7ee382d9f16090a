"""The rules of `Fork` and `Truncate`."""

from sidecar.store.admission import admitted, bind_agent, create, is_foreign
from sidecar.store.errors import MessageMissing, SessionExists, SessionTaken
from sidecar.store.lineage import link, owner_at, part_from_forks, place_of_id, spans
from sidecar.store.primitives import Tables
from sidecar.store.records import SessionRecord
from sidecar.store.stored import SessionHead, SessionRef
from sidecar.store.writes import Fork, Truncate


def fork(tables: Tables, write: Fork) -> SessionHead:
    """Apply a `Fork`.

    Raises:
        SessionMissing: the parent is not there or is another agent's.
        SessionExists: the child's name is taken; `SessionTaken` where another agent has it.
        MessageMissing: the parent has no such message.
    """
    parent = admitted(tables, write.parent, write.agent_id)
    count = _place(tables, parent, write.at_message_id)
    taken = tables.session(write.child)
    if taken is not None and is_foreign(taken.agent_id, write.agent_id):
        raise SessionTaken(write.child.session_id)
    if taken is not None:
        raise SessionExists(f"the session {write.child.session_id!r} is already there")
    bind_agent(tables, parent, write.agent_id)
    child = create(tables, write.child, parent.message_format, parent.agent_id)
    child.family, child.first_edition = parent.root, parent.first_edition
    child.message_count = count
    link(tables, child, parent, count)
    _set_turns(tables, child, parent)
    tables.save_session(child)
    tables.copy_summaries(parent.uid, child.uid, count)
    tables.copy_state(write.parent, write.child)
    _inherit_settings(tables, write.parent, write.child)
    return child.head()


def truncate(tables: Tables, write: Truncate) -> int:
    """Apply a `Truncate`; the number of messages removed.

    Raises:
        SessionMissing: the session is not there or is another agent's.
        MessageMissing: the session has no such message.
    """
    record = admitted(tables, write.ref, write.agent_id)
    count = 0 if write.after_message_id is None else _place(tables, record, write.after_message_id)
    bind_agent(tables, record, write.agent_id)
    removed = record.message_count - count
    if not removed:
        return 0
    part_from_forks(tables, record, count, keep=False)
    tables.drop_rows(record.uid, max(count, record.shared) + 1)
    tables.drop_summaries_behind(record.uid, count)
    if count < record.shared:
        link(tables, record, record, count)
    record.lift += removed
    record.message_count = count
    _set_turns(tables, record, record)
    record.revision += 1
    record.updated_ms = tables.now_ms
    tables.save_session(record)
    return removed


def _place(tables: Tables, record: SessionRecord, message_id: str | None) -> int:
    if message_id is None:
        return record.message_count
    place = place_of_id(tables, record, message_id)
    if place is None:
        raise MessageMissing(f"the session {record.ref.session_id!r} has no message {message_id!r}")
    return place


def _set_turns(tables: Tables, record: SessionRecord, source: SessionRecord) -> None:
    """Work the newest turn out of the messages that the session has."""
    count = record.message_count
    if record is not source and count == source.message_count:
        record.turn_count, record.turn_label = source.turn_count, source.turn_label
        record.turn_opened = source.turn_opened
        return
    record.turn_count, record.turn_label, record.turn_opened = 0, None, False
    if count:
        newest = tables.keyed_rows(owner_at(tables, record, count).uid, count, count)[0]
        record.turn_count, record.turn_label = newest.turn, newest.turn_label
        record.turn_opened = newest.turn > 1 or any(
            tables.opener_before(owner.uid, last) for owner, _, last in spans(tables, record, 1, count)
        )


def _inherit_settings(tables: Tables, parent: SessionRef, child: SessionRef) -> None:
    """Give the child the parent's settings; what was configured for the child before stays."""
    theirs = tables.settings_of(parent.namespace, "session", parent.session_id)
    own = tables.settings_of(child.namespace, "session", child.session_id)
    merged = own._replace(
        engine=theirs.engine if own.engine is None else own.engine,
        config=theirs.config if own.config is None else own.config,
    )
    if merged != own:
        tables.save_settings(child.namespace, "session", child.session_id, merged)
