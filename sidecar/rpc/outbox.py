"""Frames outgoing bodies, and gathers those of one callback into one write."""

from sidecar.rpc.transport import Transport

_LARGE = 32768
"""Bodies of at least this many bytes are handed on as they are instead of being copied behind a header."""


class Outbox:
    """Bodies on their way to the transport."""

    __slots__ = ("_frames", "_size", "_transport", "newline", "unsent")

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._frames: list[bytes] = []
        self._size = 0
        self.newline = False
        """Whether each message is one line."""
        self.unsent = 0
        """Bytes that wait here or in the transport; asked for every request, so kept as a number."""

    def put(self, body: bytes) -> None:
        """Frame a body; it leaves with the next `flush`."""
        size = len(body)
        self._size += size
        self.unsent += size
        if self.newline:
            # Line breaks inside strings are escaped, so those that are found stand between tokens.
            if b"\n" in body or b"\r" in body:
                body = body.replace(b"\n", b" ").replace(b"\r", b" ")
            self._frames += (body, b"\n")
        elif size < _LARGE:
            self._frames.append(b"Content-Length: %d\r\n\r\n%b" % (size, body))
        else:
            self._frames += (b"Content-Length: %d\r\n\r\n" % size, body)

    def flush(self) -> None:
        """Hand everything to the transport in one write."""
        if self._frames:
            frames, self._frames, self._size = self._frames, [], 0
            self._transport.write(frames)
        self.count()

    def count(self) -> None:
        """Ask the transport how much still waits there."""
        self.unsent = self._size + self._transport.unsent
