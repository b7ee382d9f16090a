"""Which session owns which messages, where sessions share their beginnings.

A fork copies nothing: the child notes its `parent` and how many messages it shares. A session never refers
through a parent that itself only shares the messages in question, so `shared` rises along a chain of forks.
"""

from sidecar.store.admission import admitted, bind_agent, create, is_foreign
from sidecar.store.errors import MessageMissing, SessionExists, SessionTaken
from sidecar.store.primitives import RowReads, Tables
from sidecar.store.records import MessageRow, SessionRecord, number_in
from sidecar.store.stored import SessionHead, SessionRef
from sidecar.store.writes import Fork, Truncate


def spans(
    reads: RowReads, record: SessionRecord, first: int, last: int
) -> list[tuple[SessionRecord, int, int]]:
    """The owners of the messages at positions `first` to `last`, with the part that each owns, in order."""
    first = max(first, 1)
    found: list[tuple[SessionRecord, int, int]] = []
    while first <= last:
        if last > record.shared:
            found.append((record, max(first, record.shared + 1), last))
        last = min(last, record.shared)
        if record.parent is None or first > last:
            break
        record = reads.session_of(record.parent)
    found.reverse()
    return found


def owner_at(reads: RowReads, record: SessionRecord, position: int) -> SessionRecord:
    """The session that owns the message at this position."""
    while record.parent is not None and position <= record.shared:
        record = reads.session_of(record.parent)
    return record


def place_of_id(reads: RowReads, record: SessionRecord, message_id: str) -> int | None:
    """The position of a message by its id."""
    limit = record.message_count
    while True:
        number = number_in(record.tag, message_id)
        place = None if number is None else reads.place_of_number(record.uid, number)
        if place is None:
            place = reads.place_of_name(record.uid, message_id)
        if place is not None and place <= limit:
            return place
        if record.parent is None:
            return None
        limit = record.shared
        record = reads.session_of(record.parent)


def place_of_inner_id(reads: RowReads, record: SessionRecord, inner_id: str) -> int | None:
    """The position of the first message with this id inside it."""
    limit = record.message_count
    first = None
    while True:
        place = reads.place_of_inner_id(record.uid, inner_id)
        if place is not None and place <= limit:
            first = place
        if record.parent is None:
            return first
        limit = record.shared
        record = reads.session_of(record.parent)


def row_at(reads: RowReads, record: SessionRecord, position: int) -> tuple[SessionRecord, MessageRow]:
    """The row at a position that is there, with its owner."""
    owner = owner_at(reads, record, position)
    return owner, reads.rows(owner.uid, position, position)[0]


def link(reads: RowReads, record: SessionRecord, source: SessionRecord, shared: int) -> None:
    """Let a session share the first messages of another, by way of the one that owns them."""
    while source.parent is not None and shared <= source.shared:
        source = reads.session_of(source.parent)
    record.parent, record.shared = (source.uid, shared) if shared > 0 else (None, 0)


def part_from_forks(tables: Tables, record: SessionRecord, after: int, *, keep: bool) -> None:
    """Free the messages behind a position of the forks that still share them.

    The fork that shares most becomes the owner of what the forks would lose (of copies where `keep`, because
    the session goes on having them), and the other forks share it with that one.
    """
    forks = [fork for fork in tables.children(record.uid) if fork.shared > after]
    if not forks:
        return
    heir = max(forks, key=lambda fork: fork.shared)
    kept = max(after, record.shared)
    pass_on = tables.copy_rows if keep else tables.move_rows
    pass_on(record, heir.uid, kept + 1, heir.shared)
    for fork in forks:
        if fork is not heir:
            fork.parent = heir.uid
            tables.save_session(fork)
    link(tables, heir, record, kept)
    tables.save_session(heir)


def own_behind(tables: Tables, record: SessionRecord, after: int) -> None:
    """Make the session the owner of copies of every message behind a position that it only shares."""
    if after >= record.shared:
        return
    for owner, first, last in spans(tables, record, after + 1, record.shared):
        tables.copy_rows(owner, record.uid, first, last)
    link(tables, record, record, after)


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
