"""The servers under test: a tiny one around the real core, and `context-sidecar serve` itself."""

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.wire.harness import Message, ServerProcess, Target

ECHO = (sys.executable, str(Path(__file__).with_name("echo_server.py")))

TARGETS = {
    "echo": Target("echo", ECHO, "echo", {"processId": None, "capabilities": {}}),
    "sidecar": Target(
        "sidecar",
        (str(Path(sys.executable).with_name("context-sidecar")), "serve"),
        "engine/list",
        {
            "processId": None,
            "capabilities": {},
            "initializationOptions": {"contextEngine": {"config": {"store": {"kind": "memory"}}}},
        },
    ),
}
"""`SIDECAR_WIRE_TARGETS` (comma-separated names) selects targets; the default is all that are built."""


def _chosen() -> list[Target]:
    names = os.environ.get("SIDECAR_WIRE_TARGETS")
    if names is None:
        built = importlib.util.find_spec("sidecar.cli.main") is not None
        names = "echo,sidecar" if built else "echo"
    return [TARGETS[name] for name in names.split(",")]


@pytest.fixture(scope="session", params=_chosen(), ids=lambda target: target.name)
def target(request: pytest.FixtureRequest) -> Target:
    """Each target in turn."""
    return request.param


class LiveServer:
    """An initialized server shared by many cases, and restarted after a case that ended it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._server: ServerProcess | None = None
        self.count = 0

    def server(self) -> ServerProcess:
        """The running server."""
        if self._server is None:
            self._server = ServerProcess(self._target.command)
            answer = self._server.initialize(self._target.initialize)
            assert "result" in answer, answer
        return self._server

    def ping(self, *, about: str = "", passing_over: int = 0) -> None:
        """Check that the connection is alive and in step, after at most `passing_over` other answers."""
        self.count += 1
        id = f"ping-{self.count}"
        server = self.server()
        server.say({"jsonrpc": "2.0", "id": id, "method": self._target.ping, "params": {}})
        while (answer := server.read()).get("id") != id:
            passing_over -= 1
            assert passing_over >= 0, f"{about}: {answer}"
        assert "result" in answer

    def drop(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.__exit__(None, None, None)
            self._server = None


@pytest.fixture(scope="module")
def live_servers(target: Target) -> Iterator[LiveServer]:
    """The live server, shared by the whole module."""
    live = LiveServer(target)
    yield live
    live.drop()


@pytest.fixture
def live(live_servers: LiveServer, request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """The shared initialized server."""
    failed_before = request.session.testsfailed
    yield live_servers
    if request.session.testsfailed != failed_before:
        live_servers.drop()


@pytest.fixture
def start(target: Target) -> Iterator[Callable[..., ServerProcess]]:
    """Starts fresh processes of the target."""
    running: list[ServerProcess] = []

    def start_one(*, initialized: bool = True, lines: bool = False, **members: object) -> ServerProcess:
        server = ServerProcess(target.command, lines=lines)
        running.append(server)
        if initialized:
            params: Message = {**target.initialize, **members}
            assert "result" in server.initialize(params)
        return server

    yield start_one
    for server in running:
        server.__exit__(None, None, None)


@pytest.fixture
def start_echo() -> Iterator[Callable[..., ServerProcess]]:
    """Starts fresh processes of the tiny server, for tests of its special methods."""
    running: list[ServerProcess] = []

    def start_one(
        *arguments: str, initialized: bool = True, lines: bool = False, **members: object
    ) -> ServerProcess:
        server = ServerProcess((*ECHO, *arguments), lines=lines)
        running.append(server)
        if initialized:
            assert "result" in server.initialize({**TARGETS["echo"].initialize, **members})
        return server

    yield start_one
    for server in running:
        server.__exit__(None, None, None)
