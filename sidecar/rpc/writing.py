"""Two ways to write a descriptor without blocking the loop: watched by it, or from a thread."""

import asyncio
import os
import queue
import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol

_JOIN_BELOW = 262_144
"""Writes of fewer bytes are copied together; larger ones are handed to the kernel piece by piece."""

_MOST_PIECES = 64


class Writing(Protocol):
    """Sends buffers in order."""

    unsent: int
    """Bytes that wait to be sent."""

    def write(self, buffers: Sequence[bytes]) -> None:
        """Send the buffers, now or later."""
        ...

    def close(self) -> None:
        """Drop what is unsent."""
        ...


class Progress(Protocol):
    """Told on the loop's thread how sending goes."""

    def sent(self) -> None:
        """Some of what waited has been sent."""
        ...

    def failed(self) -> None:
        """Nothing more can be sent."""
        ...


def open_writing(loop: asyncio.AbstractEventLoop, fd: int, progress: Progress) -> Writing:
    """The way of writing that suits the descriptor."""
    if not os.isatty(fd):
        try:
            return WatchedWriting(loop, fd, progress)
        except (NotImplementedError, OSError):
            pass
    return ThreadWriting(loop, fd, progress)


class WatchedWriting:
    """Writes at once what the kernel takes, and the rest when the loop says that it takes more."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, progress: Progress) -> None:
        # Only a descriptor that the loop can watch is of use here; others make this raise.
        loop.add_writer(fd, _nothing)
        loop.remove_writer(fd)
        self.unsent = 0
        self._loop = loop
        self._fd = fd
        self._progress = progress
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
        self._progress.sent()

    def _break(self) -> None:
        self._broken = True
        self._queue.clear()
        self.unsent = 0
        self._loop.remove_writer(self._fd)
        self._loop.call_soon(self._progress.failed)


class ThreadWriting:
    """Writes in a thread that may block: files, terminals, Windows."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, progress: Progress) -> None:
        self.unsent = 0
        self._loop = loop
        self._fd = fd
        self._progress = progress
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
            self._progress.failed()
        else:
            self._progress.sent()


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
