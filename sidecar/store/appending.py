"""The rules of `Append`."""

from sidecar.store.admission import admitted_or_created
from sidecar.store.errors import MessageMissing
from sidecar.store.inserting import insert
from sidecar.store.primitives import Tables
from sidecar.store.storing import store_at_end
from sidecar.store.writes import Append, AppendResult


def append(tables: Tables, write: Append) -> AppendResult:
    """Apply an `Append`.

    Raises:
        SessionMissing: the session is not there and may not be made, or is another agent's.
        FormatMismatch: the session holds messages of another dialect.
        MessageMissing: a message goes behind a position that is not there.
    """
    inserts = _check_places(tables, write)
    record = admitted_or_created(tables, write)
    key = write.advancement_key
    if key is not None and not tables.record_key(write.ref, key):
        return AppendResult([], True, record.head())
    if inserts:
        items = insert(tables, record, write.messages)
    else:
        items = [store_at_end(tables, record, message) for message in write.messages]
    return AppendResult(items, False, record.head())


def _check_places(tables: Tables, write: Append) -> bool:
    """Whether any message goes elsewhere than the end."""
    places = [message.after for message in write.messages if message.after is not None]
    if not places:
        return False
    record = tables.session(write.ref)
    count = 0 if record is None else record.message_count
    if min(places) < 0 or max(places) > count:
        raise MessageMissing(f"a message goes behind position {max(places)}, the session has {count}")
    return True
