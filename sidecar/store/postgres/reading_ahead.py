"""Blocks of segments that are merged, read some rows at a time, because they are asked for in order."""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from sidecar.store.postgres.connection import Row, Value
from sidecar.store.postgres.index_rows import REGION, block_id, blocks_in

_ROWS = 8
"""Rows that are read in one go."""
_WINDOWS = 768
"""Windows that are kept: a merge reads from three places of each of its segments."""
_FROM = (
    "SELECT block, content FROM search_blocks WHERE block < (%s + 1) << 16 AND block >= coalesce((SELECT "
    "block FROM search_blocks WHERE block <= %s AND block >= %s << 16 ORDER BY block DESC LIMIT 1), %s) "
    f"ORDER BY block LIMIT {_ROWS}"
)


class _Window(NamedTuple):
    """Everything that is stored of a segment from one block up to another."""

    first: int
    last: int
    blocks: dict[int, bytes]


class ReadingAhead:
    """Blocks of segments whose blocks no longer change."""

    def __init__(self, query: Callable[[str, tuple[Value, ...]], list[Row]]) -> None:
        self._query = query
        self._windows: OrderedDict[tuple[int, int], _Window] = OrderedDict()

    def block(self, segment: int, number: int) -> bytes | None:
        """A block, `None` where there is none of that number."""
        place = segment, number >> REGION
        window = self._windows.get(place)
        if window is None or not window.first <= number <= window.last:
            window = self._windows[place] = self._read(segment, number)
            if len(self._windows) > _WINDOWS:
                self._windows.popitem(last=False)
        return window.blocks.get(number)

    def forget(self) -> None:
        """Keep nothing of what was read."""
        self._windows.clear()

    def _read(self, segment: int, number: int) -> _Window:
        key = block_id(segment, number)
        rows = self._query(_FROM, (segment, key, segment, key))
        found = {number: content for row in rows for (_, number), content in blocks_in(*row)}
        complete = len(rows) < _ROWS
        return _Window(number, 0xFFFF if complete else max(found), found)
