"""The program around a client under test, which is told in lines of JSON what to do."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from sidecar.conformance.kit import Violation
from sidecar.conformance.server.process import Unusable
from sidecar.conformance.server.wire import Json, Object, shown

COMMAND_VARIABLE = "CEP_SIDECAR"
"""Environment variable with the command that the client has to start, as a JSON list of strings."""


class Driver:
    """A driver process, which is killed in the end if it still runs."""

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
        """What the client was notified of, as the driver tells it: `{"heard": method, "params": ...}`."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        ready = self._next()
        features = ready.get("ready")
        if not isinstance(features, list):
            self.close()
            raise Unusable('the driver does not begin with a line {"ready": [...]} of what its client offers')
        self.features = frozenset(str(feature) for feature in features)

    def do(self, what: str, id: str, **members: Json) -> None:
        """Tell the driver to do something, without waiting for it."""
        line = json.dumps({"do": what, "id": id, **members}) + "\n"
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()

    def report(self, id: str) -> Object:
        """What came of an operation.

        Raises:
            Violation: the driver tells nothing within the limit, or ends.
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
            Violation: it failed.
        """
        report = self.report(id)
        if "result" not in report:
            raise Violation(f"{id} failed: {json.dumps(report.get('failure'))[:300]}")
        return report["result"]

    def failure(self, id: str) -> Object:
        """How an operation failed: `kind` and, for an answer with an error, `code`, `message` and `data`.

        Raises:
            Violation: it did not fail.
        """
        report = self.report(id)
        failure = report.get("failure")
        if not isinstance(failure, dict):
            raise Violation(f"{id} succeeded: {json.dumps(report)[:300]}")
        return failure

    def told_of(self, method: str) -> Object:
        """What the client hears under this method.

        Raises:
            Violation: it hears nothing within the limit.
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
        """See that the driver still runs.

        Raises:
            Violation: it has ended.
        """
        if self._process.poll() is not None:
            raise Violation(self._end())

    def kill(self) -> None:
        """Kill the driver, and the client with it."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the driver."""
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
                raise Violation(f"the driver tells nothing within {self._limit_s:g} s") from None
            if not line:
                self._lines.put(b"")
                raise Violation(self._end())
            with suppress(ValueError):
                value: Json = json.loads(line)
                if isinstance(value, dict):
                    return value
            raise Violation(f"the driver printed {shown(line)}, which is no JSON object")

    def _end(self) -> str:
        """How the driver ended, with its exit status."""
        try:
            status = self._process.wait(1)
            how = f"ended with status {status}" if status >= 0 else f"was ended by signal {-status}"
        except subprocess.TimeoutExpired:
            how = "closed its output"
        return f"the driver {how}; its last words: {shown(self._last_words())}"

    def _last_words(self) -> bytes:
        return os.pread(self._log.fileno(), 1 << 20, 0)[-300:]

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(ValueError, OSError):
            for line in self._process.stdout:
                self._lines.put(line)
        self._lines.put(b"")


def failed_with(failure: Mapping[str, Json]) -> str:
    """The kind of a failure, with its code where it has one."""
    code = failure.get("code")
    return str(failure.get("kind")) if code is None else f"{failure.get('kind')} {code}"
