"""A real server process at the other end of real pipes, with a limit on every wait."""

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple

LIMIT_S = 20.0
"""Maximum wait for anything expected immediately; generous, because machines can be busy."""

Message = dict[str, Any]


class Target(NamedTuple):
    """A server to test, and a harmless request that it answers with a result."""

    name: str
    command: tuple[str, ...]
    ping: str
    initialize: Message


def frame(body: bytes | str | Message | list[Any]) -> bytes:
    """A body with its header; anything but bytes and text is encoded as JSON."""
    if not isinstance(body, bytes | str):
        body = json.dumps(body, ensure_ascii=False)
    data = body.encode() if isinstance(body, str) else body
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data)


def request(id: int | str, method: str, params: object = None) -> Message:
    """A request."""
    message: Message = {"jsonrpc": "2.0", "id": id, "method": method}
    return message if params is None else {**message, "params": params}


def notification(method: str, params: object = None) -> Message:
    """A notification."""
    message: Message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


class ServerProcess:
    """A server that is killed at the end of the with-block if still running."""

    def __init__(
        self, command: Sequence[str], *, lines: bool = False, env: dict[str, str] | None = None
    ) -> None:
        self.lines = lines
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  closed by __exit__
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env={**os.environ, "CONTEXT_SIDECAR_STATE_DIR": self._folder.name, **(env or {})},
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self.pid = self._process.pid
        self.source = self._process.stdout.fileno()
        self._sink = self._process.stdin.fileno()
        self.output = b""
        """Bytes received but not parsed into messages yet."""

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(LIMIT_S)
        for stream in (self._process.stdin, self._process.stdout, self.log):
            if stream is not None and not stream.closed:
                stream.close()
        self._folder.cleanup()

    def send(self, data: bytes) -> None:
        """Write raw bytes within the time limit."""
        deadline = time.monotonic() + LIMIT_S
        os.set_blocking(self._sink, False)
        view = memoryview(data)
        while view:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([], [self._sink], [], left)[1], "the server does not read"
            view = view[os.write(self._sink, view) :]

    def say(self, *messages: Message) -> None:
        """Write messages in a single write."""
        if self.lines:
            self.send(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        else:
            self.send(b"".join(frame(message) for message in messages))

    def read(self, limit_s: float = LIMIT_S) -> Message:
        """The next message."""
        deadline = time.monotonic() + limit_s
        while (message := self._take()) is None:
            left = deadline - time.monotonic()
            assert left > 0, f"nothing came within {limit_s} s; so far: {self.output[:500]!r}"
            assert self._fill(left), f"the server has closed its output; {self.errors()}"
        return message

    def answer(self, id: int | str | None) -> Message:
        """The next answer, which must be to `id`; only notifications may precede it."""
        while True:
            message = self.read()
            if "method" in message and "id" not in message:
                continue
            assert message.get("id") == id and "method" not in message, message
            return message

    def answers(self, count: int) -> dict[int | str | None, Message]:
        """The next answers by id, in order of arrival."""
        found: dict[int | str | None, Message] = {}
        while len(found) < count:
            message = self.read()
            if "method" not in message:
                assert message["id"] not in found, f"two answers to {message['id']}"
                found[message["id"]] = message
        return found

    def rest(self) -> list[Message]:
        """All messages up to the end of output."""
        messages: list[Message] = []
        deadline = time.monotonic() + LIMIT_S
        while True:
            while (message := self._take()) is not None:
                messages.append(message)
            left = deadline - time.monotonic()
            assert left > 0, "the server does not close its output"
            if not self._fill(left):
                assert not self.output, f"bytes that are no message: {self.output[:200]!r}"
                return messages

    def initialize(self, params: Message) -> Message:
        """Do the handshake; returns the answer to initialize."""
        self.say(request("init", "initialize", params))
        answer = self.answer("init")
        if "result" in answer:
            self.say(notification("initialized", {}))
        return answer

    def end_input(self) -> None:
        """Close the server's input."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def close_output(self) -> None:
        """Stop reading the server's output."""
        assert self._process.stdout is not None
        self._process.stdout.close()

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.send_signal(signal.SIGTERM)

    def exit_code(self, limit_s: float = LIMIT_S) -> int:
        """Wait for the process to end."""
        return self._process.wait(limit_s)

    def errors(self) -> str:
        """The server's stderr so far."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def wait_for(self, condition: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
        """Wait until the condition holds."""
        deadline = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true"
            select.select([], [], [], 0.01)

    def _fill(self, limit_s: float) -> bool:
        if not select.select([self.source], [], [], limit_s)[0]:
            return True
        chunk = os.read(self.source, 65536)
        self.output += chunk
        return bool(chunk)

    def _take(self) -> Message | None:
        if self.lines:
            line, end, rest = self.output.partition(b"\n")
            if not end:
                return None
            self.output = rest
            return json.loads(line)
        head, end, rest = self.output.partition(b"\r\n\r\n")
        if not end:
            return None
        name, _, value = head.partition(b": ")
        assert name == b"Content-Length", f"bytes that are no frame: {self.output[:200]!r}"
        size = int(value)
        if len(rest) < size:
            return None
        self.output = rest[size:]
        return json.loads(rest[:size])
