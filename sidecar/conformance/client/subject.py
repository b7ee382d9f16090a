"""The client under test: its driver, and the servers that are played to it."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from sidecar.conformance.client import relay
from sidecar.conformance.client.driver import Driver
from sidecar.conformance.client.played import PlayedServer
from sidecar.conformance.kit import NotDeclared, Violation
from sidecar.conformance.server.wire import Json

LIMIT_S = 20.0
"""Seconds that one step may take."""

_STARTED_S = 0.3
"""Seconds within which a server that has been started connects."""

_RELAY = str(Path(relay.__file__))


class Stage:
    """A driver with its client, and the sidecars that the client starts. To be used in a with-block."""

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
        """The server that the client starts next.

        Raises:
            Violation: it starts none within the limit, or the driver ends.
        """
        deadline = time.monotonic() + self._limit_s
        while (server := self.another_server()) is None:
            self.driver.check_alive()
            if time.monotonic() > deadline:
                raise Violation(f"the client starts no server within {self._limit_s:g} s")
        return server

    def another_server(self) -> PlayedServer | None:
        """A server that the client has started already, `None` where there is none."""
        try:
            connection, _ = self._listener.accept()
        except TimeoutError:
            return None
        connection.settimeout(None)
        server = PlayedServer(connection, self._problems, self._limit_s)
        self._played.append(server)
        return server

    def open(self, **members: Json) -> PlayedServer:
        """Have the client connect; the server that it has started, behind the handshake."""
        self.driver.do("open", "open", **members)
        server = self.server()
        server.welcome()
        self.driver.result("open")
        return server

    def ask(self, id: str, method: str, **params: Json) -> None:
        """Have the client send a request."""
        self.driver.do("request", id, method=method, params=params)


class Client:
    """A command that starts a driver, which is started anew for every check."""

    def __init__(self, command: Sequence[str], *, limit_s: float = LIMIT_S) -> None:
        self._command = tuple(command)
        self.limit_s = limit_s
        self.problems: list[str] = []
        """What was wrong with the members of messages, whichever check they came in."""

    def stage(self, *needs: str) -> Stage:
        """A driver whose client is not connected yet.

        Raises:
            NotDeclared: it does not offer what is needed.
        """
        stage = Stage(self._command, self.problems, self.limit_s)
        missing = sorted(set(needs) - stage.driver.features)
        if missing:
            stage.__exit__(None, None, None)
            raise NotDeclared(f"the client does not offer {', '.join(missing)}")
        return stage
