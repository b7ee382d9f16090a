"""What a search of all sessions looks through, kept from one search to the next."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from sidecar.store.indexing.covering import Part, SearchReads, Sums, covers
from sidecar.store.indexing.readable import Stretch, stretches
from sidecar.store.indexing.segments import Segment
from sidecar.store.indexing.shelf import View
from sidecar.store.records import SessionRecord
from sidecar.store.stored import SessionRef

_KEPT = 8
"""Catalogues that are kept."""


class Scope(NamedTuple):
    """Which messages are searched."""

    namespace: str
    agent_id: str | None
    without: Collection[SessionRef] = ()


class Shown(NamedTuple):
    """A view, with the messages that it shows."""

    view: View
    uid: int
    """Of the oldest session of which there are messages."""
    place: Callable[[int], tuple[SessionRef, int]]
    """The session and position of a message, by its ordinal."""


class Loose(NamedTuple):
    """A part of a session that is in no bundle as a whole."""

    stretch: Stretch
    part: Part
    segment: Segment | None


class Catalogue:
    """The sessions of a scope, with what is indexed of them."""

    def __init__(self, reads: SearchReads, scope: Scope) -> None:
        self.records = reads.readable(scope.namespace, scope.agent_id)
        found = stretches(reads, self.records, scope.without)
        self.stretches = {stretch.owner.uid: stretch for stretch in found}
        """By uid of the owner, which rises."""
        self.loose: dict[int, list[Loose]] = {}
        self.held: dict[int, list[Segment]] = {}
        """What is in bundles, by uid of the owner."""
        self.bundles: dict[int, list[Segment]] = {}
        """The same by the number of the bundle."""
        self.segments: dict[int, list[Segment]] = {}
        self.within: dict[int, int] = {}
        """The bundle in which all messages of a session are, by uid of the owner."""
        self._starts: dict[int, list[int]] = {}
        self._sizes: dict[int, int] = {}
        self.homely = True
        """Whether all messages are of sessions of the namespace itself."""
        for segment in reads.segments_in(scope.namespace):
            self.segments.setdefault(segment.session, []).append(segment)
        for stretch in found:
            uid = stretch.owner.uid
            if stretch.owner.ref.namespace != scope.namespace:
                self.homely = False
                self.segments[uid] = reads.segments(uid, 1, stretch.last)
            self.divide(stretch)
        for held in self.bundles.values():
            held.sort(key=_start)

    def divide(self, stretch: Stretch) -> None:
        """Note what is indexed of a session's messages in which way; what is in bundles stays as it is."""
        owner = stretch.owner
        uid = owner.uid
        self.stretches[uid] = stretch
        known = {segment.segment for segment in self.held.get(uid, ())}
        loose: list[Loose] = []
        covering = ((segment.first, segment.size, segment) for segment in self.segments.get(uid, ()))
        for first, last, segment, start in covers(covering, owner, stretch.first, stretch.last):
            if segment is not None and segment.bundle > 0 and last - first + 1 == segment.size:
                if segment.segment not in known:
                    self.held.setdefault(uid, []).append(segment)
                    self.bundles.setdefault(segment.bundle, []).append(segment)
            else:
                loose.append(Loose(stretch, Part(owner, first, last, None, start), segment))
        self.within.pop(uid, None)
        if loose:
            self.loose[uid] = loose
        else:
            self.loose.pop(uid, None)
            if len(held := self.held.get(uid, ())) == 1:
                self.within[uid] = held[0].bundle

    def shown_bundles(self, reads: SearchReads, without: Collection[int]) -> Iterator[Shown]:
        """The bundles, without the sessions with these uids."""
        for number in self.bundles:
            shown = self.shown_bundle(reads, number, without)
            if shown is not None:
                yield shown

    def shown_bundle(self, reads: SearchReads, number: int, without: Collection[int] = ()) -> Shown | None:
        """One bundle, `None` where nothing is left of it."""
        header = reads.bundle(number)
        held = self.bundles[number]
        some = [segment for segment in held if segment.session not in without] if without else held
        if header is None or not some:
            return None
        view = View(reads.bundle_shelf(header, some), 0, header.size)
        size = sum(segment.size for segment in some) if without else self._size_of(number)
        if size < header.size:
            view = view._replace(ranges=tuple(range(s.start, s.start + s.size) for s in some))
        starts = self._starts_in(number)

        def place(ordinal: int) -> tuple[SessionRef, int]:
            segment = held[bisect_right(starts, ordinal) - 1]
            return self.stretches[segment.session].told.ref, ordinal - segment.start + segment.first

        return Shown(view, some[0].session, place)

    def owners(self, number: int, ordinals: Iterable[int]) -> set[int]:
        """The uids of the sessions of which messages are in a bundle, by their ordinals there."""
        held, starts = self.bundles[number], self._starts_in(number)
        return {held[bisect_right(starts, ordinal) - 1].session for ordinal in ordinals}

    def _size_of(self, number: int) -> int:
        size = self._sizes.get(number)
        if size is None:
            size = self._sizes[number] = sum(segment.size for segment in self.bundles[number])
        return size

    def _starts_in(self, number: int) -> list[int]:
        starts = self._starts.get(number)
        if starts is None:
            starts = self._starts[number] = [segment.start for segment in self.bundles[number]]
        return starts


class _Kept:
    """A catalogue, and what tells whether it is still right."""

    def __init__(self, reads: SearchReads, scope: Scope, sums: Sums) -> None:
        self._scope = scope
        self.sums = sums
        self.catalogue = Catalogue(reads, scope)
        self._records = {record.uid: record for record in self.catalogue.records}
        self._stamp = max((record.updated_ms for record in self._records.values()), default=0)
        self._newest = max(
            (segment.segment for each in self.catalogue.segments.values() for segment in each), default=0
        )
        self.related = {record.uid for record in self._records.values() if record.parent is not None}
        self.related.update(record.parent for record in self._records.values() if record.parent is not None)
        """Sessions that share messages with others."""
        self.related.update(
            uid for uid, stretch in self.catalogue.stretches.items() if stretch.told is not stretch.owner
        )

    def catch_up(self, reads: SearchReads, now: Sums) -> bool:
        """Follow what was added to sessions and indexed of them. False where something else has happened."""
        changed = reads.changed_since(*self._scope[:2], self._stamp)
        fresh = reads.segments_after(self._newest)
        before = [known for record in changed if (known := self._records.get(record.uid))]
        expected = _added(self.sums, _sums(before, ()), -1)
        if _added(expected, _sums(changed, fresh), 1) != now or not self._simple(changed, fresh):
            return False
        for segment in fresh:
            self._newest = max(self._newest, segment.segment)
            known = self.catalogue.segments.setdefault(segment.session, [])
            known.append(segment)
            known.sort(key=lambda each: each.first)
        for record in changed:
            self._records[record.uid] = record
            self._stamp = max(self._stamp, record.updated_ms)
        for uid in {segment.session for segment in fresh}.union(record.uid for record in changed):
            record = self._records.get(uid)
            if record is not None and record.message_count > record.shared:
                self.catalogue.divide(Stretch(record, record, record.shared + 1, record.message_count))
        self.sums = now
        return True

    def _simple(self, changed: Iterable[SessionRecord], fresh: Iterable[Segment]) -> bool:
        if any(segment.bundle or not segment.session for segment in fresh):
            return False
        for record in changed:
            known = self._records.get(record.uid)
            if record.parent is not None or record.uid in self.related:
                return False
            if known is not None and (
                known.revision != record.revision
                or known.message_count > record.message_count
                or known.ref != record.ref
            ):
                return False
        return self.catalogue.homely and not any(segment.session in self.related for segment in fresh)


class Catalogues:
    """The catalogues of the scopes that were searched last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str | None], _Kept] = OrderedDict()

    def catalogue(self, reads: SearchReads, scope: Scope) -> tuple[Catalogue, set[int]]:
        """What is to be searched, and the uids of sessions in it that are left out."""
        sums = reads.sums(scope.namespace, scope.agent_id)
        if sums is None:
            return Catalogue(reads, scope), set()
        key = scope.namespace, scope.agent_id
        kept = self._kept.pop(key, None)
        if kept is None or (kept.sums != sums and not kept.catch_up(reads, sums)):
            kept = _Kept(reads, scope._replace(without=()), sums)
        self._kept[key] = kept
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        left_out = {record.uid: record for ref in scope.without if (record := reads.session(ref))}
        if kept.related.intersection(left_out) or any(each.parent is not None for each in left_out.values()):
            return Catalogue(reads, scope), set()
        return kept.catalogue, set(left_out)


def _sums(records: Collection[SessionRecord], segments: Collection[Segment]) -> Sums:
    return Sums(
        len(records),
        sum(record.uid for record in records),
        sum(record.updated_ms for record in records),
        sum(record.message_count for record in records),
        sum(record.revision for record in records),
        sum(record.shared for record in records),
        len(segments),
        sum(segment.segment for segment in segments),
        sum(segment.session for segment in segments),
        sum(segment.first for segment in segments),
        sum(segment.bundle for segment in segments),
    )


def _added(to: Sums, more: Sums, times: int) -> Sums:
    return Sums(*(value + times * each for value, each in zip(to, more, strict=True)))


def _start(segment: Segment) -> int:
    return segment.start
