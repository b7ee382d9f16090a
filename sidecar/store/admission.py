"""Whether a write may touch a session, and what the touch itself changes."""

from sidecar.store.errors import FormatMismatch, SessionExists, SessionMissing
from sidecar.store.identity import new_tag
from sidecar.store.primitives import Tables
from sidecar.store.records import SessionRecord
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Append

_REVISIONS = 20
"""Bits of a revision below the session's uid, so that a session made anew never has an earlier revision."""


def admitted(tables: Tables, ref: SessionRef, agent_id: str | None) -> SessionRecord:
    """The session, unless it is another agent's.

    Raises:
        SessionMissing: there is none, or it is another agent's.
    """
    record = tables.session(ref)
    if record is None:
        raise SessionMissing(f"there is no session {ref.session_id!r}")
    if agent_id is not None and record.agent_id is not None and record.agent_id != agent_id:
        raise SessionMissing(f"the session {ref.session_id!r} belongs to another agent")
    return record


def was_rewritten(record: SessionRecord) -> bool:
    """Whether stored messages of the session have ever changed in another way than by appending."""
    return record.revision != record.uid << _REVISIONS


def bind_agent(tables: Tables, record: SessionRecord, agent_id: str | None) -> None:
    """Let the session belong to the agent if it is nobody's yet."""
    if agent_id is not None and record.agent_id is None:
        record.agent_id = agent_id
        tables.save_session(record)


def admitted_or_created(tables: Tables, write: Append) -> SessionRecord:
    """The session to append to, made now if it is not there and may be, bound to its agent and key.

    Raises:
        SessionMissing: it is not there and may not be made, or is another agent's.
        FormatMismatch: it holds messages of another dialect.
    """
    if write.create and tables.session(write.ref) is None:
        record = create(tables, write.ref, write.message_format, write.agent_id)
    else:
        record = admitted(tables, write.ref, write.agent_id)
        if record.message_format != write.message_format:
            raise FormatMismatch(record.message_format)
        bind_agent(tables, record, write.agent_id)
    if write.session_key is not None:
        if record.session_key != write.session_key:
            record.session_key = write.session_key
            tables.save_session(record)
        tables.bind_key(write.ref.namespace, write.session_key, record.uid)
    return record


def create(tables: Tables, ref: SessionRef, message_format: str, agent_id: str | None) -> SessionRecord:
    """A new session without messages.

    Raises:
        SessionExists: the name is taken.
    """
    if tables.session(ref) is not None:
        raise SessionExists(f"the session {ref.session_id!r} is already there")
    record = SessionRecord(
        uid=0,
        ref=ref,
        message_format=message_format,
        tag=new_tag(),
        agent_id=agent_id,
        session_key=None,
        created_ms=tables.now_ms,
        updated_ms=tables.now_ms,
        revision=0,
    )
    tables.add_session(record)
    record.revision = record.uid << _REVISIONS
    tables.save_session(record)
    return record
