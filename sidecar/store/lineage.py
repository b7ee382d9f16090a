"""Which session owns which messages, where sessions share their beginnings.

A fork copies nothing: the child notes its `parent` and how many messages it shares. A session never refers
through a parent that itself only shares the messages in question, so `shared` rises along a chain of forks.
"""

from sidecar.store.identity import number_in
from sidecar.store.primitives import RowReads, Tables
from sidecar.store.records import MessageRow, SessionRecord


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
