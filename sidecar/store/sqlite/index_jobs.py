"""The jobs of indexing: messages into a segment, segments into a larger one."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from sidecar.store.indexing.gathering import Gathered
from sidecar.store.indexing.segments import Blocks, Segment, blocks_of, merged, merged_blocks, segment_of
from sidecar.store.records import SessionRecord
from sidecar.store.search import Extract
from sidecar.store.sqlite.index_tables import IndexTables

CHUNK = 256
"""Messages in a new segment; until there are so many, searches look at the messages themselves."""
_CHUNK_CHARACTERS = 256 << 10
"""Text from which fewer messages make a segment."""
_BATCH = 16
_FAN_IN = 64
"""Neighbouring segments of one level that are merged."""
_LEVELS = (8192,)
"""Sizes from which a segment is of the next level; those of the last are left as they are."""
_MOST = 0xFFFF
_WRITE_BYTES = 128 << 10
"""Blocks that are written in one transaction, about."""
_END = 1 << 62

_SIZE = "SELECT sum(length(body)) FROM messages WHERE session = ? AND position BETWEEN ? AND ?"

Job = Generator[None, None, bool]
"""A job in steps; its value is whether there was anything to do."""


class IndexJobs:
    """Jobs, which give way between steps. What they work on may change meanwhile: then they leave it."""

    def __init__(self, tables: IndexTables, extract: Extract, note_rewriting: Callable[[], None]) -> None:
        self._tables = tables
        self._extract = extract
        self._note_rewriting = note_rewriting
        self._retired: list[int] = []

    def take_over(self) -> None:
        """Find what a process that was killed has left half done, or another version in another form."""
        with self._step():
            self._tables.adopt_format()
        self._retired = self._tables.retired()

    def clean(self) -> Iterator[None]:
        """Erase segments that are no longer of use."""
        while self._retired:
            with self._step():
                self._tables.drop(self._retired.pop())
            yield

    def build(self, uid: int) -> Job:
        """Make a segment of messages that have none."""
        record = self._session(uid)
        gap = None if record is None else self._next_gap(record)
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
        with self._step():
            now = self._session(uid)
            unchanged = now is not None and now.revision == record.revision
            if unchanged and not self._tables.segments(uid, segment.first, segment.behind - 1):
                self._tables.add_blocks(self._tables.add(segment, live=True), blocks)
        yield
        return True

    def merge(self, uid: int) -> Job:
        """Make one segment of several."""
        segments = _mergeable(self._tables.segments(uid, 1, _END))
        if segments is None:
            return False
        target = merged(segments)
        with self._step():
            number = self._tables.add(target, live=False)
        blocks: Blocks = []
        size = 0
        for some in merged_blocks(segments, target, self._tables.block):
            blocks += some
            size += sum(len(content) for _, content in some)
            if size > _WRITE_BYTES:
                with self._step():
                    if not self._tables.exists(number):
                        return True
                    self._tables.add_blocks(number, blocks)
                blocks, size = [], 0
            yield
        with self._step():
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
        if last - free + 1 < CHUNK:
            size = self._tables.value(_SIZE, (record.uid, free, last))
            if size is None or size < _CHUNK_CHARACTERS:
                return None
        return free, min(last, free + CHUNK - 1)

    def _session(self, uid: int) -> SessionRecord | None:
        if self._tables.value("SELECT 1 FROM sessions WHERE uid = ?", (uid,)) is None:
            return None
        return self._tables.session_of(uid)

    @contextmanager
    def _step(self) -> Generator[None, None, None]:
        """A transaction that is not waited for: what is lost with the power is indexed anew."""
        connection = self._tables.connection
        connection.execute("PRAGMA synchronous = NORMAL")
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        finally:
            connection.execute("PRAGMA synchronous = FULL")
        self._note_rewriting()


def _mergeable(segments: Sequence[Segment]) -> list[Segment] | None:
    """Neighbours that are small enough and many enough; the smallest first."""
    for level in range(len(_LEVELS)):
        run: list[Segment] = []
        for segment in segments:
            if segment.size >= _LEVELS[level]:
                run = []
                continue
            if run and run[-1].behind != segment.first:
                run = []
            run.append(segment)
            while sum(each.size for each in run) > _MOST:
                del run[0]
            ends_level = level == 0 or segment.size >= _LEVELS[level - 1]
            if len(run) >= _FAN_IN and ends_level:
                return run
    return None
