"""Vectors of stored messages: how they are packed, compared and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import DecodeError, Struct, msgpack

from sidecar.semantic.model import DIMENSIONS, MODEL_ID

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from sidecar.semantic.model import Floats


CHUNK = 64
"""Messages of a chunk."""
KEY_BYTES = 8
_STEPS = 127
_FORM = 2
"""Of what is kept; another version of us may keep it in another one."""


class Kept(Struct, frozen=True, array_like=True):
    """A chunk as it stands in the store."""

    form: int
    model: str
    uid: int
    revision: int
    count: int
    """Messages that were looked at, from the first of the chunk on."""
    offsets: bytes
    """For each row which message of the chunk it belongs to, from 0."""
    users: bytes
    """For each row 1 where a user said it, 2 where an assistant did."""
    keys: bytes
    """For each row `KEY_BYTES` that stand for its text."""
    scales: bytes
    """For each row what its numbers are multiplied by, as float32."""
    rows: bytes
    """`DIMENSIONS` signed bytes each."""


class Chunk(NamedTuple):
    """Vectors of up to `CHUNK` messages, one or more for each that says something."""

    messages: int
    """How many were looked at."""
    offsets: NDArray[numpy.uint8]
    users: NDArray[numpy.uint8]
    keys: NDArray[numpy.uint64]
    scales: NDArray[numpy.float32]
    rows: NDArray[numpy.int8]

    def known(self) -> dict[int, tuple[Chunk, int]]:
        """Where the vector of each text is, by its key: here, in which row."""
        return {int(key): (self, row) for row, key in enumerate(self.keys)}


def quantised(vectors: Floats) -> tuple[NDArray[numpy.int8], NDArray[numpy.float32]]:
    """The vectors in steps of a 127th of their largest number, and how large a step is."""
    import numpy

    scales = (numpy.abs(vectors).max(axis=1, initial=0.0) / _STEPS).astype(numpy.float32)
    safe = numpy.where(scales > 0, scales, numpy.float32(1))
    return numpy.rint(vectors / safe[:, None]).astype(numpy.int8), scales


def encoded(chunk: Chunk, uid: int, revision: int) -> bytes:
    """The chunk as it is kept for a session in one of its revisions."""
    kept = Kept(
        form=_FORM,
        model=MODEL_ID,
        uid=uid,
        revision=revision,
        count=chunk.messages,
        offsets=chunk.offsets.tobytes(),
        users=chunk.users.tobytes(),
        keys=chunk.keys.tobytes(),
        scales=chunk.scales.tobytes(),
        rows=chunk.rows.tobytes(),
    )
    return msgpack.encode(kept)


def decoded(value: bytes | None) -> tuple[Chunk, int, int] | None:
    """What was kept, its uid and revision; `None` where it is not of this model, or not whole."""
    import numpy

    if value is None:
        return None
    try:
        kept = msgpack.decode(value, type=Kept)
    except DecodeError:
        return None
    size = len(kept.offsets)
    expected = (size, size * KEY_BYTES, size * 4, size * DIMENSIONS)
    found = tuple(map(len, (kept.users, kept.keys, kept.scales, kept.rows)))
    if kept.form != _FORM or kept.model != MODEL_ID or found != expected or not 0 <= kept.count <= CHUNK:
        return None
    chunk = Chunk(
        messages=kept.count,
        offsets=numpy.frombuffer(kept.offsets, numpy.uint8),
        users=numpy.frombuffer(kept.users, numpy.uint8),
        keys=numpy.frombuffer(kept.keys, numpy.uint64),
        scales=numpy.frombuffer(kept.scales, numpy.float32),
        rows=numpy.frombuffer(kept.rows, numpy.int8).reshape(-1, DIMENSIONS),
    )
    return chunk, kept.uid, kept.revision


class Row(NamedTuple):
    """What a vector of a chunk stands for."""

    offset: int
    user: int
    key: int


def chunk_of(
    count: int,
    described: Sequence[Row],
    fresh: Mapping[int, int],
    vectors: Floats,
    known: Mapping[int, tuple[Chunk, int]],
) -> Chunk:
    """A chunk of texts that are `fresh`, in the rows of `vectors`, or `known` from other chunks."""
    import numpy

    rows = numpy.zeros((len(described), DIMENSIONS), numpy.int8)
    scales = numpy.zeros(len(described), numpy.float32)
    new_rows, new_scales = quantised(vectors)
    for number, row in enumerate(described):
        if row.key in fresh:
            rows[number], scales[number] = new_rows[fresh[row.key]], new_scales[fresh[row.key]]
        else:
            chunk, there = known[row.key]
            rows[number], scales[number] = chunk.rows[there], chunk.scales[there]
    return Chunk(
        messages=count,
        offsets=numpy.array([row.offset for row in described], numpy.uint8),
        users=numpy.array([row.user for row in described], numpy.uint8),
        keys=numpy.array([row.key for row in described], numpy.uint64),
        scales=scales,
        rows=rows,
    )


MOST_MESSAGES = 50_000
"""The newest messages of a session that have vectors, about."""
_BLOCK = 2048
"""Rows that are multiplied at once: as many as stay in the processor's cache as numbers of four bytes."""
_PIECES = 24
"""Chunks after which they are put together."""


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


class VectorTable:
    """Vectors of the messages of a session, as far as they were made."""

    def __init__(self, uid: int, revision: int, start: int = 0) -> None:
        self.uid = uid
        self.revision = revision
        self.start = start
        """Number of the first chunk that has a place here."""
        self.covered = start * CHUNK
        """Position up to which messages were looked at."""
        self._chunks: dict[int, Chunk] = {}
        self._settled: _Rows | None = None
        self._settled_up_to = start
        """Number of the first chunk that is not among the settled ones."""

    @property
    def size(self) -> int:
        """How many vectors there are."""
        return sum(len(chunk.keys) for chunk in self._chunks.values())

    def chunk(self, number: int) -> Chunk | None:
        """The vectors of the chunk with this number."""
        return self._chunks.get(number)

    def put(self, number: int, chunk: Chunk) -> None:
        """Take in a chunk: the next one, or the last one anew."""
        self._chunks[number] = chunk
        self.covered = number * CHUNK + chunk.messages
        if number < self._settled_up_to:
            self._settled, self._settled_up_to = None, self.start

    def let_go(self, start: int) -> list[int]:
        """Forget the chunks in front of the one with this number; which ones that were."""
        if start <= self.start:
            return []
        gone = [number for number in self._chunks if number < start]
        for number in gone:
            del self._chunks[number]
        self.start, self.covered = start, max(self.covered, start * CHUNK)
        self._settled, self._settled_up_to = None, start
        return gone

    def known(self) -> dict[int, tuple[Chunk, int]]:
        """Where the vector of each text is, by its key."""
        found: dict[int, tuple[Chunk, int]] = {}
        for chunk in self._chunks.values():
            found |= chunk.known()
        return found

    def has(self, position: int) -> bool:
        """Whether the message at a position has a vector."""
        number, offset = divmod(position - 1, CHUNK)
        chunk = self._chunks.get(number)
        return chunk is not None and bool((chunk.offsets == offset).any())

    def says(self, position: int, key: int) -> bool:
        """Whether the message at a position has a passage with this key."""
        number, offset = divmod(position - 1, CHUNK)
        chunk = self._chunks.get(number)
        return chunk is not None and bool(((chunk.offsets == offset) & (chunk.keys == key)).any())

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
        """All rows, those of older chunks in one piece."""
        numbers = sorted(number for number in self._chunks if number >= self._settled_up_to)
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
        """Let the chunks that were put together share the memory of the whole."""
        end = len(settled.scales)
        for number in reversed(numbers):
            chunk = self._chunks[number]
            begin = end - len(chunk.scales)
            self._chunks[number] = chunk._replace(rows=settled.vectors[begin:end])
            end = begin

    def _rows(self, number: int) -> _Rows:
        import numpy

        chunk = self._chunks[number]
        positions = chunk.offsets.astype(numpy.int64) + (number * CHUNK + 1)
        return _Rows(positions, chunk.users, chunk.keys, chunk.scales, chunk.rows)


def _joined(pieces: list[_Rows]) -> _Rows:
    import numpy

    return _Rows(
        numpy.concatenate([piece.positions for piece in pieces]),
        numpy.concatenate([piece.users for piece in pieces]),
        numpy.concatenate([piece.keys for piece in pieces]),
        numpy.concatenate([piece.scales for piece in pieces]),
        numpy.concatenate([piece.vectors for piece in pieces]),
    )
