"""Framing does not depend on how the stream is split, and reads what the outbox writes."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sidecar.rpc.framing import FrameFault, FrameReader, Outbox, parse_headers

LIMIT = 50

bodies = st.binary(min_size=1, max_size=LIMIT)
heads = st.sampled_from(
    [
        b"Content-Length: %d\r\n\r\n",
        b"content-length:%d\n\n",
        b"X: y\r\nContent-Length: %d\r\n\r\n",
        b"\r\nContent-Length: %d\r\nContent-Type: a/b; charset=utf-8\r\n\r\n",
    ]
)


def _read(reader: FrameReader, chunks: list[bytes]) -> list[bytes | str]:
    found: list[bytes | str] = []
    for chunk in chunks:
        for item in reader.feed(chunk):
            found.append(item.error.message if isinstance(item, FrameFault) else item)
    return found


def _cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@given(st.lists(st.tuples(heads, bodies), max_size=8), st.lists(st.integers(0, 10_000), max_size=20))
def test_bodies_are_found_however_the_stream_is_cut(
    frames: list[tuple[bytes, bytes]], places: list[int]
) -> None:
    data = b"".join(head % len(body) + body for head, body in frames)
    reader = FrameReader(LIMIT, newline=False)
    assert _read(reader, _cut(data, places)) == [body for _, body in frames]
    assert reader.finish() == ([], False)


@given(
    st.binary(max_size=300),
    st.lists(st.integers(0, 10_000), max_size=20),
    st.sampled_from([None, True, False]),
)
def test_any_bytes_read_the_same_however_they_are_cut(
    data: bytes, places: list[int], newline: bool | None
) -> None:
    whole, cut = FrameReader(LIMIT, newline=newline), FrameReader(LIMIT, newline=newline)
    seen, seen_cut = _read(whole, [data]), _read(cut, _cut(data, places))
    lengths = [len(item) for item in seen_cut if isinstance(item, bytes)]
    assert [item for item in seen if isinstance(item, bytes)] == [
        item for item in seen_cut if isinstance(item, bytes)
    ]
    assert all(length <= LIMIT for length in lengths)
    assert whole.newline == cut.newline


@given(st.lists(bodies.filter(lambda body: b"\n" not in body and not body.isspace())), st.data())
def test_lines_are_found_however_the_stream_is_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"\n".join(lines)
    places = data.draw(st.lists(st.integers(0, 10_000), max_size=20))
    reader = FrameReader(LIMIT, newline=True)
    found = _read(reader, _cut(stream, places))
    last, inside = reader.finish()
    assert [*found, *last] == lines
    assert not inside


@given(st.integers(LIMIT + 1, 4 * LIMIT), bodies, st.lists(st.integers(0, 1000), max_size=9))
def test_a_body_over_the_limit_is_skipped_to_the_byte(size: int, body: bytes, places: list[int]) -> None:
    data = b"Content-Length: %d\r\n\r\n%bContent-Length: %d\r\n\r\n%b" % (size, b"C" * size, len(body), body)
    found = _read(FrameReader(LIMIT, newline=False), _cut(data, places))
    assert len(found) == 2
    assert found[1] == body


def test_nothing_is_read_after_a_fatal_frame() -> None:
    reader = FrameReader()
    (fault,) = reader.feed(b"Content-Length: x\r\n\r\nContent-Length: 2\r\n\r\n{}")
    assert isinstance(fault, FrameFault)
    assert fault.fatal
    assert reader.feed(b"Content-Length: 2\r\n\r\n{}") == []


def test_a_skipped_body_is_not_held() -> None:
    reader = FrameReader(1000, newline=False)
    reader.feed(b"Content-Length: 4000\r\n\r\n")
    reader.feed(b"x" * 3999)
    assert reader.inside
    reader.feed(b"x")
    assert not reader.inside


def test_the_last_header_of_a_kind_counts_only_where_they_agree() -> None:
    assert parse_headers(b"Content-Length: 5\r\nContent-Length: 05") == (5, "utf-8")
    assert parse_headers(b"content-TYPE: a/b; x=y; CHARSET='UTF-16'\nContent-Length: 0") == (0, "utf-16")


class Sink:
    """Records what is written."""

    def __init__(self) -> None:
        self.data = b""
        self.writes = 0
        self.unsent = 0

    def write(self, buffers: list[bytes]) -> None:
        self.data += b"".join(buffers)
        self.writes += 1


@given(st.lists(st.integers(1, 40_000), max_size=6), st.booleans())
def test_frames_of_the_outbox_are_read_back(sizes: list[int], newline: bool) -> None:
    sink = Sink()
    outbox = Outbox(sink)  # pyright: ignore[reportArgumentType]
    outbox.newline = newline
    messages = [b'{"a":"%b"}' % (b"x" * size) for size in sizes]
    for message in messages:
        outbox.put(message)
    assert outbox.unsent == sum(map(len, messages))
    outbox.flush()
    assert sink.writes == (1 if messages else 0)
    assert FrameReader(newline=newline).feed(sink.data) == messages


def test_a_message_of_several_lines_is_written_as_one() -> None:
    sink = Sink()
    outbox = Outbox(sink)  # pyright: ignore[reportArgumentType]
    outbox.newline = True
    outbox.put(b'{"a":\r\n"b\\n"}')
    outbox.flush()
    assert sink.data == b'{"a":  "b\\n"}\n'
