"""Carries a peer's bytes over two descriptors, such as standard input and output."""

import asyncio
import os
from collections.abc import Sequence

from sidecar.rpc.reading import Reading, open_reading
from sidecar.rpc.transport import Receiver
from sidecar.rpc.writing import Writing, open_writing


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
        self._reading: Reading | None = None
        self._writing: Writing | None = None
        self._moved: asyncio.Event | None = None

    @property
    def unsent(self) -> int:
        """Bytes that were written but wait to be sent."""
        return self._writing.unsent if self._writing is not None else 0

    def start(self, receiver: Receiver) -> None:
        """Begin to read."""
        loop = asyncio.get_running_loop()
        self._receiver = receiver
        self._moved = asyncio.Event()
        self._writing = open_writing(loop, self._sink, self)
        self._reading = open_reading(loop, self._source, self._take)

    def write(self, buffers: Sequence[bytes]) -> None:
        """Send the buffers in order."""
        if self._writing is not None:
            self._writing.write(buffers)

    def pause_reading(self) -> None:
        """Read nothing until `resume_reading`."""
        if self._reading is not None:
            self._reading.pause()

    def resume_reading(self) -> None:
        """Go on reading."""
        if self._reading is not None:
            self._reading.resume()

    def read_available(self) -> None:
        """Read what is there right now."""
        if self._reading is not None:
            self._reading.read_available()

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
        if self._reading is not None:
            self._reading.pause()
        if self._writing is not None:
            self._writing.close()
            self._writing = None

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
