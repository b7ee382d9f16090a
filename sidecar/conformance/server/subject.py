"""The server under test: its processes, the connection that checks share, and how to run the suite."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from itertools import count
from pathlib import Path

from sidecar.conformance.kit import Suite, Unusable, Violation, run_suite
from sidecar.conformance.report import CheckResult, Report
from sidecar.conformance.server.host import Host, ServerProcess
from sidecar.conformance.wire import Json, Object, shown
from sidecar.protocol.methods import METHODS

LIMIT_S = 20.0
"""Time limit of one answer, in seconds."""

_OWN = "CONTEXT_SIDECAR_"
"""Prefix of the environment variables that configure our own server."""
_FOLDERS = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_STATE_HOME": ".local/state",
    "XDG_DATA_HOME": ".local/share",
    "XDG_CACHE_HOME": ".cache",
    "APPDATA": "AppData/Roaming",
    "LOCALAPPDATA": "AppData/Local",
}
_TOOLS = {
    "PYTHONUSERBASE": ".local",
    "CARGO_HOME": ".cargo",
    "RUSTUP_HOME": ".rustup",
    "GOPATH": "go",
    "GOCACHE": ".cache/go-build",
    "PYENV_ROOT": ".pyenv",
    "npm_config_cache": ".npm",
    "UV_CACHE_DIR": ".cache/uv",
}
"""Variables that point toolchains at their folders, relative to the home directory."""


class Server:
    """A command that starts servers, with one state folder for all of their processes.

    Checks that leave the connection intact share one process; checks that end or disturb it start their own.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        limit_s: float = LIMIT_S,
        environment: Mapping[str, str] | None = None,
        own_home: bool = False,
    ) -> None:
        """`environment` overrides this process's variables; `own_home` gives the server the user's home."""
        self._command = tuple(command)
        self._limit_s = limit_s
        # Processes that the server left behind may still write here during cleanup.
        self._folder = tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True)
        known = dict(os.environ) if own_home else _homeless(os.environ, Path(self._folder.name) / "home")
        state_dir = {"CONTEXT_SIDECAR_STATE_DIR": self._folder.name}
        self._environment = {**known, **state_dir, **(environment or {})}
        self._shared: Host | None = None
        self._numbers = count(1)
        self.problems: list[str] = []
        """Schema violations in the server's messages, collected over all checks."""

    def close(self) -> None:
        """Kill the shared process and remove the state folder."""
        if self._shared is not None:
            self._shared.process.__exit__(None, None, None)
            self._shared = None
        self._folder.cleanup()

    @property
    def limit_s(self) -> float:
        """Time limit of one answer, in seconds."""
        return self._limit_s

    def start(self, *, lines: bool = False, environment: Mapping[str, str] | None = None) -> Host:
        """Start a separate process, not yet initialized; use it in a with-block."""
        process = ServerProcess(
            self._command,
            limit_s=self._limit_s,
            lines=lines,
            environment={**self._environment, **(environment or {})},
        )
        return Host(process, self.problems)

    def connect(self, *, lines: bool = False, **options: Json) -> Host:
        """Start a separate process, initialized with these members of `contextEngine`.

        Raises:
            Violation: `initialize` failed.
        """
        host = self.start(lines=lines)
        try:
            answer = host.initialize(self.params(**options))
            if "error" in answer.body:
                raise Violation(f"initialize failed: {shown(answer.raw)}")
        except BaseException:
            host.process.__exit__(None, None, None)
            raise
        return host

    def shared(self) -> Host:
        """The shared connection with default options; restarted if a check has ended its process.

        Raises:
            Unusable: the server cannot be initialized.
        """
        if self._shared is not None and not self._shared.process.running:
            self._shared.process.__exit__(None, None, None)
            self._shared = None
        if self._shared is None:
            try:
                self._shared = self.connect()
            except Violation as violation:
                raise Unusable(str(violation)) from violation
        return self._shared

    def params(self, **options: Json) -> Object:
        """Params of `initialize` with these members of `contextEngine`; `config` extends the kit's own."""
        config = options.pop("config", None)
        given = config if isinstance(config, dict) else {}
        engine_options: Object = {
            "protocolVersion": "1.0",
            "host": {"id": "conformance", "version": "1"},
            **options,
            "config": {"stateDir": str(self.folder), **given},
        }
        return {
            "processId": None,
            "rootUri": None,
            "capabilities": {},
            "initializationOptions": {"contextEngine": engine_options},
        }

    @property
    def folder(self) -> Path:
        """The server's state folder, the same for every process of a run."""
        return Path(self._folder.name)

    def name(self, what: str = "session") -> str:
        """A name that is unique in this run."""
        return f"{what}-{next(self._numbers)}"


def _homeless(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """The environment with an empty home, so that the user's configuration cannot affect a check.

    Variables point toolchains at the user's home, because the command may start the server through one.
    """
    home.mkdir()
    there = Path.home()
    tools = {name: str(there / place) for name, place in _TOOLS.items() if (there / place).exists()}
    kept = {name: value for name, value in environ.items() if not name.startswith(_OWN)}
    folders = {name: str(home / place) for name, place in _FOLDERS.items()}
    return {**tools, **kept, **folders, "HOME": str(home), "USERPROFILE": str(home)}


METHOD_NAMES = frozenset(method.name for method in METHODS if method.direction != "serverToHost")

SERVER_SUITE: Suite[Server] = Suite("server", METHOD_NAMES)
"""Every check of a server."""

check = SERVER_SUITE.check
"""Adds a check to the suite."""


async def check_server(
    command: Sequence[str],
    *,
    patterns: Collection[str] = (),
    expected: Collection[str] = (),
    limit_s: float = LIMIT_S,
    on_result: Callable[[CheckResult], object] | None = None,
    own_home: bool = False,
) -> Report:
    """Check the server that a command starts, and return the report; undeclared methods are not checked.

    The server gets an empty home unless `own_home` is set. See `run_suite` for the other options.

    Raises:
        Unusable: the command does not start, `initialize` fails, or its answer has no list of methods.
        ValueError: no check matches `patterns`, or `expected` names a check that does not exist.
    """
    server = Server(command, limit_s=limit_s, own_home=own_home)
    try:
        methods = server.shared().offer.get("methods")
        if not isinstance(methods, list):
            raise Unusable("the answer to initialize has no capabilities.experimental.contextEngine.methods")
        return await run_suite(
            SERVER_SUITE,
            lambda: nullcontext(server),
            subject=" ".join(command),
            declared=SERVER_SUITE.capabilities & {str(method) for method in methods},
            patterns=patterns,
            expected=expected,
            on_result=on_result,
        )
    finally:
        server.close()
