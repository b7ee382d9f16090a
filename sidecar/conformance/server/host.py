"""A host that speaks to one server process, request by request."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from types import TracebackType

from sidecar.conformance.kit import NotDeclared, Violation
from sidecar.conformance.server.process import ServerProcess
from sidecar.conformance.server.wire import (
    Json,
    Message,
    Object,
    check_message,
    check_result,
    encode,
    frame,
    notification,
    request,
)

Answer = Callable[[Message], Object]
"""Makes the `result` or `error` member of the answer to a request of the server, as `{"result": ...}`."""

_UNKNOWN: Object = {"error": {"code": -32601, "message": "this host does not answer it"}}


class Host:
    """One connection. Messages that are not waited for are kept in `notifications` and `asked`."""

    def __init__(self, process: ServerProcess, problems: list[str]) -> None:
        self.process = process
        self.notifications: list[Message] = []
        """Notifications of the server, in the order received."""
        self.asked: list[Message] = []
        """Requests of the server, in the order received."""
        self.answers: dict[str, Answer] = {}
        """How requests of the server are answered, by method; others get -32601."""
        self.offer: Object = {}
        """What the server said under `contextEngine` in its answer to `initialize`."""
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
        """Send a body of whatever kind in the framing of the connection."""
        self.process.send(encode(body) + b"\n" if self.process.lines else frame(body))

    def notify(self, method: str, params: Json = None) -> None:
        """Send a notification."""
        self.write(notification(method, {} if params is None else params))

    def begin(self, method: str, params: Json = None, id: int | str | None = None) -> int | str:
        """Send a request without waiting; its id."""
        id = next(self._ids) if id is None else id
        self._pending[id] = method
        self.write(request(id, method, {} if params is None else params))
        return id

    def cancel(self, id: int | str) -> None:
        """Ask the server to give up a request."""
        self.notify("$/cancelRequest", {"id": id})

    # Receiving

    def request(self, method: str, params: Json = None) -> Message:
        """Send a request and wait for its answer, which may be an error."""
        return self.answer(self.begin(method, params))

    def result(self, method: str, params: Json = None) -> Message:
        """Send a request and wait for its answer.

        Raises:
            Violation: it is an error.
        """
        answer = self.request(method, params)
        answer.result()
        return answer

    def answer(self, id: Json) -> Message:
        """Wait for the answer to a request, answering what the server asks meanwhile."""
        if id in self._early:
            return self._early.pop(id)
        while True:
            message = self.next()
            if message.is_response and message.id == id:
                return message
            self._keep(message)

    def answer_to_any(self, *ids: Json) -> Message:
        """Wait for the first answer that has one of these ids."""
        while True:
            for id in ids:
                if id in self._early:
                    return self._early.pop(id)
            self._keep(self.next())

    def early(self) -> list[Message]:
        """Answers that came and that nothing has waited for."""
        return list(self._early.values())

    def answers_in_order(self, number: int) -> list[Message]:
        """The next answers, in the order in which they come."""
        found = list(self._early.values())
        self._early.clear()
        while len(found) < number:
            message = self.next()
            if message.is_response:
                found.append(message)
        return found

    def wait_for_request(self, method: str) -> Message:
        """Wait until the server asks for this; earlier ones count."""
        return self._wait_for(self.asked, method)

    def wait_for_notification(self, method: str) -> Message:
        """Wait until the server notifies of this; earlier ones count."""
        return self._wait_for(self.notifications, method)

    def next(self) -> Message:
        """The next message; requests of the server are answered as `answers` says.

        Raises:
            Violation: the server has closed its output, or nothing comes within the limit.
        """
        message = self.process.receive()
        if message is None:
            raise Violation("the server closed its output where more was due")
        self._note(message)
        return message

    def step(self) -> None:
        """Take one message and keep it for whoever waits for it."""
        self._keep(self.next())

    def rest(self) -> list[Message]:
        """Everything up to the end of the output, what came early included."""
        messages = list(self._early.values())
        while (message := self.process.receive()) is not None:
            self._note(message)
            messages.append(message)
        return messages

    # Whole steps

    def initialize(self, params: Object) -> Message:
        """Do the handshake; the answer to `initialize`, which may be an error."""
        answer = self.request("initialize", params)
        if "result" in answer.body:
            offer = answer.at("/result/capabilities/experimental/contextEngine", {})
            self.offer = offer if isinstance(offer, dict) else {}
            self.notify("initialized")
        return answer

    def declares(self, method: str) -> bool:
        """Whether the server has declared a method."""
        declared = self.offer.get("methods")
        return isinstance(declared, list) and method in declared

    def expect_format(self, name: str) -> None:
        """Go on only where the server speaks a dialect.

        Raises:
            NotDeclared: it has not declared it.
        """
        declared = self.offer.get("messageFormats")
        if not isinstance(declared, list) or name not in declared:
            raise NotDeclared(f"the message format {name} is not declared")

    def limit(self, name: str) -> int:
        """A bound that the server has declared.

        Raises:
            NotDeclared: it has not.
        """
        limits = self.offer.get("limits")
        value = limits.get(name) if isinstance(limits, dict) else None
        if not isinstance(value, int):
            raise NotDeclared(f"limits.{name} is not declared")
        return value

    def alive(self) -> None:
        """Check that the connection lives on and is in step.

        Raises:
            Violation: no answer comes, or the server is gone.
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
        self._check(lambda: check_message(message))
        if message.is_response:
            method = self._pending.pop(message.id, None)
            if method is not None:
                self._check(lambda: check_result(method, message))
        elif "id" in message.body:
            self.asked.append(message)
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

    def _check(self, rule: Callable[[], None]) -> None:
        try:
            rule()
        except Violation as violation:
            self._problems.append(str(violation))
