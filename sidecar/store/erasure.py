"""How sessions are erased: long ones in bounded steps, without ever being there in part."""

from typing import Literal, NamedTuple

from sidecar.store.admission import is_foreign, set_for
from sidecar.store.forks import part_from_forks
from sidecar.store.primitives import Tables
from sidecar.store.records import SessionRecord
from sidecar.store.stored import SessionHead, SessionRef
from sidecar.store.writes import Delete, Write

AT_ONCE = 200
"""Messages of a session up to which it is erased in the step of its `Delete`."""
STEP = 64
"""Messages of a longer session that are erased in one step, behind the answer: about 4 ms of the writer."""
EXPIRED = "\0expired"
"""The namespace of sessions that are being erased. No host can name it."""


class Expire(Write):
    """Erase a session that is still as `head` says, or a part of one that is being erased.

    More than `most` messages of its own are not erased in one step: the session is set aside, where nobody
    finds it, and `rest` is what to go on with. `result`: `Expiry`.
    """

    __slots__ = ("head", "most", "ref")
    verb = "expire"
    result: "Expiry"

    def __init__(self, head: SessionHead, *, most: int) -> None:
        super().__init__()
        self.ref = head.ref
        self.head = head
        self.most = most


class Expiry(NamedTuple):
    """What an `Expire` did."""

    outcome: Literal["erased", "changed", "missing"]
    """`erased` also where the session is set aside: it is gone for everybody."""
    rest: SessionHead | None = None
    """What is left to erase."""


def delete(tables: Tables, write: Delete) -> bool:
    """Apply a `Delete`; whether the session was there for the agent.

    A long session is set aside, where nobody finds it, and erased in steps by the store.
    """
    record = tables.session(write.ref)
    waiting = write.ref
    if write.agent_id is not None:
        waiting = SessionRef(write.ref.namespace, set_for(write.ref.session_id, write.agent_id))
        tables.drop_belongings(waiting)
    if record is not None and is_foreign(record.agent_id, write.agent_id):
        # Nothing is left to drop, but it takes as long as for a session that is missing.
        tables.drop_belongings(waiting)
        return False
    tables.drop_belongings(write.ref)
    if record is not None and record.message_count - record.shared > AT_ONCE:
        tables.rename_session(record, SessionRef(EXPIRED, str(record.uid)))
    elif record is not None:
        _erase(tables, record)
    return record is not None


def is_set_aside(ref: SessionRef) -> bool:
    """Whether a session is being erased."""
    return ref.namespace == EXPIRED


def expire(tables: Tables, write: Expire) -> Expiry:
    """Apply an `Expire`."""
    record = tables.session(write.ref)
    if record is None or record.uid != write.head.uid:
        return Expiry("missing")
    if not is_set_aside(record.ref) and _state(record.head()) != _state(write.head):
        return Expiry("changed")
    if record.message_count - record.shared <= write.most:
        tables.drop_belongings(record.ref)
        _erase(tables, record)
        return Expiry("erased")
    if is_set_aside(record.ref):
        _drop_newest(tables, record, write.most)
    else:
        tables.drop_belongings(record.ref)
        tables.rename_session(record, SessionRef(EXPIRED, str(record.uid)))
    return Expiry("erased", record.head())


def _erase(tables: Tables, record: SessionRecord) -> None:
    part_from_forks(tables, record, 0, keep=False)
    tables.drop_session(record)


def _state(head: SessionHead) -> tuple[int, int, int]:
    return head.message_count, head.revision, head.updated_ms


def _drop_newest(tables: Tables, record: SessionRecord, most: int) -> None:
    """Free the newest messages, which forks may go on having."""
    count = record.message_count - most
    part_from_forks(tables, record, count, keep=False)
    tables.drop_rows(record.uid, count + 1)
    tables.drop_summaries_behind(record.uid, count)
    record.message_count = count
    record.revision += 1
    tables.save_session(record)
