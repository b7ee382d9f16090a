"""A host of a sidecar that runs within the test's own process, for the sake of speed."""

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sidecar.rpc.framing import Receiver
from sidecar.rpc.peer import Peer
from sidecar.rpc.router import Router
from sidecar.server.configuration.resolve import ENV_STATE_DIR
from sidecar.server.connection import SidecarApplication
from sidecar.server.lifecycle import Lifecycle
from tests.e2e.sidecar_host import LIMIT_S, Params, result_of


class _Lines:
    """A transport whose other end is a list of lines."""

    unsent = 0

    def __init__(self) -> None:
        self.receiver: Receiver
        self.written = b""
        self.moved = asyncio.Event()

    def start(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def write(self, buffers: Sequence[bytes]) -> None:
        self.written += b"".join(buffers)
        self.moved.set()

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def read_available(self) -> None: ...

    async def flush(self, limit_s: float) -> bool:
        del limit_s
        return True

    def close(self) -> None: ...


class Silence(Exception):
    """Raised by an answerer that never answers."""


class InnerHost:
    """Speaks with the application as `Host` does with a process; `restart` makes another one on its store."""

    def __init__(self, state_dir: Path, *, message_format: str = "openai", **options: Any) -> None:
        self.state_dir = state_dir
        self.options: Params = {"messageFormat": message_format, **options}
        self.asked: list[Params] = []
        """Requests of the sidecar."""
        self.answerers: dict[str, Callable[[Params], Any]] = {}
        """What answers them; where nothing does, the answer is an error."""
        self.calls: list[tuple[str, Params]] = []
        """What was called since somebody last emptied the list."""
        self._loop = asyncio.new_event_loop()
        self._count = 0
        self._answers: dict[int, bytes] = {}
        self._start()

    def call(self, method: str, **params: Any) -> Any:
        """The result of a request.

        Raises:
            Refused: it is an error.
        """
        self.calls.append((method, params))
        return self._loop.run_until_complete(asyncio.wait_for(self._call(method, params), LIMIT_S))

    def send(self, method: str, **params: Any) -> None:
        """Send a request whose answer nobody waits for."""

        async def send() -> None:
            self._count += 1
            self._send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})

        self._loop.run_until_complete(send())

    def restart(self, **options: Any) -> None:
        """End the application in order and start another one on the same state directory."""
        self.calls.append(("restart", options))
        self._stop()
        self.options |= options
        self._start()

    def close(self) -> None:
        """End the application, for good."""
        self._stop()
        self._loop.close()

    def _start(self) -> None:
        self._transport = _Lines()
        router = Router()
        peer = Peer(router, self._transport)
        os.environ[ENV_STATE_DIR] = str(self.state_dir)
        config = self.options.get("config", {})
        self._life = Lifecycle(router, peer, SidecarApplication(router, peer), lambda code: None)

        async def begin() -> None:
            peer.start(newline=True)

        self._loop.run_until_complete(begin())
        options = {"contextEngine": {**self.options, "config": config}}
        self.call("initialize", processId=None, capabilities={}, initializationOptions=options)
        self.calls.clear()

    def _stop(self) -> None:
        self._loop.run_until_complete(asyncio.wait_for(self._life.wind_down(), LIMIT_S))

    async def _call(self, method: str, params: Params) -> Any:
        self._count += 1
        id = self._count
        self._send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        while id not in self._answers:
            await self._transport.moved.wait()
            self._transport.moved.clear()
            self._take()
        return result_of(self._answers.pop(id))

    def _send(self, message: Params) -> None:
        self._transport.receiver.received(json.dumps(message).encode() + b"\n")

    def _take(self) -> None:
        *lines, self._transport.written = self._transport.written.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "method" not in message:
                self._answers[message["id"]] = line
            elif "id" in message:
                self.asked.append(message)
                with suppress(Silence):
                    self._send({"jsonrpc": "2.0", "id": message["id"], **self._answer(message)})

    def _answer(self, request: Params) -> Params:
        answerer = self.answerers.get(request["method"])
        if answerer is None:
            return {"error": {"code": -32000, "message": "this host does not answer that"}}
        return {"result": answerer(request["params"])}
