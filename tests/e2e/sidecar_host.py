"""A host at the other end of a real sidecar's pipes, with a limit on every wait."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

LIMIT_S = 30.0
"""Longest wait for anything; generous, since machines can be busy."""

COMMAND = (str(Path(sys.executable).with_name("context-sidecar")), "serve")

Params = dict[str, Any]
Answerer = Callable[[Params], Any]


class Refused(Exception):
    """Raised when the sidecar answers with an error."""

    def __init__(self, error: Params) -> None:
        super().__init__(f"{error['code']}: {error['message']} {error.get('data')}")
        self.code: int = error["code"]
        self.data: Params = error.get("data") or {}


class Host:
    """One connection to a sidecar process of its own; several may share a state directory."""

    def __init__(
        self,
        state_dir: Path,
        *,
        message_format: str = "openai",
        lines: bool = False,
        initialized: bool = True,
        environment: dict[str, str] | None = None,
        command: Sequence[str] = COMMAND,
        arguments: Sequence[str] = (),
        **options: Any,
    ) -> None:
        self.state_dir = state_dir
        self.lines = lines
        self.environment = environment or {}
        self.command = (*command, *arguments)
        self.log = state_dir.with_name(f"{state_dir.name}.log")
        """What the process writes to standard error."""
        self.options: Params = {"messageFormat": message_format, **options}
        self.notifications: list[Params] = []
        self.asked: list[Params] = []
        """Requests of the sidecar that nobody has answered yet."""
        self.answers: dict[int, bytes] = {}
        """Answers that came and were not taken yet, as they came."""
        self._count = 0
        self._output = b""
        self._unsent = b""
        self._start()
        if initialized:
            self.initialize()

    def __enter__(self) -> "Host":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Requests

    def initialize(self) -> Params:
        """Do the handshake; returns the engine part of the answer."""
        result = self.call(
            "initialize",
            processId=None,
            capabilities={},
            initializationOptions={"contextEngine": self.options},
        )
        self.write({"jsonrpc": "2.0", "method": "initialized", "params": {}})
        return result["capabilities"]["experimental"]["contextEngine"]

    def call(self, method: str, **params: Any) -> Any:
        """The result of a request."""
        return self.wait(self.send(method, **params))

    def refusal(self, method: str, **params: Any) -> Refused:
        """The error that a request is answered with."""
        try:
            result = self.call(method, **params)
        except Refused as error:
            return error
        raise AssertionError(f"{method} was not refused: {result!r}")

    def send(self, method: str, **params: Any) -> int:
        """Send a request; returns its id."""
        return self.send_raw(method, json.dumps(params))

    def send_raw(self, method: str, params: str) -> int:
        """Send a request whose params are given as JSON text, and stay as they are."""
        self._count += 1
        head = f'{{"jsonrpc":"2.0","id":{self._count},"method":"{method}","params":'
        self._put((head + params + "}").encode())
        return self._count

    def cancel(self, id: int) -> None:
        """Cancel a request."""
        self.write({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}})

    def write(self, message: Params) -> None:
        """Send a message as it is."""
        self._put(json.dumps(message).encode())

    def wait(self, id: int) -> Any:
        """The result of a request that was sent."""
        return result_of(self.wait_raw(id))

    def wait_raw(self, id: int) -> bytes:
        """The answer to a request that was sent, as it came."""
        self.until(lambda: id in self.answers, f"no answer to request {id}")
        return self.answers.pop(id)

    def wait_all(self, ids: list[int]) -> list[Any]:
        """The results of requests, an error as the `Refused` that it is."""
        found: list[Any] = []
        for id in ids:
            try:
                found.append(self.wait(id))
            except Refused as error:
                found.append(error)
        return found

    def wait_asked(self, method: str) -> Params:
        """The next request of the sidecar by that method."""
        self.until(lambda: any(r["method"] == method for r in self.asked), f"the sidecar sent no {method}")
        request = next(r for r in self.asked if r["method"] == method)
        self.asked.remove(request)
        return request

    def answer(self, request: Params, result: Any) -> None:
        """Answer a request of the sidecar."""
        self.write({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def until(self, condition: Callable[[], bool], complaint: str) -> None:
        """Read what comes until the condition holds."""
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            left = deadline - time.monotonic()
            assert left > 0, complaint
            assert self._move(left), f"{complaint}: the sidecar has ended"

    # The process

    def kill(self) -> None:
        """End the process at once; what it has said can still be read."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(LIMIT_S)
        self._unsent = b""

    def close(self) -> None:
        """End the process at once, for good."""
        self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None and not stream.closed:
                stream.close()

    def pump(self) -> None:
        """Read and write what can be at once."""
        self._move(0.0)

    def read_rest(self) -> None:
        """Read what a process said before it ended."""
        while self._move(LIMIT_S):
            pass

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.process.send_signal(signal.SIGTERM)

    def end_input(self) -> None:
        """Close the sidecar's input, once everything is sent."""
        self.until(lambda: not self._unsent, "the sidecar does not read")
        assert self.process.stdin is not None
        self.process.stdin.close()

    def drain(self) -> int:
        """Read everything up to the end of output; returns the exit code."""
        deadline = time.monotonic() + LIMIT_S
        while self._move(deadline - time.monotonic()):
            assert time.monotonic() < deadline, "the sidecar does not close its output"
        return self.process.wait(LIMIT_S)

    def stop(self) -> None:
        """End the process in order."""
        self.call("shutdown")
        self.write({"jsonrpc": "2.0", "method": "exit"})
        assert self.drain() == 0

    def restart(self, *, kill: bool = False) -> None:
        """Go on with a new process on the same state directory."""
        if kill:
            self.kill()
        else:
            self.stop()
        self.close()
        self._output, self._unsent = b"", b""
        self.answers.clear()
        self.asked.clear()
        self._start()
        self.initialize()

    def _start(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "CONTEXT_SIDECAR_STATE_DIR": str(self.state_dir), **self.environment},
            )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._sink, self._source = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self._sink, False)

    def _put(self, body: bytes) -> None:
        self._unsent += body + b"\n" if self.lines else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        self._flush()

    def _flush(self) -> None:
        while self._unsent:
            try:
                self._unsent = self._unsent[os.write(self._sink, self._unsent) :]
            except BlockingIOError:
                return

    def _move(self, limit_s: float) -> bool:
        """Read or write a piece; false at the end of output."""
        sinks = [self._sink] if self._unsent else []
        readable, writable, _ = select.select([self._source], sinks, [], max(limit_s, 0.0))
        if writable:
            self._flush()
        if not readable:
            return True
        chunk = os.read(self._source, 1 << 20)
        self._output += chunk
        while (body := self._take()) is not None:
            self._sort(body)
        return bool(chunk)

    def _take(self) -> bytes | None:
        if self.lines:
            line, end, rest = self._output.partition(b"\n")
            if not end:
                return None
            self._output = rest
            return line
        head, end, rest = self._output.partition(b"\r\n\r\n")
        if not end:
            return None
        size = int(head.rpartition(b": ")[2])
        if len(rest) < size:
            return None
        self._output = rest[size:]
        return rest[:size]

    def _sort(self, body: bytes) -> None:
        if b'"method"' in body[:200]:
            message: Params = json.loads(body)
            (self.asked if "id" in message else self.notifications).append(message)
            return
        id = json.loads(body)["id"]
        assert id not in self.answers, f"two answers to {id}"
        self.answers[id] = body


def result_of(answer: bytes) -> Any:
    """The result in an answer.

    Raises:
        Refused: it is an error.
    """
    message = json.loads(answer)
    if "error" in message:
        raise Refused(message["error"])
    return message["result"]


class Caller(Protocol):
    """Whatever sends requests to a sidecar."""

    def call(self, method: str, **params: Any) -> Any:
        """The result of a request."""
        ...


def exported(host: Caller, session_id: str) -> list[Params]:
    """Every stored message with what was noted about it, page by page."""
    found: list[Params] = []
    cursor: Params = {}
    while True:
        page = host.call("session/export", sessionId=session_id, **cursor)
        found += page["messages"]
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


def history(host: Caller, session_id: str) -> list[Params]:
    """Every stored message as the host gave it."""
    return [entry["message"] for entry in exported(host, session_id)]
