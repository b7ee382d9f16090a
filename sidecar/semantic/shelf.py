"""The vectors of one session in memory, and the search in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sidecar.semantic.vectors import CHUNK, Stretch

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from sidecar.semantic.model import Floats

MOST_MESSAGES = 50_000
"""The newest messages of a session that have vectors, about."""
_BLOCK = 2048
"""Rows that are multiplied at once: as many as stay in the processor's cache as numbers of four bytes."""
_PIECES = 24
"""Stretches after which they are put together."""


class Near(NamedTuple):
    """A message that says something like what was asked."""

    position: int
    similarity: float
    """Cosine of its best passage, 1 at most."""
    key: int
    """Stands for the text of the passage."""


class _Rows(NamedTuple):
    positions: NDArray[numpy.int64]
    users: NDArray[numpy.uint8]
    keys: NDArray[numpy.uint64]
    scales: NDArray[numpy.float32]
    vectors: NDArray[numpy.int8]


class Shelf:
    """Vectors of the messages of a session, as far as they were made."""

    def __init__(self, uid: int, revision: int, start: int = 0) -> None:
        self.uid = uid
        self.revision = revision
        self.start = start
        """Number of the first stretch that has a place here."""
        self.covered = start * CHUNK
        """Position up to which messages were looked at."""
        self._stretches: dict[int, Stretch] = {}
        self._settled: _Rows | None = None
        self._settled_up_to = start
        """Number of the first stretch that is not among the settled ones."""

    @property
    def size(self) -> int:
        """How many vectors there are."""
        return sum(len(stretch.keys) for stretch in self._stretches.values())

    def stretch(self, number: int) -> Stretch | None:
        """The vectors of the stretch with this number."""
        return self._stretches.get(number)

    def put(self, number: int, stretch: Stretch) -> None:
        """Take in a stretch: the next one, or the last one anew."""
        self._stretches[number] = stretch
        self.covered = number * CHUNK + stretch.messages
        if number < self._settled_up_to:
            self._settled, self._settled_up_to = None, self.start

    def let_go(self, start: int) -> list[int]:
        """Forget the stretches in front of the one with this number; which ones that were."""
        if start <= self.start:
            return []
        gone = [number for number in self._stretches if number < start]
        for number in gone:
            del self._stretches[number]
        self.start, self.covered = start, max(self.covered, start * CHUNK)
        self._settled, self._settled_up_to = None, start
        return gone

    def known(self) -> dict[int, tuple[Stretch, int]]:
        """Where the vector of each text is, by its key."""
        found: dict[int, tuple[Stretch, int]] = {}
        for stretch in self._stretches.values():
            found |= stretch.known()
        return found

    def has(self, position: int) -> bool:
        """Whether the message at a position has a vector."""
        number, offset = divmod(position - 1, CHUNK)
        stretch = self._stretches.get(number)
        return stretch is not None and bool((stretch.offsets == offset).any())

    def says(self, position: int, key: int) -> bool:
        """Whether the message at a position has a passage with this key."""
        number, offset = divmod(position - 1, CHUNK)
        stretch = self._stretches.get(number)
        return stretch is not None and bool(((stretch.offsets == offset) & (stretch.keys == key)).any())

    def nearest(
        self, asked: Floats, *, limit: int, floor: float, first: int, last: int, users: frozenset[int]
    ) -> list[Near]:
        """At most `limit` messages whose similarity is `floor` or more, the most similar first.

        Between the positions `first` and `last`, and only of those who said them, if `users` names any.
        """
        import numpy

        best: dict[int, Near] = {}
        for rows in self._all():
            near = numpy.empty(len(rows.scales), numpy.float32)
            for begin in range(0, len(near), _BLOCK):
                block = rows.vectors[begin : begin + _BLOCK].astype(numpy.float32)
                near[begin : begin + _BLOCK] = block @ asked
            near *= rows.scales
            good = (near >= floor) & (rows.positions >= first) & (rows.positions <= last)
            if users:
                good &= numpy.isin(rows.users, list(users))
            found = numpy.flatnonzero(good)
            if len(found) > limit * 8:
                found = found[numpy.argpartition(-near[found], limit * 8)[: limit * 8]]
            for row in found[numpy.argsort(-near[found])]:
                position = int(rows.positions[row])
                if position not in best or best[position].similarity < near[row]:
                    best[position] = Near(position, float(near[row]), int(rows.keys[row]))
        return sorted(best.values(), key=lambda each: (-each.similarity, -each.position))[:limit]

    def _all(self) -> list[_Rows]:
        """All rows, those of older stretches in one piece."""
        numbers = sorted(number for number in self._stretches if number >= self._settled_up_to)
        if len(numbers) > _PIECES:
            settling = numbers[:-1]
            pieces = [self._rows(number) for number in settling]
            if self._settled is not None:
                pieces.insert(0, self._settled)
            self._settled, self._settled_up_to = _joined(pieces), settling[-1] + 1
            self._look_into(self._settled, settling)
            numbers = numbers[-1:]
        newest = [self._rows(number) for number in numbers]
        return newest if self._settled is None else [self._settled, *newest]

    def _look_into(self, settled: _Rows, numbers: list[int]) -> None:
        """Let the stretches that were put together share the memory of the whole."""
        end = len(settled.scales)
        for number in reversed(numbers):
            stretch = self._stretches[number]
            begin = end - len(stretch.scales)
            self._stretches[number] = stretch._replace(rows=settled.vectors[begin:end])
            end = begin

    def _rows(self, number: int) -> _Rows:
        import numpy

        stretch = self._stretches[number]
        positions = stretch.offsets.astype(numpy.int64) + (number * CHUNK + 1)
        return _Rows(positions, stretch.users, stretch.keys, stretch.scales, stretch.rows)


def _joined(pieces: list[_Rows]) -> _Rows:
    import numpy

    return _Rows(
        numpy.concatenate([piece.positions for piece in pieces]),
        numpy.concatenate([piece.users for piece in pieces]),
        numpy.concatenate([piece.keys for piece in pieces]),
        numpy.concatenate([piece.scales for piece in pieces]),
        numpy.concatenate([piece.vectors for piece in pieces]),
    )
