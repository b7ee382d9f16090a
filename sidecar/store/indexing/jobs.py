"""The jobs of indexing: messages into a segment, segments into a larger one."""

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from sidecar.store.expiring import is_set_aside
from sidecar.store.indexing.building import blocks_of, segment_of
from sidecar.store.indexing.gathering import Gathered
from sidecar.store.indexing.merging import merged, merged_blocks
from sidecar.store.indexing.segments import Blocks, Segment
from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.search import Extract

if TYPE_CHECKING:
    from sidecar.store.indexing.bundles import LooseSegment

CHUNK = 255
"""Messages in a new segment; until there are so many, searches look at the messages themselves."""
FEW = 16
"""Messages that are enough for a segment in a session to which nothing is added any more, as it seems."""
RESTED_MS = 600_000
"""Since when nothing was added to it."""
LEVELS = ((2_000, 8), (16_000, 8), (40_000, 4))
"""For each level the size from which a segment is of the next one, and how many neighbours are merged. Those
behind the last level are left as they are; 8 * 255 * 8 * 4 messages are as many as a segment can hold."""
_CHUNK_CHARACTERS = 256 << 10
"""Text from which fewer messages make a segment."""
_BATCH = 16
_MOST = 0xFFFF
WRITE_BYTES = 128 << 10
"""Blocks that are written in one transaction, about."""
_END = 1 << 62

Job = Generator[None, None, bool]
"""A job in steps; its value is whether there was anything to do."""


class IndexStore(Protocol):
    """What a store keeps of its index, and how it is changed. Segments with `live` are seen by searches."""

    def step(self, session: SessionRecord | None) -> AbstractContextManager[None]:
        """A transaction, in which nobody else changes the session."""
        ...

    def session_now(self, uid: int) -> SessionRecord | None:
        """The session, if it is still there."""
        ...

    def rows(self, uid: int, first: int, last: int) -> list[MessageRow]:
        """See `RowReads`."""
        ...

    def size(self, uid: int, first: int, last: int) -> int:
        """Bytes of the bodies at these positions."""
        ...

    def segments(self, uid: int, first: int, last: int) -> list[Segment]:
        """Live segments of messages that a session owns, where they overlap these positions, in order."""
        ...

    def block(self, segment: int, number: int) -> bytes | None:
        """A block of a segment, `unpacked`."""
        ...

    def loose(self, before_ms: int, below: int) -> "list[LooseSegment]":
        """Live segments of fewer messages, in no bundle, of sessions not written to since.

        By namespace, agent, session and position.
        """
        ...

    def promise(self, segments: list[int], bundle: int) -> None:
        """Note that these segments are copied into a bundle, which goes when one of them does."""
        ...

    def add(self, segment: Segment, *, live: bool) -> int:
        """Note a segment; the number given to it."""
        ...

    def add_blocks(self, segment: int, blocks: Blocks) -> None:
        """Keep blocks of a segment."""
        ...

    def exists(self, segment: int) -> bool:
        """Whether a segment has not been erased."""
        ...

    def find(self, segment: int) -> Segment | None:
        """A live segment."""
        ...

    def reveal(self, segment: int, first: int) -> None:
        """Make a segment live, which begins at this position."""
        ...

    def retire(self, segments: list[int]) -> None:
        """Let searches no longer see these segments."""
        ...

    def drop(self, segment: int) -> None:
        """Erase a segment, and with it the bundle that it is in."""
        ...


class IndexJobs:
    """Jobs, which give way between steps. What they work on may change meanwhile: then they leave it."""

    def __init__(self, tables: IndexStore, extract: Extract) -> None:
        self._tables = tables
        self._extract = extract
        self._retired: list[int] = []

    def take_over(self, retired: list[int]) -> None:
        """Have segments erased that a process which was killed has left."""
        self._retired += retired

    def clean(self) -> Iterator[None]:
        """Erase segments that are no longer of use."""
        while self._retired:
            with self._tables.step(None):
                self._tables.drop(self._retired.pop())
            yield

    def build(self, uid: int) -> Job:
        """Make a segment of messages that have none."""
        record = self._tables.session_now(uid)
        gap = None if record is None or is_set_aside(record.ref) else self._next_gap(record)
        if record is None or gap is None:
            return False
        first, last = gap
        gathered = Gathered(first)
        while first + gathered.count <= last and gathered.size < _CHUNK_CHARACTERS:
            free = first + gathered.count
            rows = self._tables.rows(uid, free, min(last, free + _BATCH - 1))
            if not rows:
                return True
            for row in rows:
                gathered.add(row, self._extract(record.message_format, row.body))
            yield
        segment = segment_of(gathered, uid)
        blocks: Blocks = []
        for some in blocks_of(gathered, segment):
            blocks += some
            yield
        with self._tables.step(record):
            now = self._tables.session_now(uid)
            unchanged = now is not None and now.revision == record.revision
            if unchanged and not self._tables.segments(uid, segment.first, segment.behind - 1):
                self._tables.add_blocks(self._tables.add(segment, live=True), blocks)
        yield
        return True

    def merge(self, uid: int) -> Job:
        """Make one segment of several."""
        record = self._tables.session_now(uid)
        segments = _mergeable(self._tables.segments(uid, 1, _END))
        if record is None or segments is None:
            return False
        target = merged(segments, self._tables.block)
        with self._tables.step(record):
            number = self._tables.add(target, live=False)
        blocks = yield from copied(self._tables, record, segments, target._replace(segment=number))
        if blocks is None:
            return True
        with self._tables.step(record):
            self._replace(segments, number, blocks)
        yield
        return True

    def _replace(self, segments: Sequence[Segment], number: int, blocks: Blocks) -> None:
        """Let the merged segment take the place of its parts, if they are still what they were."""
        if not self._tables.exists(number):
            return
        found = (self._tables.find(segment.segment) for segment in segments)
        now = [segment for segment in found if segment is not None]
        if len(now) < len(segments) or any(one.behind != next_.first for one, next_ in pairwise(now)):
            self._retired.append(number)
            return
        self._tables.add_blocks(number, blocks)
        self._tables.reveal(number, now[0].first)
        old = [segment.segment for segment in now]
        self._tables.retire(old)
        self._retired += old

    def _next_gap(self, record: SessionRecord) -> tuple[int, int] | None:
        """Messages without a segment: all that stand before one, and enough behind the last."""
        last = record.message_count
        free = record.shared + 1
        for segment in self._tables.segments(record.uid, free, last):
            if segment.first > free:
                return free, min(segment.first - 1, free + CHUNK - 1)
            free = segment.behind
        if free > last:
            return None
        lacking = last - free + 1
        enough = lacking >= CHUNK or (lacking >= FEW and record.updated_ms < rested_before_ms())
        if not enough and self._tables.size(record.uid, free, last) < _CHUNK_CHARACTERS:
            return None
        return free, min(last, free + CHUNK - 1)


def copied(
    tables: IndexStore, record: SessionRecord, parts: Sequence[Segment], target: Segment
) -> Generator[None, None, Blocks | None]:
    """Write the blocks of parts into what they are merged to, in steps; the value is what is left to write.

    `None` where the target was erased meanwhile.
    """
    blocks: Blocks = []
    size = 0
    for some in merged_blocks(parts, target, tables.block):
        blocks += some
        size += sum(len(content) for _, content in some)
        if size > WRITE_BYTES:
            with tables.step(record):
                if not tables.exists(target.segment):
                    return None
                tables.add_blocks(target.segment, blocks)
            blocks, size = [], 0
        yield
    return blocks


def rested_before_ms() -> int:
    """Sessions that were written to before this time are at rest."""
    return time.time_ns() // 1_000_000 - RESTED_MS


def _mergeable(segments: Sequence[Segment]) -> list[Segment] | None:
    """Neighbours that are small enough and many enough; the smallest first."""
    least = 0
    for full, wanted in LEVELS:
        run: list[Segment] = []
        for segment in segments:
            if segment.size >= full or segment.bundle:
                run = []
                continue
            if run and run[-1].behind != segment.first:
                run = []
            run.append(segment)
            while sum(each.size for each in run) > _MOST:
                del run[0]
            if len(run) >= wanted and segment.size >= least:
                return run
        least = full
    return None
