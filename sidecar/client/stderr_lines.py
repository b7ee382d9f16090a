"""Drains the standard error of a child, line by line."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from sidecar.rpc.reading import Reading, open_reading

KEPT_LINES = 20
"""Lines that are remembered for the case that the child ends."""
LONGEST_LINE = 4096
"""Bytes after which a line is handed on in pieces."""


class StderrLines:
    """Reads a descriptor until its end, so that the child never waits for a reader."""

    def __init__(self, fd: int, take_line: Callable[[str], None], *, pause_s: float = 0) -> None:
        """With `pause_s`, nothing is read for so many seconds after each piece: a flood is held up."""
        self.last: deque[str] = deque(maxlen=KEPT_LINES)
        """The newest lines, without their line ends."""
        self._take_line = take_line
        self._rest = b""
        self._ended = asyncio.Event()
        self._pause_s = pause_s
        self._loop = asyncio.get_running_loop()
        self._pausing: asyncio.TimerHandle | None = None
        self._reading: Reading = open_reading(self._loop, fd, self._take)

    async def drain(self, limit_s: float) -> None:
        """Wait for the end of the stream, `limit_s` seconds at most."""
        try:
            await asyncio.wait_for(self._ended.wait(), limit_s)
        except TimeoutError:
            return

    def close(self) -> None:
        """Read no more; what is left of a last line counts as a line."""
        self._reading.pause()
        if self._pausing is not None:
            self._pausing.cancel()
        self._end()

    def _take(self, chunk: bytes) -> None:
        if not chunk:
            self._end()
            return
        if self._pause_s:
            self._reading.pause()
            self._pausing = self._loop.call_later(self._pause_s, self._reading.resume)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._emit(line)
        while len(self._rest) > LONGEST_LINE:
            self._emit(self._rest[:LONGEST_LINE])
            self._rest = self._rest[LONGEST_LINE:]

    def _end(self) -> None:
        if self._rest:
            self._emit(self._rest)
            self._rest = b""
        self._ended.set()

    def _emit(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r")
        self.last.append(text)
        self._take_line(text)
