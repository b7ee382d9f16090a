"""A server process at the other end of pipes, with a limit on every wait."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType

from sidecar.conformance.kit import Violation
from sidecar.conformance.server.wire import Message, shown

_CHUNK = 65536
_HEADER_LIMIT = 8192


class ServerProcess:
    """A server that is killed when the with-block ends, if it still runs."""

    def __init__(
        self, command: Sequence[str], *, limit_s: float, lines: bool, environment: Mapping[str, str]
    ) -> None:
        self.limit_s = limit_s
        self.lines = lines
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed by __exit__
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=environment,
            )
        except OSError as error:
            self._log.close()
            raise Unusable(f"{command[0]} does not start: {error.strerror}") from error
        self._output = bytearray()
        self._chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._writes: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._reader.start()
        self._writer.start()

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._writes.put(None)
        self._reader.join(self.limit_s)
        self._writer.join(self.limit_s)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def send(self, data: bytes) -> None:
        """Hand bytes over to be written as they are; this never waits."""
        self._writes.put(data)

    def end_input(self) -> None:
        """Close the server's input behind what was sent."""
        self._writes.put(None)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, then wait for the end."""
        self._process.kill()
        self._process.wait()

    def receive(self, limit_s: float | None = None) -> Message | None:
        """The next message; `None` at the end of the output.

        Raises:
            Violation: nothing came within the limit, or bytes that are no message.
        """
        deadline = time.monotonic() + (self.limit_s if limit_s is None else limit_s)
        while (raw := self._take()) is None:
            try:
                chunk = self._chunks.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise Violation(f"nothing came within {limit_s or self.limit_s:g} s") from None
            if not chunk:
                self._chunks.put(b"")
                if self._output.strip():
                    raise Violation(f"bytes that are no message: {shown(bytes(self._output))}")
                return None
            self._output += chunk
        return Message(raw)

    def exit_status(self) -> int:
        """Wait for the end of the process; its status.

        Raises:
            Violation: it does not end within the limit.
        """
        try:
            return self._process.wait(self.limit_s)
        except subprocess.TimeoutExpired:
            raise Violation(f"the process did not end within {self.limit_s:g} s") from None

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def log(self) -> bytes:
        """What the server wrote to standard error so far."""
        return os.pread(self._log.fileno(), 1 << 24, 0)

    def _read(self) -> None:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        with suppress(OSError):
            while chunk := os.read(descriptor, _CHUNK):
                self._chunks.put(chunk)
        self._chunks.put(b"")

    def _write(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError), self._process.stdin as sink:
            while (data := self._writes.get()) is not None:
                sink.write(data)
                sink.flush()

    def _take(self) -> bytes | None:
        """The bytes of the next message, if they are all there."""
        output = self._output
        if self.lines:
            end = output.find(b"\n")
            start, end, after = 0, end, end + 1
        else:
            head = output.find(b"\r\n\r\n")
            if head < 0 and len(output) > _HEADER_LIMIT:
                raise Violation(f"bytes that are no frame: {shown(bytes(output))}")
            start = head + 4
            end = after = start + _content_length(bytes(output[:head])) if head >= 0 else -1
        if end < 0 or len(output) < after:
            return None
        message = bytes(output[start:end])
        del output[:after]
        return message


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if not colon:
            break
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return int(value)
    raise Violation(f"bytes that are no frame: {shown(head)}")


class Unusable(Exception):
    """The server cannot be tested at all, such as a command that does not start."""
