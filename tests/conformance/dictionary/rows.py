"""The messages that one session owns, in memory."""

from bisect import bisect_left, bisect_right
from operator import attrgetter

from sidecar.store.records import MessageRow

_POSITION = attrgetter("position")


class OwnRows:
    """Rows by position, with the ways to find them by an id."""

    __slots__ = ("_rows", "inner_ids", "names", "numbers", "places")

    def __init__(self) -> None:
        self._rows: list[MessageRow] = []
        self.names: dict[str, int] = {}
        """Positions by written-out id."""
        self.numbers: dict[int, int] = {}
        """Positions by the number of the made-up id."""
        self.inner_ids: dict[str, int] = {}
        """First positions by inner id."""
        self.places: dict[int, int] = {}
        """Positions by row id."""

    def between(self, first: int, last: int) -> list[MessageRow]:
        """The rows at these positions, in order."""
        rows = self._rows
        return rows[bisect_left(rows, first, key=_POSITION) : bisect_right(rows, last, key=_POSITION)]

    def at(self, position: int) -> MessageRow:
        """The row at a position that is there."""
        return self._rows[bisect_left(self._rows, position, key=_POSITION)]

    def add(self, row: MessageRow) -> None:
        """Keep one more."""
        rows = self._rows
        if not rows or row.position > rows[-1].position:
            rows.append(row)
            self._enter(row)
        else:
            self.replace([*self.between(0, row.position - 1), row, *self.between(row.position, 1 << 62)])

    def replace(self, rows: list[MessageRow]) -> None:
        """Keep these instead, which are in order."""
        self._rows = rows
        for index in (self.names, self.numbers, self.inner_ids, self.places):
            index.clear()
        for row in rows:
            self._enter(row)

    def _enter(self, row: MessageRow) -> None:
        self.places[row.row_id] = row.position
        if row.name is None:
            self.numbers[row.position if row.number is None else row.number] = row.position
        else:
            self.names[row.name] = row.position
        if row.inner_id is not None:
            self.inner_ids.setdefault(row.inner_id, row.position)
