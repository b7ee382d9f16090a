"""Bundles: segments with messages of many sessions, so that a search of all of them reads little."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from sidecar.store.indexing.jobs import IndexStore, Job, copied, rested_before_ms
from sidecar.store.indexing.merging import merged, starts_of
from sidecar.store.indexing.segments import Segment, SegmentShelf
from sidecar.store.indexing.shelf import NOWHERE, ListedPlaces, PlaceFinder, Places

FULL = 16_384
"""Messages in a bundle at most. All of it is indexed anew when one of its sessions is erased."""
ENOUGH = 8_192
"""Messages from which a bundle is worth making, and segments are left alone."""
MANY = 128
"""Segments that are worth a bundle however short they are."""
_MOST_TERMS = 4 << 20
"""Occurrences of terms in a bundle at most, about."""


class LooseSegment(NamedTuple):
    """A segment that could be bundled, and with which others."""

    segment: Segment
    namespace: str
    agent_id: str | None


def bundle(tables: IndexStore, retire: Callable[[list[int]], None]) -> Job:
    """Bundle what there is of segments of sessions at rest; `retire` is told which to erase afterwards.

    The value is whether to look again, because a session was changed meanwhile.
    """
    again = False
    for parts in _groups(tables.loose(rested_before_ms(), ENOUGH)):
        completed = yield from _bundle(tables, parts, retire)
        again = again or not completed
    return again


def _bundle(tables: IndexStore, parts: Sequence[Segment], retire: Callable[[list[int]], None]) -> Job:
    """Make one bundle; whether it was completed."""
    record = tables.session_now(parts[0].session)
    if record is None:
        return False
    target = merged(parts, tables.block)._replace(session=0, first=0)
    numbers = [part.segment for part in parts]
    with tables.step(record):
        if [tables.find(number) for number in numbers] != parts:
            return False
        made = tables.add(target, live=False)
        tables.promise(numbers, made)
    blocks = yield from copied(tables, record, parts, target._replace(segment=made))
    if blocks is None:
        return False
    with tables.step(record):
        now = [tables.find(number) for number in numbers]
        if not tables.exists(made) or None in now:
            retire([made])
            return False
        tables.add_blocks(made, blocks)
        tables.reveal(made, 0)
        tables.retire(numbers)
        for part, start in zip(now, starts_of(parts), strict=True):
            assert part is not None
            held = part._replace(term_bits=target.term_bits, bundle=made, start=start)
            tables.add(held, live=True)
    retire(numbers)
    yield
    return True


def _groups(loose: Sequence[LooseSegment]) -> Iterator[list[Segment]]:
    """What makes a bundle each; what is left over waits for more."""
    for _, alike in groupby(loose, lambda each: each[1:]):
        group: list[Segment] = []
        size = terms = 0
        for each in alike:
            part = each.segment
            if group and (size + part.size > FULL or terms + part.total > _MOST_TERMS):
                yield group
                group, size, terms = [], 0, 0
            group.append(part)
            size += part.size
            terms += part.total
        if size >= ENOUGH or terms >= _MOST_TERMS // 2 or len(group) >= MANY:
            yield group


class HeldShelf(SegmentShelf):
    """The messages of one session in a bundle."""

    def places(self, term: str) -> Places:
        """See `Shelf`."""
        ordinals, counts = super().places(term)
        start = self._segment.start
        low, high = bisect_left(ordinals, start), bisect_left(ordinals, start + self.count)
        if low == high:
            return NOWHERE
        return Places([ordinal - start for ordinal in ordinals[low:high]], counts[low:high])

    def finder(self, term: str) -> PlaceFinder:
        """See `Shelf`."""
        return ListedPlaces(self.places(term))

    def frequency(self, term: str) -> int:
        """See `Shelf`."""
        return len(self.places(term).ordinals) if super().frequency(term) else 0

    def lengths(self) -> Sequence[int]:
        """See `Shelf`."""
        start = self._segment.start
        return super().lengths()[start : start + self.count]


class BundleShelf(SegmentShelf):
    """All messages of a bundle, whatever session they are of; `held` are those of the sessions searched."""

    held: Sequence[Segment] = ()

    def stamps(self, low: int, high: int) -> Sequence[int]:
        """See `Shelf`; 0 for messages of sessions that are not searched."""
        found = [0] * self.count
        for part in self.held:
            stamps = self._read_stamps(part.session, part.first, part.behind - 1)
            found[part.start : part.start + part.size] = stamps
        return found[low:high]
