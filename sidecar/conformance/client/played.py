"""The server that the suite plays: one connection, as one process of the client's sidecar."""

from __future__ import annotations

import queue
import socket
import struct
import threading
import time
from contextlib import suppress
from itertools import count

from sidecar.conformance.client.schema import check_message
from sidecar.conformance.kit import Violation
from sidecar.conformance.server.wire import Json, Message, Object, frame, shown
from sidecar.protocol.lifecycle import LATEST

_CHUNK = 65536
_HEADER_LIMIT = 8192
_PAUSE_S = 0.05


class PlayedServer:
    """Speaks with the client under test through one relay. Every wait has a limit."""

    def __init__(self, connection: socket.socket, problems: list[str], limit_s: float) -> None:
        self._connection = connection
        self._limit_s = limit_s
        self._problems = problems
        self._chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._input = bytearray()
        self._ids = count(1)
        self._answers: dict[Json, Message] = {}
        self._asked: dict[Json, str] = {}
        self._hello: Message | None = None
        self.notifications: list[Message] = []
        """Notifications of the client that nothing has waited for."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    # Sending

    def send(self, body: Json | bytes | str) -> None:
        """Send a message."""
        self.write(frame(body))

    def write(self, data: bytes) -> None:
        """Write bytes to standard output as they are."""
        self._packet(b"o", data)

    def complain(self, data: bytes) -> None:
        """Write bytes to standard error."""
        self._packet(b"e", data)

    def answer(self, request: Message, result: Json) -> None:
        """Answer a request of the client with a result."""
        self.send({"jsonrpc": "2.0", "id": request.id, "result": result})

    def refuse(self, request: Message, code: int, text: str = "It cannot be done.", **data: Json) -> None:
        """Answer a request of the client with an error."""
        full: Object = {"retryable": False, "hint": "Leave it.", **data}
        error: Object = {"code": code, "message": text, "data": full}
        self.send({"jsonrpc": "2.0", "id": request.id, "error": error})

    def tell(self, method: str, params: Json) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: Json) -> int:
        """Send a request; its id."""
        id = next(self._ids)
        self._asked[id] = method
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    # Receiving

    def next(self) -> Message:
        """The next message of the client.

        Raises:
            Violation: none comes within the limit, or the input ends.
        """
        message = self._receive()
        if message is None:
            raise Violation("the client closed the server's input where a message was due")
        return message

    def request(self, method: str) -> Message:
        """Wait for a request of the client.

        Raises:
            Violation: another request comes first, or none.
        """
        while True:
            message = self.next()
            if message.is_response:
                self._answers[message.id] = message
            elif "id" not in message.body:
                self.notifications.append(message)
            elif message.method == method:
                return message
            else:
                raise Violation(f"{method} is due, and the client asks for {message.method}")

    def notification(self, method: str) -> Message:
        """Wait for a notification of the client; earlier ones count.

        Raises:
            Violation: a request comes first, or nothing.
        """
        while True:
            for message in self.notifications:
                if message.method == method:
                    self.notifications.remove(message)
                    return message
            message = self.next()
            if message.is_response:
                self._answers[message.id] = message
            elif "id" in message.body:
                raise Violation(f"{method} is due, and the client asks for {message.method}")
            else:
                self.notifications.append(message)

    def answer_to(self, id: int) -> Message:
        """Wait for the client's answer to a request of ours."""
        while id not in self._answers:
            message = self.next()
            if message.is_response:
                self._answers[message.id] = message
            elif "id" not in message.body:
                self.notifications.append(message)
            else:
                raise Violation(f"an answer is due, and the client asks for {message.method}")
        return self._answers.pop(id)

    def end_of_input(self) -> list[Message]:
        """Everything up to the end of what the client writes."""
        messages: list[Message] = []
        while (message := self._receive()) is not None:
            messages.append(message)
        return messages

    # Steps

    def welcome(self) -> None:
        """Answer `initialize` as a good server does."""
        self._hello = self.request("initialize")
        self.answer(self._hello, greeting())

    @property
    def hello(self) -> Message:
        """The request `initialize`, once it was welcomed."""
        assert self._hello is not None
        return self._hello

    def finish(self) -> None:
        """Take part in an orderly end."""
        self.answer(self.request("shutdown"), None)
        self.notification("exit")
        self.exit(0)

    # Ending

    def close_output(self) -> None:
        """Close standard output, and live on."""
        self._packet(b"c", b"")

    def grow_deaf(self) -> None:
        """Ignore SIGTERM from now on."""
        self._packet(b"d", b"")

    def exit(self, status: int) -> None:
        """End the process."""
        self._packet(b"x", b"%d" % status)

    def gone(self, limit_s: float) -> bool:
        """Whether the process is gone, or goes within so many seconds."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            try:
                self._connection.sendall(struct.pack(">cI", b"n", 0))
            except OSError:
                return True
            time.sleep(_PAUSE_S)
        return False

    def close(self) -> None:
        """Leave the process alone, which ends it."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
        self._reader.join(self._limit_s)

    def _packet(self, kind: bytes, payload: bytes) -> None:
        with suppress(OSError):  # a client may have ended the process, which is for checks to say
            self._connection.sendall(struct.pack(">cI", kind, len(payload)) + payload)

    def _read(self) -> None:
        with suppress(OSError):
            while chunk := self._connection.recv(_CHUNK):
                self._chunks.put(chunk)
        self._chunks.put(b"")

    def _receive(self) -> Message | None:
        deadline = time.monotonic() + self._limit_s
        while (raw := self._take()) is None:
            try:
                chunk = self._chunks.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise Violation(f"nothing came from the client within {self._limit_s:g} s") from None
            if not chunk:
                self._chunks.put(b"")
                if self._input:
                    raise Violation(f"the client's last bytes are no frame: {shown(bytes(self._input))}")
                return None
            self._input += chunk
        message = _read_message(raw)
        method = self._asked.pop(message.id, None) if message.is_response else None
        try:
            check_message(message, method)
        except Violation as violation:
            self._problems.append(str(violation))
        return message

    def _take(self) -> bytes | None:
        head = self._input.find(b"\r\n\r\n")
        if head < 0:
            if len(self._input) > _HEADER_LIMIT:
                raise Violation(f"bytes that are no frame: {shown(bytes(self._input))}")
            return None
        lines = bytes(self._input[:head]).split(b"\r\n")
        named = [line.partition(b":") for line in lines]
        lengths = {value.strip() for name, _, value in named if name.strip().lower() == b"content-length"}
        if len(lengths) != 1 or not (length := lengths.pop()).isdigit():
            raise Violation(f"a header block without one length: {shown(bytes(self._input[:head]))}")
        end = head + 4 + int(length)
        if len(self._input) < end:
            return None
        raw = bytes(self._input[head + 4 : end])
        del self._input[:end]
        return raw


def greeting(**offer: Json) -> Object:
    """A good answer to `initialize`, with other members of the offer where they are given."""
    engine: Object = {
        "id": "full",
        "name": "Full history",
        "version": "1.0.0",
        "ownsCompaction": True,
        "turnMaintenanceMode": "foreground",
        "implements": ["ingest", "assemble"],
    }
    limits: Object = {
        "maxMessageBytes": 268_435_456,
        "maxInFlight": 256,
        "maxParkedBytes": 67_108_864,
        "hostRequestTimeoutMs": 120_000,
        "defaultTokenBudget": 128_000,
    }
    whole: Object = {
        "protocolVersion": LATEST,
        "engine": engine,
        "methods": ["context/ingest", "context/assemble", "session/list", "engine/list"],
        "tools": [],
        "messageFormats": ["openai"],
        "limits": limits,
        **offer,
    }
    return {
        "serverInfo": {"name": "played", "version": "1"},
        "capabilities": {"experimental": {"contextEngine": whole}},
    }


def assembled(messages: list[Json] | None, result_id: str, **members: Json) -> Object:
    """A good answer to `context/assemble`, whole or, without messages, with `edits` among the members."""
    count = 3 if messages is None else len(messages)
    answer: Object = {
        "estimatedTokens": 10,
        "contextEpoch": 1,
        "stablePrefix": {"messageCount": 0, "tokens": 0},
        "resultId": result_id,
        "composition": [{"kind": "recent", "tokens": 10, "messageCount": count}],
    }
    return {**answer, **({} if messages is None else {"messages": messages}), **members}


def _read_message(raw: bytes) -> Message:
    try:
        return Message(raw)
    except Violation:
        raise Violation(f"the client sent {shown(raw)}, which is no JSON object in UTF-8") from None
