"""The server under test: how it is started, and the connections that checks share."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from sidecar.conformance.expecting import Violation
from sidecar.conformance.server.faults import Unusable
from sidecar.conformance.server.host import Host
from sidecar.conformance.server.process import ServerProcess
from sidecar.conformance.server.wire import Json, Object, shown

LIMIT_S = 20.0
"""Seconds that one answer may take."""


class Server:
    """A command that starts a server, with a folder for what its processes keep.

    Checks that change nothing about the connection share one process; those that end or upset it take one
    of their own.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        limit_s: float = LIMIT_S,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = tuple(command)
        self._limit_s = limit_s
        self._environment = dict(environment or {})
        self._folder = tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True)
        # What the server left running may still write there.
        self._shared: Host | None = None
        self._numbers = count(1)
        self.problems: list[str] = []
        """What was wrong with the members of messages, whichever check they came in."""

    def close(self) -> None:
        """End the shared process and remove the folder."""
        if self._shared is not None:
            self._shared.process.__exit__(None, None, None)
            self._shared = None
        self._folder.cleanup()

    @property
    def limit_s(self) -> float:
        """Seconds that one answer may take."""
        return self._limit_s

    def start(self, *, lines: bool = False, environment: Mapping[str, str] | None = None) -> Host:
        """A process of its own, not yet initialized; to be used in a with-block."""
        process = ServerProcess(
            self._command,
            limit_s=self._limit_s,
            lines=lines,
            environment={**self._environment, **(environment or {})},
        )
        return Host(process, self.problems)

    def connect(self, *, lines: bool = False, **options: Json) -> Host:
        """A process of its own, initialized with these members of `contextEngine`.

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
        """A connection with all defaults that checks share, made anew where one of them has ended it.

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
        """Params of `initialize`; `config` is joined with what the kit itself sets."""
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
        """Where the server keeps its state; it is the same for every process of a run."""
        return Path(self._folder.name)

    def name(self, what: str = "session") -> str:
        """A name that was not used before in this run."""
        return f"{what}-{next(self._numbers)}"
