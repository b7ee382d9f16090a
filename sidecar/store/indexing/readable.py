"""Which messages an agent may read in a namespace, each of them once."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from sidecar.store.lineage import spans
from sidecar.store.primitives import RowReads
from sidecar.store.records import SessionRecord
from sidecar.store.stored import SessionRef


class Stretch(NamedTuple):
    """Messages that one session owns."""

    told: SessionRecord
    """The session that they are told as messages of: the owner, or a fork that shares them."""
    owner: SessionRecord
    first: int
    last: int


def stretches(
    reads: RowReads, readable: Iterable[SessionRecord], without: Collection[SessionRef]
) -> list[Stretch]:
    """All messages of the sessions that may be read, by rising uid of their owners.

    What forks share of a session is always its beginning, so of each session one stretch is left.
    """
    left_out = set(without)
    told: dict[int, Stretch] = {}
    hidden: dict[int, int] = {}
    """By uid of the owner: up to which position its messages belong to a session that is left out."""
    for record in readable:
        if record.ref in left_out:
            continue
        if record.message_count > record.shared:
            told[record.uid] = Stretch(record, record, record.shared + 1, record.message_count)
        if record.parent is not None:
            for owner, first, last in spans(reads, record, 1, record.shared):
                known = told.get(owner.uid)
                if known is None or known.last < last:
                    told[owner.uid] = Stretch(record, owner, first, last)
    for ref in left_out:
        record = reads.session(ref)
        for owner, _, last in () if record is None else spans(reads, record, 1, record.message_count):
            hidden[owner.uid] = max(last, hidden.get(owner.uid, 0))
    found = (
        stretch._replace(first=max(stretch.first, hidden.get(uid, 0) + 1)) for uid, stretch in told.items()
    )
    return sorted(
        (stretch for stretch in found if stretch.first <= stretch.last), key=lambda each: each.owner.uid
    )
