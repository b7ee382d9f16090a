"""Carries a peer's bytes over two descriptors, standard input and output, without blocking the loop."""

from __future__ import annotations

import asyncio
import os
import queue
import select
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from sidecar.rpc.framing import Receiver


def claim_standard_streams() -> tuple[int, int]:
    """Private descriptors of standard input and output; what this process prints goes to stderr from now on.

    Descriptor 0 reads as empty afterwards, so that a child process cannot take the peer's bytes.
    """
    _fill_gaps()
    source, sink = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return source, sink


class StdioTransport:
    """A transport that reads one descriptor and writes another."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._receiver: Receiver | None = None
        self._reader: Reader | None = None
        self._writer: Writer | None = None
        self._moved: asyncio.Event | None = None

    @property
    def unsent(self) -> int:
        """Bytes that were written but wait to be sent."""
        return self._writer.unsent if self._writer is not None else 0

    def start(self, receiver: Receiver) -> None:
        """Begin to read."""
        loop = asyncio.get_running_loop()
        self._receiver = receiver
        self._moved = asyncio.Event()
        self._writer = open_writer(loop, self._sink, self)
        self._reader = open_reader(loop, self._source, self._take)

    def write(self, buffers: Sequence[bytes]) -> None:
        """Send the buffers in order."""
        if self._writer is not None:
            self._writer.write(buffers)

    def pause_reading(self) -> None:
        """Read nothing until `resume_reading`."""
        if self._reader is not None:
            self._reader.pause()

    def resume_reading(self) -> None:
        """Go on reading."""
        if self._reader is not None:
            self._reader.resume()

    def read_available(self) -> None:
        """Read what is there right now."""
        if self._reader is not None:
            self._reader.read_available()

    async def flush(self, limit_s: float) -> bool:
        """Wait until all is sent: false where nothing moved for `limit_s` seconds."""
        while self.unsent:
            assert self._moved is not None
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), limit_s)
            except TimeoutError:
                return False
        return True

    def close(self) -> None:
        """Stop reading, drop what is unsent, leave the descriptors as they were found."""
        if self._reader is not None:
            self._reader.pause()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def sent(self) -> None:
        """Pass on that there is more room."""
        if self._moved is not None:
            self._moved.set()
        if self._receiver is not None:
            self._receiver.drained()

    def failed(self) -> None:
        """Pass on that the other side is gone."""
        if self._moved is not None:
            self._moved.set()
        if self._receiver is not None:
            self._receiver.broken()

    def _take(self, chunk: bytes) -> None:
        if self._receiver is None:
            return
        if chunk:
            self._receiver.received(chunk)
        else:
            self._receiver.ended()


def _fill_gaps() -> None:
    """Open what was closed of descriptors 0 to 2, lest a file takes the number and is printed into."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


READ_SIZE = 65536
"""Bytes of one read: a pipe holds no more, and larger buffers cost more to make than they save."""

_MOST_AT_ONCE = 64


class Reader(Protocol):
    """Hands every chunk to `take`, and an empty one at the end, on the loop's thread."""

    def pause(self) -> None:
        """Read nothing until `resume`."""
        ...

    def resume(self) -> None:
        """Go on, or begin."""
        ...

    def read_available(self) -> None:
        """Read what is there right now."""
        ...


def open_reader(loop: asyncio.AbstractEventLoop, fd: int, take: Callable[[bytes], None]) -> Reader:
    """The way of reading that suits the descriptor, begun."""
    if not os.isatty(fd):
        try:
            return WatchedReader(loop, fd, take)
        except (NotImplementedError, OSError):
            pass
    return ThreadReader(loop, fd, take)


class WatchedReader:
    """Reads when the loop says that there is something: pipes and sockets."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, take: Callable[[bytes], None]) -> None:
        self._loop = loop
        self._fd = fd
        self._take = take
        self._watching = False
        self._ended = False
        self.resume()

    def pause(self) -> None:
        if self._watching:
            self._watching = False
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        if not self._watching and not self._ended:
            self._loop.add_reader(self._fd, self._read)
            self._watching = True

    def read_available(self) -> None:
        for _ in range(_MOST_AT_ONCE):
            if not self._watching or not select.select([self._fd], [], [], 0)[0]:
                return
            self._read()

    def _read(self) -> None:
        try:
            chunk = os.read(self._fd, READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._ended = True
            self.pause()
        self._take(chunk)


class ThreadReader:
    """Reads in a thread, one chunk ahead of the loop at most: files, terminals, Windows."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, take: Callable[[bytes], None]) -> None:
        self._loop = loop
        self._fd = fd
        self._take = take
        self._waiting: bytes | None = None
        self._paused = False
        self._taken = threading.Semaphore(1)
        threading.Thread(target=self._work, name="sidecar-input", daemon=True).start()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        if self._waiting is not None:
            self._loop.call_soon(self._deliver)

    def read_available(self) -> None:
        self._deliver()

    def _work(self) -> None:
        chunk = b"."
        while chunk:
            self._taken.acquire()
            try:
                chunk = os.read(self._fd, READ_SIZE)
            except OSError:
                chunk = b""
            try:
                self._loop.call_soon_threadsafe(self._arrived, chunk)
            except RuntimeError:
                return

    def _arrived(self, chunk: bytes) -> None:
        self._waiting = chunk
        self._deliver()

    def _deliver(self) -> None:
        chunk = self._waiting
        if chunk is None or self._paused:
            return
        self._waiting = None
        self._take(chunk)
        self._taken.release()


_JOIN_BELOW = 262_144
"""Writes of fewer bytes are copied together; larger ones are handed to the kernel piece by piece."""

_MOST_PIECES = 64


class Writer(Protocol):
    """Sends buffers in order."""

    unsent: int
    """Bytes that wait to be sent."""

    def write(self, buffers: Sequence[bytes]) -> None:
        """Send the buffers, now or later."""
        ...

    def close(self) -> None:
        """Drop what is unsent."""
        ...


class SendWatch(Protocol):
    """Told on the loop's thread how sending goes."""

    def sent(self) -> None:
        """Some of what waited has been sent."""
        ...

    def failed(self) -> None:
        """Nothing more can be sent."""
        ...


def open_writer(loop: asyncio.AbstractEventLoop, fd: int, watch: SendWatch) -> Writer:
    """The way of writing that suits the descriptor."""
    if not os.isatty(fd):
        try:
            return WatchedWriter(loop, fd, watch)
        except (NotImplementedError, OSError):
            pass
    return ThreadWriter(loop, fd, watch)


class WatchedWriter:
    """Writes at once what the kernel takes, and the rest when the loop says that it takes more."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, watch: SendWatch) -> None:
        # Only a descriptor that the loop can watch is of use here; others make this raise.
        loop.add_writer(fd, _nothing)
        loop.remove_writer(fd)
        self.unsent = 0
        self._loop = loop
        self._fd = fd
        self._watch = watch
        self._queue: deque[memoryview] = deque()
        self._broken = False
        self._was_blocking = os.get_blocking(fd)
        os.set_blocking(fd, False)

    def write(self, buffers: Sequence[bytes]) -> None:
        if self._broken:
            return
        size = sum(map(len, buffers))
        if size < _JOIN_BELOW and len(buffers) > 1:
            buffers = (b"".join(buffers),)
        was_idle = not self._queue
        if was_idle and len(buffers) == 1:
            try:
                done = os.write(self._fd, buffers[0])
            except (BlockingIOError, InterruptedError):
                done = 0
            except OSError:
                self._break()
                return
            if done == size:
                return
            size -= done
            self._queue.append(memoryview(buffers[0])[done:])
        else:
            self._queue.extend(map(memoryview, buffers))
        self.unsent += size
        if was_idle:
            self._loop.add_writer(self._fd, self._push)
            self._push()

    def close(self) -> None:
        self._queue.clear()
        self.unsent = 0
        self._loop.remove_writer(self._fd)
        if self._was_blocking:
            os.set_blocking(self._fd, True)

    def _push(self) -> None:
        pieces = self._queue
        try:
            done = _write_pieces(self._fd, pieces)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._break()
            return
        self.unsent -= done
        while done:
            size = len(pieces[0])
            if done < size:
                pieces[0] = pieces[0][done:]
                break
            done -= size
            pieces.popleft()
        if not pieces:
            self._loop.remove_writer(self._fd)
        self._watch.sent()

    def _break(self) -> None:
        self._broken = True
        self._queue.clear()
        self.unsent = 0
        self._loop.remove_writer(self._fd)
        self._loop.call_soon(self._watch.failed)


class ThreadWriter:
    """Writes in a thread that may block: files, terminals, Windows."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, watch: SendWatch) -> None:
        self.unsent = 0
        self._loop = loop
        self._fd = fd
        self._watch = watch
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="sidecar-output", daemon=True).start()

    def write(self, buffers: Sequence[bytes]) -> None:
        data = b"".join(buffers)
        self.unsent += len(data)
        self._queue.put(data)

    def close(self) -> None:
        self._queue.put(None)

    def _work(self) -> None:
        while (data := self._queue.get()) is not None:
            failed = not _write_whole(self._fd, data)
            try:
                self._loop.call_soon_threadsafe(self._done, len(data), failed)
            except RuntimeError:
                return

    def _done(self, size: int, failed: bool) -> None:
        self.unsent -= size
        if failed:
            self._watch.failed()
        else:
            self._watch.sent()


def _write_pieces(fd: int, pieces: deque[memoryview]) -> int:
    if len(pieces) == 1 or not hasattr(os, "writev"):
        return os.write(fd, pieces[0])
    return os.writev(fd, [pieces[index] for index in range(min(len(pieces), _MOST_PIECES))])


def _write_whole(fd: int, data: bytes) -> bool:
    view: memoryview | bytes = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        return False
    return True


def _nothing() -> None:
    """Stand in for a callback that is never called."""
