"""A test host connected to one server process; every wait is bounded."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from types import TracebackType

from sidecar.conformance.kit import NotDeclared, Unusable, Violation
from sidecar.conformance.wire import (
    Inbox,
    Json,
    Message,
    Object,
    check_message,
    encode,
    frame,
    notification,
    request,
)

Answer = Callable[[Message], Object]
"""Answers a request of the server with `{"result": ...}` or `{"error": ...}`, or leaves it open with `{}`."""

_UNKNOWN: Object = {"error": {"code": -32601, "message": "this host does not have the method"}}


class ServerProcess:
    """A server process that is killed at the end of the with-block if it still runs."""

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
        assert self._process.stdout is not None
        self._inbox = Inbox(partial(os.read, self._process.stdout.fileno()), lines=lines, limit_s=limit_s)
        self.receive = self._inbox.receive
        self._writes: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, daemon=True)
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
        self._inbox.join()
        self._writer.join(self.limit_s)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def send(self, data: bytes) -> None:
        """Queue bytes for writing as they are; never blocks."""
        self._writes.put(data)

    def end_input(self) -> None:
        """Close the server's input after everything queued so far."""
        self._writes.put(None)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL and wait for the process to end."""
        self._process.kill()
        self._process.wait()

    def exit_status(self) -> int:
        """Wait for the process to end and return its exit status.

        Raises:
            Violation: the process does not end within the limit.
        """
        try:
            return self._process.wait(self.limit_s)
        except subprocess.TimeoutExpired:
            raise Violation(f"the process did not end within {self.limit_s:g} s") from None

    @property
    def running(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def log(self) -> bytes:
        """The server's standard error output so far."""
        return os.pread(self._log.fileno(), 1 << 24, 0)

    def _write(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError), self._process.stdin as sink:
            while (data := self._writes.get()) is not None:
                sink.write(data)
                sink.flush()


class Host:
    """One connection. Collects the server's notifications and requests while it waits for other messages."""

    def __init__(self, process: ServerProcess, problems: list[str]) -> None:
        self.process = process
        self.notifications: list[Message] = []
        """Notifications of the server, in the order received, without those that a wait has consumed."""
        self.server_requests: list[Message] = []
        """Requests of the server, in the order received, without those that a wait has consumed."""
        self.answers: dict[str, Answer] = {}
        """Answers to the server's requests, by method; other methods get -32601."""
        self.offer: Object = {}
        """The member `contextEngine` of the server's answer to `initialize`."""
        self._problems = problems
        self._ids = count(1)
        self._pending: dict[Json, str] = {}
        self._early: dict[Json, Message] = {}

    def __enter__(self) -> Host:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.__exit__(kind, error, trace)

    # Sending

    def write(self, body: bytes | str | Json) -> None:
        """Send any body in the framing of the connection."""
        self.process.send(encode(body) + b"\n" if self.process.lines else frame(body))

    def notify(self, method: str, params: Json = None) -> None:
        """Send a notification."""
        self.write(notification(method, {} if params is None else params))

    def begin(self, method: str, params: Json = None, id: int | str | None = None) -> int | str:
        """Send a request without waiting for the answer, and return its id."""
        id = next(self._ids) if id is None else id
        self._pending[id] = method
        self.write(request(id, method, {} if params is None else params))
        return id

    def cancel(self, id: int | str) -> None:
        """Send `$/cancelRequest` for a request."""
        self.notify("$/cancelRequest", {"id": id})

    # Receiving

    def request(self, method: str, params: Json = None) -> Message:
        """Send a request and wait for its answer, which may be an error."""
        return self.answer(self.begin(method, params))

    def result(self, method: str, params: Json = None) -> Message:
        """Send a request and wait for its answer, which must be a result.

        Raises:
            Violation: the answer is an error.
        """
        answer = self.request(method, params)
        answer.result()
        return answer

    def answer(self, id: Json) -> Message:
        """Wait for the answer to a request, and answer the server's requests meanwhile."""
        if id in self._early:
            return self._early.pop(id)
        while True:
            message = self.next()
            if message.is_response and message.id == id:
                return message
            self._keep(message)

    def answer_to_any(self, *ids: Json) -> Message:
        """Wait for the first answer with one of these ids."""
        while True:
            for id in ids:
                if id in self._early:
                    return self._early.pop(id)
            self._keep(self.next())

    def early(self) -> list[Message]:
        """Answers received that nothing has waited for."""
        return list(self._early.values())

    def answers_in_order(self, number: int) -> list[Message]:
        """Wait for `number` answers and return them in the order received."""
        found = list(self._early.values())
        self._early.clear()
        while len(found) < number:
            message = self.next()
            if message.is_response:
                found.append(message)
        return found

    def wait_for_request(self, method: str) -> Message:
        """Wait for a request of the server; one received earlier counts."""
        return self._wait_for(self.server_requests, method)

    def wait_for_notification(self, method: str) -> Message:
        """Wait for a notification of the server; one received earlier counts."""
        return self._wait_for(self.notifications, method)

    def next(self) -> Message:
        """The next message; a request of the server is answered from `answers` right away.

        Raises:
            Violation: the server has closed its output, or nothing arrives within the limit.
        """
        message = self.process.receive()
        if message is None:
            raise Violation("the server closed its output while more messages were expected")
        self._note(message)
        return message

    def step(self) -> None:
        """Receive one message and keep it for a later wait."""
        self._keep(self.next())

    def rest(self) -> list[Message]:
        """Every message up to the end of the output, including answers that nothing has waited for."""
        messages = list(self._early.values())
        while (message := self.process.receive()) is not None:
            self._note(message)
            messages.append(message)
        return messages

    # Steps

    def initialize(self, params: Object) -> Message:
        """Perform the handshake and return the answer to `initialize`, which may be an error."""
        answer = self.request("initialize", params)
        if "result" in answer.body:
            offer = answer.at("/result/capabilities/experimental/contextEngine", {})
            self.offer = offer if isinstance(offer, dict) else {}
            self.notify("initialized")
        return answer

    def declares(self, method: str) -> bool:
        """Whether the server declares a method."""
        declared = self.offer.get("methods")
        return isinstance(declared, list) and method in declared

    def expect_format(self, name: str) -> None:
        """Require a message format.

        Raises:
            NotDeclared: the server does not declare it.
        """
        declared = self.offer.get("messageFormats")
        if not isinstance(declared, list) or name not in declared:
            raise NotDeclared(f"the message format {name} is not declared")

    def limit(self, name: str) -> int:
        """The value of a limit that the server declares.

        Raises:
            NotDeclared: the server does not declare it.
        """
        limits = self.offer.get("limits")
        value = limits.get(name) if isinstance(limits, dict) else None
        if not isinstance(value, int):
            raise NotDeclared(f"limits.{name} is not declared")
        return value

    def alive(self) -> None:
        """Check that the connection still answers requests.

        Raises:
            Violation: no answer arrives, or the server has ended.
        """
        self.request("conformance/unknownMethod")

    def _wait_for(self, seen: list[Message], method: str) -> Message:
        while True:
            for message in seen:
                if message.method == method:
                    seen.remove(message)
                    return message
            self._keep(self.next())

    def _note(self, message: Message) -> None:
        answered = self._pending.pop(message.id, None) if message.is_response else None
        try:
            check_message(message, "server", answered)
        except Violation as violation:
            self._problems.append(str(violation))
        if message.is_response:
            return
        if "id" in message.body:
            self.server_requests.append(message)
            answer = self.answers.get(message.method or "")
            reply = _UNKNOWN if answer is None else answer(message)
            if reply:
                self.write({"jsonrpc": "2.0", "id": message.id, **reply})
        else:
            self.notifications.append(message)

    def _keep(self, message: Message) -> None:
        if message.is_response:
            if message.id is not None and message.id in self._early:
                raise Violation(f"two answers to request {message.id}")
            self._early[message.id] = message
