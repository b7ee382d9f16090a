"""The server that the suite simulates: one connection to one process that the client has started."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import suppress
from itertools import count

from sidecar.conformance.kit import Violation
from sidecar.conformance.wire import Inbox, Json, Message, Object, check_message, frame
from sidecar.protocol.lifecycle import LATEST

_PAUSE_S = 0.05


class PlayedServer:
    """Talks to the client under test through one relay. Every wait is bounded."""

    def __init__(self, connection: socket.socket, problems: list[str], limit_s: float) -> None:
        self._connection = connection
        self._limit_s = limit_s
        self._problems = problems
        self._ids = count(1)
        self._answers: dict[Json, Message] = {}
        self._asked: dict[Json, str] = {}
        self._hello: Message | None = None
        self.notifications: list[Message] = []
        """Notifications of the client, without those that a wait has consumed."""
        self._inbox = Inbox(connection.recv, lines=False, limit_s=limit_s)

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
        """Send a request and return its id."""
        id = next(self._ids)
        self._asked[id] = method
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    # Receiving

    def next(self) -> Message:
        """The next message of the client.

        Raises:
            Violation: nothing arrives within the limit, or the input ends.
        """
        message = self._receive()
        if message is None:
            raise Violation("the client closed the server's input while a message was expected")
        return message

    def request(self, method: str) -> Message:
        """Wait for a request of the client.

        Raises:
            Violation: another request arrives first, or none within the limit.
        """
        while (message := self.next()).method != method or "id" not in message.body:
            self._keep(message, method)
        return message

    def notification(self, method: str) -> Message:
        """Wait for a notification of the client; one received earlier counts.

        Raises:
            Violation: a request arrives first, or nothing within the limit.
        """
        while True:
            for message in self.notifications:
                if message.method == method:
                    self.notifications.remove(message)
                    return message
            self._keep(self.next(), method)

    def answer_to(self, id: int) -> Message:
        """Wait for the client's answer to a request that `ask` sent."""
        while id not in self._answers:
            self._keep(self.next(), "an answer")
        return self._answers.pop(id)

    def _keep(self, message: Message, expected: str) -> None:
        """Keep an answer or a notification for a later wait.

        Raises:
            Violation: the message is a request.
        """
        if message.is_response:
            self._answers[message.id] = message
        elif "id" not in message.body:
            self.notifications.append(message)
        else:
            raise Violation(f"expected {expected}, but the client requests {message.method}")

    def end_of_input(self) -> list[Message]:
        """All messages up to the end of the client's output."""
        messages: list[Message] = []
        while (message := self._receive()) is not None:
            messages.append(message)
        return messages

    # Steps

    def welcome(self) -> None:
        """Wait for `initialize` and answer it as a conforming server does."""
        self._hello = self.request("initialize")
        self.answer(self._hello, greeting())

    @property
    def hello(self) -> Message:
        """The request `initialize`; call `welcome` first."""
        assert self._hello is not None
        return self._hello

    def finish(self) -> None:
        """Answer `shutdown`, wait for `exit`, and end the process."""
        self.answer(self.request("shutdown"), None)
        self.notification("exit")
        self.exit(0)

    # Ending

    def close_output(self) -> None:
        """Close standard output, but keep running."""
        self._packet(b"c", b"")

    def ignore_sigterm(self) -> None:
        """Ignore SIGTERM from now on."""
        self._packet(b"d", b"")

    def exit(self, status: int) -> None:
        """End the process."""
        self._packet(b"x", b"%d" % status)

    def gone(self, limit_s: float) -> bool:
        """Whether the process ends within `limit_s` seconds."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            try:
                self._connection.sendall(struct.pack(">cI", b"n", 0))
            except OSError:
                return True
            time.sleep(_PAUSE_S)
        return False

    def close(self) -> None:
        """Close the connection, which ends the process."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
        self._inbox.join()

    def _packet(self, kind: bytes, payload: bytes) -> None:
        with suppress(OSError):  # the client may have ended the process; checks judge that
            self._connection.sendall(struct.pack(">cI", kind, len(payload)) + payload)

    def _receive(self) -> Message | None:
        message = self._inbox.receive()
        if message is not None:
            answered = self._asked.pop(message.id, None) if message.is_response else None
            try:
                check_message(message, "client", answered)
            except Violation as violation:
                self._problems.append(str(violation))
        return message


def greeting(**offer: Json) -> Object:
    """A valid answer to `initialize`; `offer` replaces members of `contextEngine`."""
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
    """A valid answer to `context/assemble`; pass `edits` among the members if `messages` is `None`."""
    count = 3 if messages is None else len(messages)
    answer: Object = {
        "estimatedTokens": 10,
        "contextEpoch": 1,
        "stablePrefix": {"messageCount": 0, "tokens": 0},
        "resultId": result_id,
        "composition": [{"kind": "recent", "tokens": 10, "messageCount": count}],
    }
    return {**answer, **({} if messages is None else {"messages": messages}), **members}
