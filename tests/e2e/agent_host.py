"""A small agent host over the real process: one request at a time, raw messages in and out."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec import Raw

LIMIT_S = 30.0
"""Longest wait for anything; generous, since machines can be busy."""
COMMAND = (str(Path(sys.executable).with_name("context-sidecar")), "serve")

Json = dict[str, Any]
Answerer = Callable[[Json], object]


class Failure(Exception):
    """An error answer of the sidecar."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.data: Json = error.get("data") or {}


class Refusal(Exception):
    """Raised by an answerer to answer a request of the sidecar with an error."""


class _Incoming(msgspec.Struct):
    id: int | str | None = None
    method: str | None = None
    params: Raw = Raw(b"")
    result: Raw = Raw(b"")
    error: Json | None = None


class _Lists(msgspec.Struct):
    messages: list[Raw] | None = None
    edits: list["_Edit"] | None = None


class _Edit(msgspec.Struct):
    start: int
    deleteCount: int
    messages: list[Raw]


class Assembled:
    """An `assemble` result, with its messages as the bytes that came over the pipe."""

    def __init__(self, raw: bytes) -> None:
        lists = msgspec.json.decode(raw, type=_Lists)
        self.raw: list[bytes] = [bytes(message) for message in lists.messages or ()]
        self.edits = lists.edits
        self.result: Json = msgspec.json.decode(raw)
        self.messages: list[Json] = [msgspec.json.decode(message) for message in self.raw]
        self.tokens: int = self.result["estimatedTokens"]
        self.epoch: int = self.result["contextEpoch"]
        self.id: str = self.result["resultId"]


class AgentHost:
    """Starts the sidecar on a state folder, speaks to it, can kill it and start it again."""

    def __init__(
        self,
        state: Path,
        *,
        dialect: str = "openai",
        engine: str | None = "full",
        capabilities: Sequence[str] = (),
        config: Json | None = None,
        environment: Mapping[str, str] | None = None,
        **options: object,
    ) -> None:
        self.state = state
        self._environment = {"CONTEXT_SIDECAR_STATE_DIR": str(state), **(environment or {})}
        self.answerers: dict[str, Answerer | None] = {}
        """What answers a request of the sidecar; `None` never answers."""
        self.asked: list[tuple[str, Json]] = []
        self.notified: list[tuple[str, Json]] = []
        self.options: Json = {
            "messageFormat": dialect,
            "host": {"id": "e2e"},
            "hostCapabilities": list(capabilities),
            "config": config or {},
            **({"engine": engine} if engine else {}),
            **options,
        }
        self._next = 0
        self._results: dict[int | str, _Incoming] = {}
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(signal.SIGKILL)

    def kill(self) -> None:
        """End the process at once, from any thread; `restart` starts another one."""
        self._process.kill()

    def restart(self, how: signal.Signals = signal.SIGTERM, **options: object) -> None:
        """End the process and start another one on the same state."""
        self._end(how)
        self.options |= options
        self._start()

    def call(self, method: str, **params: object) -> Json:
        """The result of a request."""
        return msgspec.json.decode(self.result(self.send(method, **params)))

    def assemble(self, session: str, *, raw: Sequence[bytes] | None = None, **params: object) -> Assembled:
        """An assembled context; `raw` is the host's own list."""
        if raw is not None:
            params["messages"] = [Raw(message) for message in raw]
        return Assembled(self.result(self.send("context/assemble", sessionId=session, **params)))

    def ingest(self, session: str, *messages: bytes, **params: object) -> list[str]:
        """Store messages in batches; returns their ids."""
        ids: list[str] = []
        for start in range(0, len(messages), 2000):
            batch = [Raw(message) for message in messages[start : start + 2000]]
            answer = self.call("context/ingestBatch", sessionId=session, messages=batch, **params)
            ids += answer["messageIds"]
        return ids

    def send(self, method: str, **params: object) -> int:
        """Send a request; returns its id."""
        self._next += 1
        self._write({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._next

    def cancel(self, request: int) -> None:
        """Cancel a request."""
        self._write({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": request}})

    def result(self, request: int) -> bytes:
        """The raw result of a request that was sent; serves the sidecar's own requests meanwhile.

        Raises:
            Failure: the sidecar answered with an error.
        """
        self.wait_for(lambda: request in self._results)
        answer = self._results.pop(request)
        if answer.error is not None:
            raise Failure(answer.error)
        return bytes(answer.result)

    def has_answered(self, request: int) -> bool:
        """Whether the answer to a request has been read."""
        return request in self._results

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Read until the condition holds."""
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            line, end, rest = self._output.partition(b"\n")
            if end:
                self._output = rest
                self._take(msgspec.json.decode(line, type=_Incoming))
                continue
            left = deadline - time.monotonic()
            assert left > 0, f"nothing came within {LIMIT_S} s; {self.errors()}"
            if select.select([self._source], [], [], left)[0]:
                chunk = os.read(self._source, 1 << 20)
                assert chunk, f"the sidecar closed its output: {self.errors()}"
                self._output += chunk

    def errors(self) -> str:
        """The newest of what the process wrote to stderr."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-3000:]

    def cpu_s(self) -> float:
        """Seconds of processor time that the process has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self, *, peak: bool = False) -> int:
        """Memory that the process holds now, or has held at most."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmHWM:" if peak else "VmRSS:")[2].split()[0]) * 1024

    def _start(self) -> None:
        self.state.mkdir(parents=True, exist_ok=True)
        self._log = (self.state / "stderr.log").open("a+b")
        self._output = b""
        self._process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **self._environment},
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._sink = self._process.stdin.fileno()
        self._source = self._process.stdout.fileno()
        self.call(
            "initialize",
            processId=os.getpid(),
            capabilities={},
            initializationOptions={"contextEngine": self.options},
        )

    def _end(self, how: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(how)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(LIMIT_S)
        finally:
            self._process.kill()
            self._log.close()

    def _write(self, message: Json) -> None:
        view = memoryview(msgspec.json.encode(message) + b"\n")
        while view:
            view = view[os.write(self._sink, view) :]

    def _take(self, incoming: _Incoming) -> None:
        if incoming.method is None:
            assert incoming.id is not None, f"an answer to nothing: {incoming.error}"
            self._results[incoming.id] = incoming
            return
        params = msgspec.json.decode(incoming.params) if incoming.params else {}
        if incoming.id is None:
            self.notified.append((incoming.method, params))
            return
        self.asked.append((incoming.method, params))
        answerer = self.answerers.get(incoming.method, _refuse)
        if answerer is None:
            return
        try:
            self._write({"jsonrpc": "2.0", "id": incoming.id, "result": answerer(params)})
        except Refusal as error:
            problem = {"code": -32000, "message": str(error)}
            self._write({"jsonrpc": "2.0", "id": incoming.id, "error": problem})


def _refuse(params: Json) -> object:
    raise Refusal("this host does not answer that")
