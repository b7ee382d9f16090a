"""The client under test: its driver, the servers that it starts, and how to run the suite.

The driver is a program around the client that takes commands as lines of JSON.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType

from sidecar.conformance.client import relay
from sidecar.conformance.client.played_server import PlayedServer
from sidecar.conformance.kit import NotDeclared, Suite, Unusable, Violation, run_suite
from sidecar.conformance.report import CheckResult, Report
from sidecar.conformance.wire import Json, Object, shown

COMMAND_VARIABLE = "CEP_SIDECAR"
"""Environment variable with the command that the client must start, as a JSON list of strings."""

LIMIT_S = 20.0
"""Time limit of one step, in seconds."""

_STARTED_S = 0.3
"""How long `another_server` waits for a started server to connect, in seconds."""

_RELAY = str(Path(relay.__file__))


class Driver:
    """A driver process; `close` kills it if it does not end by itself."""

    def __init__(self, command: Sequence[str], sidecar: Sequence[str], limit_s: float) -> None:
        self._limit_s = limit_s
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed by close()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env={**os.environ, COMMAND_VARIABLE: json.dumps(list(sidecar))},
            )
        except OSError as error:
            self._log.close()
            raise Unusable(f"{command[0]} does not start: {error.strerror}") from error
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reports: dict[str, Object] = {}
        self.heard: list[Object] = []
        """Notifications to the client, as the driver reports them: `{"heard": method, "params": ...}`."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        ready = self._next()
        features = ready.get("ready")
        if not isinstance(features, list):
            self.close()
            raise Unusable(
                'the first line of the driver is not {"ready": [...]} with the features of its client'
            )
        self.features = frozenset(str(feature) for feature in features)

    def do(self, what: str, id: str, **members: Json) -> None:
        """Send an operation to the driver without waiting for its report."""
        line = json.dumps({"do": what, "id": id, **members}) + "\n"
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()

    def report(self, id: str) -> Object:
        """The driver's report on an operation.

        Raises:
            Violation: the driver reports nothing within the limit, or ends.
        """
        while id not in self._reports:
            line = self._next()
            if "heard" in line:
                self.heard.append(line)
            else:
                self._reports[str(line.get("id"))] = line
        return self._reports.pop(id)

    def result(self, id: str) -> Json:
        """The result of an operation.

        Raises:
            Violation: the operation failed.
        """
        report = self.report(id)
        if "result" not in report:
            raise Violation(f"{id} failed: {json.dumps(report.get('failure'))[:300]}")
        return report["result"]

    def failure(self, id: str) -> Object:
        """How an operation failed: `kind` and, if the server returned an error, `code`, `message` and `data`.

        Raises:
            Violation: the operation succeeded.
        """
        report = self.report(id)
        failure = report.get("failure")
        if not isinstance(failure, dict):
            raise Violation(f"{id} succeeded: {json.dumps(report)[:300]}")
        return failure

    def notified(self, method: str) -> Object:
        """Wait until the driver reports a notification with this method.

        Raises:
            Violation: the driver reports nothing within the limit, or ends.
        """
        while True:
            for line in self.heard:
                if line["heard"] == method:
                    self.heard.remove(line)
                    return line
            line = self._next()
            if "heard" in line:
                self.heard.append(line)
            else:
                self._reports[str(line.get("id"))] = line

    def check_alive(self) -> None:
        """Check that the driver still runs.

        Raises:
            Violation: the driver has ended.
        """
        if self._process.poll() is not None:
            raise Violation(self._end())

    def kill(self) -> None:
        """Kill the driver, and the client with it."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Close the driver's input, and kill it if it does not end."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join(self._limit_s)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def _next(self) -> Object:
        deadline = time.monotonic() + self._limit_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise Violation(f"the driver reported nothing within {self._limit_s:g} s") from None
            if not line:
                self._lines.put(b"")
                raise Violation(self._end())
            with suppress(ValueError):
                value: Json = json.loads(line)
                if isinstance(value, dict):
                    return value
            raise Violation(f"the driver printed {shown(line)}, which is not a JSON object")

    def _end(self) -> str:
        """A sentence on how the driver ended, with its exit status and last output."""
        try:
            status = self._process.wait(1)
            how = f"ended with status {status}" if status >= 0 else f"was killed by signal {-status}"
        except subprocess.TimeoutExpired:
            how = "closed its output"
        return f"the driver {how}; end of its standard error: {shown(self._log_tail())}"

    def _log_tail(self) -> bytes:
        return os.pread(self._log.fileno(), 1 << 20, 0)[-300:]

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(ValueError, OSError):
            for line in self._process.stdout:
                self._lines.put(line)
        self._lines.put(b"")


def failed_with(failure: Mapping[str, Json]) -> str:
    """The kind of a failure, with its code if it has one."""
    code = failure.get("code")
    return str(failure.get("kind")) if code is None else f"{failure.get('kind')} {code}"


class Stage:
    """A driver with its client, and the servers that the client starts; use it in a with-block."""

    def __init__(self, command: Sequence[str], problems: list[str], limit_s: float) -> None:
        self._problems = problems
        self._limit_s = limit_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(_STARTED_S)
        self._played: list[PlayedServer] = []
        port = str(self._listener.getsockname()[1])
        try:
            self.driver = Driver(command, (sys.executable, "-I", "-S", _RELAY, port), limit_s)
        except BaseException:
            self._listener.close()
            raise

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.driver.kill()
        for server in self._played:
            server.close()
        self._listener.close()
        self.driver.close()

    def server(self) -> PlayedServer:
        """Wait for the next server that the client starts.

        Raises:
            Violation: the client starts no server within the limit, or the driver ends.
        """
        deadline = time.monotonic() + self._limit_s
        while (server := self.another_server()) is None:
            self.driver.check_alive()
            if time.monotonic() > deadline:
                raise Violation(f"the client started no server within {self._limit_s:g} s")
        return server

    def another_server(self) -> PlayedServer | None:
        """The next server, if the client has started one by now."""
        try:
            connection, _ = self._listener.accept()
        except TimeoutError:
            return None
        connection.settimeout(None)
        server = PlayedServer(connection, self._problems, self._limit_s)
        self._played.append(server)
        return server

    def open(self, **members: Json) -> PlayedServer:
        """Have the client connect, and return its server after the handshake."""
        self.driver.do("open", "open", **members)
        server = self.server()
        server.welcome()
        self.driver.result("open")
        return server

    def ask(self, id: str, method: str, **params: Json) -> None:
        """Have the client send a request."""
        self.driver.do("request", id, method=method, params=params)

    def expect_alive(self, server: PlayedServer) -> None:
        """Check that the client can still send a request and receive its answer.

        Raises:
            Violation: the client does not send the request, or fails.
        """
        self.ask("alive", "engine/list")
        server.answer(server.request("engine/list"), {"engines": []})
        self.driver.result("alive")


class Client:
    """A command that starts a driver; every check gets a new process."""

    def __init__(self, command: Sequence[str], *, limit_s: float = LIMIT_S) -> None:
        self._command = tuple(command)
        self.limit_s = limit_s
        self.problems: list[str] = []
        """Schema violations in the client's messages, collected over all checks."""

    def stage(self, *needs: str) -> Stage:
        """Start a driver whose client is not yet connected.

        Raises:
            NotDeclared: the client lacks a needed feature.
        """
        stage = Stage(self._command, self.problems, self.limit_s)
        missing = sorted(set(needs) - stage.driver.features)
        if missing:
            stage.__exit__(None, None, None)
            raise NotDeclared(f"the client does not declare {', '.join(missing)}")
        return stage


FEATURES = {
    "cancelling": "the operation `cancel` cancels a request",
    "timeouts": "a request can be given `timeoutMs`",
    "deltas": "the operation `assemble` requests edits and returns whole lists",
    "notifications": "notifications of the server reach the runtime",
    "progress": "`$/progress` reaches the runtime",
    "runtime/complete": "the runtime answers this request as set by the operation `open`",
    "memory/getContext": "the runtime answers this request, and offers the `sources` of the operation `open`",
}
"""Features that a driver may declare for its client."""

CLIENT_SUITE: Suite[Client] = Suite("client", FEATURES)
"""Every check of a client."""

check = CLIENT_SUITE.check
"""Adds a check to the suite."""


async def check_client(
    command: Sequence[str],
    *,
    patterns: Collection[str] = (),
    expected: Collection[str] = (),
    limit_s: float = LIMIT_S,
    on_result: Callable[[CheckResult], object] | None = None,
) -> Report:
    """Check the client in the driver that a command starts, and return the report.

    See `run_suite` for the options.

    Raises:
        Unusable: the command does not start a driver.
        ValueError: no check matches `patterns`, or `expected` names a check that does not exist.
    """
    client = Client(command, limit_s=limit_s)
    with client.stage() as stage:
        declared = stage.driver.features & CLIENT_SUITE.capabilities
    return await run_suite(
        CLIENT_SUITE,
        lambda: nullcontext(client),
        subject=" ".join(command),
        declared=declared,
        patterns=patterns,
        expected=expected,
        on_result=on_result,
    )
