"""Two ways to read a descriptor: watched by the loop, or by a thread where the loop cannot watch it."""

import asyncio
import os
import select
import threading
from collections.abc import Callable
from typing import Protocol

READ_SIZE = 65536
"""Bytes of one read: a pipe holds no more, and larger buffers cost more to make than they save."""

_MOST_AT_ONCE = 64


class Reading(Protocol):
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


def open_reading(loop: asyncio.AbstractEventLoop, fd: int, take: Callable[[bytes], None]) -> Reading:
    """The way of reading that suits the descriptor, begun."""
    if not os.isatty(fd):
        try:
            return WatchedReading(loop, fd, take)
        except (NotImplementedError, OSError):
            pass
    return ThreadReading(loop, fd, take)


class WatchedReading:
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


class ThreadReading:
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
