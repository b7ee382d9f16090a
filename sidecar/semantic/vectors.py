"""Vectors of a stretch of messages as they are kept: a byte for each number, with what they stand for."""

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
"""Messages of a stretch."""
KEY_BYTES = 8
_STEPS = 127
_FORM = 2
"""Of what is kept; another version of us may keep it in another one."""


class Kept(Struct, frozen=True, array_like=True):
    """A stretch as it stands in the store."""

    form: int
    model: str
    uid: int
    revision: int
    count: int
    """Messages that were looked at, from the first of the stretch on."""
    offsets: bytes
    """For each row which message of the stretch it belongs to, from 0."""
    users: bytes
    """For each row 1 where a user said it, 2 where an assistant did."""
    keys: bytes
    """For each row `KEY_BYTES` that stand for its text."""
    scales: bytes
    """For each row what its numbers are multiplied by, as float32."""
    rows: bytes
    """`DIMENSIONS` signed bytes each."""


class Stretch(NamedTuple):
    """Vectors of up to `CHUNK` messages, one or more for each that says something."""

    messages: int
    """How many were looked at."""
    offsets: NDArray[numpy.uint8]
    users: NDArray[numpy.uint8]
    keys: NDArray[numpy.uint64]
    scales: NDArray[numpy.float32]
    rows: NDArray[numpy.int8]

    def known(self) -> dict[int, tuple[Stretch, int]]:
        """Where the vector of each text is, by its key: here, in which row."""
        return {int(key): (self, row) for row, key in enumerate(self.keys)}


def quantised(vectors: Floats) -> tuple[NDArray[numpy.int8], NDArray[numpy.float32]]:
    """The vectors in steps of a 127th of their largest number, and how large a step is."""
    import numpy

    scales = (numpy.abs(vectors).max(axis=1, initial=0.0) / _STEPS).astype(numpy.float32)
    safe = numpy.where(scales > 0, scales, numpy.float32(1))
    return numpy.rint(vectors / safe[:, None]).astype(numpy.int8), scales


def encoded(stretch: Stretch, uid: int, revision: int) -> bytes:
    """The stretch as it is kept for a session in one of its revisions."""
    kept = Kept(
        form=_FORM,
        model=MODEL_ID,
        uid=uid,
        revision=revision,
        count=stretch.messages,
        offsets=stretch.offsets.tobytes(),
        users=stretch.users.tobytes(),
        keys=stretch.keys.tobytes(),
        scales=stretch.scales.tobytes(),
        rows=stretch.rows.tobytes(),
    )
    return msgpack.encode(kept)


def decoded(value: bytes | None) -> tuple[Stretch, int, int] | None:
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
    stretch = Stretch(
        messages=kept.count,
        offsets=numpy.frombuffer(kept.offsets, numpy.uint8),
        users=numpy.frombuffer(kept.users, numpy.uint8),
        keys=numpy.frombuffer(kept.keys, numpy.uint64),
        scales=numpy.frombuffer(kept.scales, numpy.float32),
        rows=numpy.frombuffer(kept.rows, numpy.int8).reshape(-1, DIMENSIONS),
    )
    return stretch, kept.uid, kept.revision


class Row(NamedTuple):
    """What a vector of a stretch stands for."""

    offset: int
    user: int
    key: int


def stretch_of(
    count: int,
    described: Sequence[Row],
    fresh: Mapping[int, int],
    vectors: Floats,
    known: Mapping[int, tuple[Stretch, int]],
) -> Stretch:
    """A stretch of texts that are `fresh`, in the rows of `vectors`, or `known` from other stretches."""
    import numpy

    rows = numpy.zeros((len(described), DIMENSIONS), numpy.int8)
    scales = numpy.zeros(len(described), numpy.float32)
    new_rows, new_scales = quantised(vectors)
    for number, row in enumerate(described):
        if row.key in fresh:
            rows[number], scales[number] = new_rows[fresh[row.key]], new_scales[fresh[row.key]]
        else:
            stretch, there = known[row.key]
            rows[number], scales[number] = stretch.rows[there], stretch.scales[there]
    return Stretch(
        messages=count,
        offsets=numpy.array([row.offset for row in described], numpy.uint8),
        users=numpy.array([row.user for row in described], numpy.uint8),
        keys=numpy.array([row.key for row in described], numpy.uint64),
        scales=scales,
        rows=rows,
    )
