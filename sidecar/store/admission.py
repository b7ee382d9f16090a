"""Whether a write may touch a session, and what the touch itself changes."""

from collections.abc import Callable, Mapping

from sidecar.store.errors import FormatMismatch, SessionExists, SessionMissing, SessionTaken
from sidecar.store.primitives import Tables
from sidecar.store.records import SessionRecord, new_tag
from sidecar.store.stored import SessionRef, SessionSettings
from sidecar.store.writes import Adopt, Append

_REVISIONS = 20
"""Bits of a revision below the session's uid, so that a session made anew never has an earlier revision."""


def is_foreign(owner: str | None, agent_id: str | None) -> bool:
    """Whether what `owner` owns is hidden from the agent; the host itself, which is no agent, sees all."""
    return owner is not None and agent_id is not None and owner != agent_id


def set_for(session_id: str, agent_id: str) -> str:
    """Under which name settings wait that an agent made for a session which is not its own, or not yet."""
    return f"{session_id}\0{agent_id}"


def meant_by_key(
    bound: Mapping[str | None, int], agent_id: str | None, session_of: Callable[[int], SessionRecord]
) -> SessionRecord | None:
    """The session that an agent means by a key, of those that each agent has bound to it.

    Behind its own binding stands that of the host, as far as the session may be seen. The host means its own,
    or that of the only agent that has one.
    """
    uid = bound.get(agent_id)
    if uid is None and agent_id is not None:
        uid = bound.get(None)
    elif uid is None and len(bound) == 1:
        uid = next(iter(bound.values()))
    record = None if uid is None else session_of(uid)
    return None if record is None or is_foreign(record.agent_id, agent_id) else record


def admitted(tables: Tables, ref: SessionRef, agent_id: str | None) -> SessionRecord:
    """The session, unless it is another agent's.

    Raises:
        SessionMissing: there is none, or it is another agent's.
    """
    record = tables.session(ref)
    if record is None or is_foreign(record.agent_id, agent_id):
        raise SessionMissing(f"there is no session {ref.session_id!r}")
    return record


def was_rewritten(record: SessionRecord) -> bool:
    """Whether stored messages of the session have ever changed in another way than by appending."""
    return record.revision != record.uid << _REVISIONS


def bind_agent(tables: Tables, record: SessionRecord, agent_id: str | None) -> None:
    """Let the session belong to the agent if it is nobody's yet."""
    if agent_id is not None and record.agent_id is None:
        record.agent_id = agent_id
        tables.save_session(record)
        _take_settings(tables, record)


def adopt(tables: Tables, write: Adopt) -> None:
    """Apply an `Adopt`.

    Raises:
        SessionMissing: the session is not there or is another agent's.
    """
    bind_agent(tables, admitted(tables, write.ref, write.agent_id), write.agent_id)


def _take_settings(tables: Tables, record: SessionRecord) -> None:
    """Put the settings in force that the agent made before the session was its own."""
    namespace, session_id = record.ref
    if record.agent_id is None:
        return
    waiting = SessionRef(namespace, set_for(session_id, record.agent_id))
    engine, config = tables.settings_of(namespace, "session", waiting.session_id)
    if engine is None and config is None:
        return
    own = tables.settings_of(namespace, "session", session_id)
    merged = SessionSettings(engine or own.engine, config or own.config)
    tables.save_settings(namespace, "session", session_id, merged)
    tables.drop_belongings(waiting)


def admitted_or_created(tables: Tables, write: Append) -> SessionRecord:
    """The session to append to, made now if it is not there and may be, bound to its agent and key.

    Raises:
        SessionMissing: it is not there and may not be made, or is another agent's.
        FormatMismatch: it holds messages of another dialect.
    """
    known = tables.session(write.ref)
    if write.create and known is None:
        record = create(tables, write.ref, write.message_format, write.agent_id)
    else:
        if write.create and known is not None and is_foreign(known.agent_id, write.agent_id):
            raise SessionTaken(write.ref.session_id)
        record = admitted(tables, write.ref, write.agent_id)
        if record.message_format != write.message_format:
            raise FormatMismatch(record.message_format)
        bind_agent(tables, record, write.agent_id)
    if write.session_key is not None:
        if record.session_key != write.session_key:
            record.session_key = write.session_key
            tables.save_session(record)
        tables.bind_key(write.ref.namespace, write.session_key, write.agent_id, record.uid)
    return record


def create(tables: Tables, ref: SessionRef, message_format: str, agent_id: str | None) -> SessionRecord:
    """A new session without messages; one that was prepared for an agent is that agent's.

    Raises:
        SessionTaken: it is there or prepared, and another agent's.
        SessionExists: it is there.
    """
    known, spawn = tables.session(ref), tables.spawns.of_session(ref)
    prepared_for = None if spawn is None else spawn.child_agent_id
    if is_foreign(known.agent_id if known else prepared_for, agent_id):
        raise SessionTaken(ref.session_id)
    if known is not None:
        raise SessionExists(f"the session {ref.session_id!r} is already there")
    record = SessionRecord(
        uid=0,
        ref=ref,
        message_format=message_format,
        tag=new_tag(),
        agent_id=prepared_for or agent_id,
        session_key=None,
        created_ms=tables.now_ms,
        updated_ms=tables.now_ms,
        revision=0,
    )
    tables.add_session(record)
    record.revision = record.uid << _REVISIONS
    tables.save_session(record)
    _take_settings(tables, record)
    return record
