"""The process that a host takes for a server: ours, with one thing spoilt on the way."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.conformance.spoiling.streams import Cutter, Piece

Message = dict[str, Any]
_OWN = "spoilt-"


class Spoilt(NamedTuple):
    """One thing that a broken server does, as changes of what passes between a host and ours."""

    what: str
    """What it does, in words that go on from "A server that"."""
    data: "Callable[[Proxy, bytes], bytes] | None" = None
    """Changes bytes of the host, as they are read."""
    request: "Callable[[Proxy, Message], Message | None] | None" = None
    """Changes a message of the host; `None` swallows it."""
    reply: "Callable[[Proxy, Message, Message], Message | None] | None" = None
    """Changes a message of the server, given the request that it answers, or an empty one."""
    written: "Callable[[Proxy, bytes, Message], bytes] | None" = None
    """Changes the bytes of a message of the server, given the request that it answers."""
    heard: "Callable[[Proxy, bytes], bytes] | None" = None
    """Changes bytes of the server, as they are read."""
    mute: bool = False
    """Whether nobody reads the server's standard error."""
    status: Callable[[int], int] = int
    """Changes the exit status."""
    last: bytes = b""
    """Bytes that are written behind everything."""


WHOLE = Spoilt("does everything right")
SWITCH = "$/spoil"
"""The request by which a test has a running proxy spoil what `params.name` names."""


class Proxy:
    """Stands between the host on the standard streams and a server of its own."""

    def __init__(self, table: Mapping[str, Spoilt], name: str, command: Sequence[str]) -> None:
        self._table = table
        self._spoilt = table.get(name, WHOLE)
        self.server = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=_nobody() if self._spoilt.mute else None,
        )
        self._from_host, self._from_server = Cutter(), Cutter()
        self._requests: dict[tuple[type, object], Message] = {}
        self._writing = threading.Lock()
        self._own = 0
        self.memory: dict[str, Any] = {}
        """What a change remembers from one message to the next."""
        signal.signal(signal.SIGTERM, lambda *_: self.server.terminate())

    def run(self) -> None:
        """Pass everything on until the server has ended; then end as it did."""
        threading.Thread(target=self._listen, daemon=True).start()
        assert self.server.stdout is not None
        while data := os.read(self.server.stdout.fileno(), 65536):
            if self._spoilt.heard is not None:
                data = self._spoilt.heard(self, data)
            for piece in self._from_server.feed(data):
                self._answer(piece)
        self.write(self._from_server.rest() + self._spoilt.last)
        self.end(self._spoilt.status(self.server.wait()))

    def end(self, status: int) -> None:
        """End the process at once, and the server with it."""
        self.server.kill()
        os._exit(status if status >= 0 else 128 - status)

    def write(self, data: bytes) -> None:
        """Send bytes to the host."""
        with self._writing:
            while data:
                data = data[os.write(1, data) :]

    def say(self, message: Message) -> None:
        """Send a message to the host."""
        self.write(self.framed(message))

    def ask(self, method: str, params: Message) -> None:
        """Send the server a request of our own; its answer is thrown away."""
        self._own += 1
        self.pass_on({"jsonrpc": "2.0", "id": f"{_OWN}{self._own}", "method": method, "params": params})

    def framed(self, message: Message) -> bytes:
        """A message as bytes in the framing of the host."""
        return self._from_host.written(message)

    def _listen(self) -> None:
        assert self.server.stdin is not None
        while data := os.read(0, 65536):
            if self._spoilt.data is not None:
                data = self._spoilt.data(self, data)
            for piece in self._from_host.feed(data):
                self._hear(piece)
        self.pass_on(self._from_host.rest())
        self.server.stdin.close()

    def _hear(self, piece: Piece) -> None:
        raw, message = piece
        if message is None:
            self.pass_on(raw)
            return
        if message.get("method") == SWITCH:
            self._spoilt = self._table.get(message["params"]["name"], WHOLE)
            self.memory.clear()
            self.say({"jsonrpc": "2.0", "id": message["id"], "result": None})
            return
        key = _key(message)
        if key and "method" in message:
            self._requests[key] = message
        if self._spoilt.request is None:
            self.pass_on(raw)
            return
        before = self.framed(message)
        changed = self._spoilt.request(self, message)
        if changed is not None:
            after = self.framed(changed)
            self.pass_on(raw if after == before else after)

    def pass_on(self, data: bytes | Message) -> None:
        """Send the server bytes, or a message."""
        if isinstance(data, dict):
            data = self.framed(data)
        assert self.server.stdin is not None
        self.server.stdin.write(data)
        self.server.stdin.flush()

    def _answer(self, piece: Piece) -> None:
        raw, message = piece
        if message is None:
            self.write(raw)
            return
        if str(message.get("id")).startswith(_OWN):
            return
        key = _key(message)
        asked: Message = (self._requests.get(key) or {}) if key and "method" not in message else {}
        if self._spoilt.reply is not None:
            before = self.framed(message)
            changed = self._spoilt.reply(self, message, asked)
            if changed is None:
                return
            after = self.framed(changed)
            raw = raw if after == before else after
        if self._spoilt.written is not None:
            raw = self._spoilt.written(self, raw, asked)
        self.write(raw)


def _nobody() -> int:
    """The end of a pipe that nobody reads from."""
    read, write = os.pipe()
    os.close(read)
    return write


def _key(message: Message) -> tuple[type, object] | None:
    id = message.get("id")
    return (type(id), id) if isinstance(id, str | int) else None


if __name__ == "__main__":
    from tests.conformance.spoiling.table import SPOILT

    Proxy(SPOILT, Path(sys.argv[1]).read_text(), sys.argv[2:]).run()
