"""Carries a peer's bytes over two file descriptors, such as stdin and stdout, without blocking the loop."""

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
    """Private copies of the stdin and stdout descriptors; from now on, stray prints go to stderr.

    Descriptor 0 then reads as empty, so that no child process can take the peer's bytes.
    """
    _fill_gaps()
    source, sink = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return source, sink


class StdioTransport:
    """A transport that reads from one descriptor and writes to another."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._receiver: Receiver | None = None
        self._reader: Reader | None = None
        self._writer: Writer | None = None
        self._moved: asyncio.Event | None = None

    @property
    def unsent(self) -> int:
        """Bytes written but not sent yet."""
        return self._writer.unsent if self._writer is not None else 0

    def start(self, receiver: Receiver) -> None:
        """Start reading."""
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
        """Stop reading until `resume_reading`."""
        if self._reader is not None:
            self._reader.pause()

    def resume_reading(self) -> None:
        """Resume reading."""
        if self._reader is not None:
            self._reader.resume()

    def read_available(self) -> None:
        """Read what is there right now."""
        if self._reader is not None:
            self._reader.read_available()

    async def flush(self, limit_s: float) -> bool:
        """Wait until everything is sent. Returns false if nothing moved for `limit_s` seconds."""
        while self.unsent:
            assert self._moved is not None
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), limit_s)
            except TimeoutError:
                return False
        return True

    def close(self) -> None:
        """Stop reading, drop unsent bytes, restore the descriptors' original state."""
        if self._reader is not None:
            self._reader.pause()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def sent(self) -> None:
        """Tell the receiver that some bytes were sent."""
        if self._moved is not None:
            self._moved.set()
        if self._receiver is not None:
            self._receiver.drained()

    def failed(self) -> None:
        """Tell the receiver that nothing more can be sent."""
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
    """Open any closed descriptor among 0 to 2; otherwise a file could get its number and receive prints."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


READ_SIZE = 65536
"""Bytes per read: a pipe holds no more, and larger buffers cost more to allocate than they save."""

_MOST_AT_ONCE = 64


class Reader(Protocol):
    """Passes every chunk to `take` on the loop's thread, and an empty one at the end."""

    def pause(self) -> None:
        """Stop reading until `resume`."""
        ...

    def resume(self) -> None:
        """Resume reading."""
        ...

    def read_available(self) -> None:
        """Read what is there right now."""
        ...


def open_reader(loop: asyncio.AbstractEventLoop, fd: int, take: Callable[[bytes], None]) -> Reader:
    """A started reader of the kind that suits the descriptor."""
    if not os.isatty(fd):
        try:
            return WatchedReader(loop, fd, take)
        except (NotImplementedError, OSError):
            pass
    return ThreadReader(loop, fd, take)


class WatchedReader:
    """Reads when the loop reports data: for pipes and sockets."""

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
    """Reads in a thread, at most one chunk ahead of the loop: for files, terminals and Windows."""

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
"""Buffers totalling fewer bytes are joined into one; larger writes go to the kernel piece by piece."""

_MOST_PIECES = 64


class Writer(Protocol):
    """Sends buffers in order."""

    unsent: int
    """Bytes waiting to be sent."""

    def write(self, buffers: Sequence[bytes]) -> None:
        """Send the buffers, now or later."""
        ...

    def close(self) -> None:
        """Drop unsent bytes."""
        ...


class SendWatch(Protocol):
    """Receives the outcome of sending, on the loop's thread."""

    def sent(self) -> None:
        """Some pending bytes were sent."""
        ...

    def failed(self) -> None:
        """Nothing more can be sent."""
        ...


def open_writer(loop: asyncio.AbstractEventLoop, fd: int, watch: SendWatch) -> Writer:
    """A writer of the kind that suits the descriptor."""
    if not os.isatty(fd):
        try:
            return WatchedWriter(loop, fd, watch)
        except (NotImplementedError, OSError):
            pass
    return ThreadWriter(loop, fd, watch)


class WatchedWriter:
    """Writes what the kernel accepts at once, and the rest when the loop reports room."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, watch: SendWatch) -> None:
        # Raises for a descriptor that the loop cannot watch.
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
    """Writes in a thread that may block: for files, terminals and Windows."""

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
