"""Every check of the suite for servers catches a server that breaks its rule."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sidecar.conformance.kit import CheckResult, Violation, run_check
from sidecar.conformance.server import SERVER_SUITE, Server
from tests.conformance.spoiling.proxy import SWITCH
from tests.conformance.spoiling.table import SPOILT

ROOT = str(Path(__file__).parents[2])
SERVE = (sys.executable, "-m", "sidecar.cli.main", "serve")
CHECKS = {check.name: check for check in SERVER_SUITE}
FROM_THE_START = {
    "schema/every_message_keeps_the_schema",
    "handshake/answer_to_initialize",
    "handshake/declared_methods",
}
"""Checks whose servers are broken in the answer to `initialize`."""


class Stand:
    """Broken servers one after another; what a check leaves unharmed serves the next one too."""

    def __init__(self, folder: Path) -> None:
        self._name = folder / "name"
        self._name.write_text("")
        # Without -S the proxy would spend most of its start on what it does not need.
        proxy = (sys.executable, "-S", "-m", "tests.conformance.spoiling.proxy", str(self._name))
        self._command = (*proxy, *SERVE)
        self._server = self._started()

    def close(self) -> None:
        self._server.close()

    def result(self, name: str, *, spoilt: bool = True) -> CheckResult:
        """What the named check says of the server that is broken for it, or of the whole one."""

        @asynccontextmanager
        async def subject() -> AsyncGenerator[Server]:
            yield self._server

        if spoilt:
            self._switch(name)
        result = asyncio.run(run_check(CHECKS[name], subject))
        self._mend(whole=name not in FROM_THE_START)
        return result

    def _started(self) -> Server:
        return Server(self._command, limit_s=30, environment={"PYTHONPATH": ROOT})

    def _switch(self, name: str) -> None:
        self._name.write_text(name)
        if name in FROM_THE_START:
            self._start_anew()
        self._server.shared().request(SWITCH, {"name": name})

    def _mend(self, *, whole: bool) -> None:
        """Go on with the shared connection, if nothing is left on it."""
        self._name.write_text("")
        host = self._server.shared()
        try:
            host.request(SWITCH, {"name": ""})
            host.alive()
        except Violation:
            whole = False
        if not whole or host.early():
            self._start_anew()

    def _start_anew(self) -> None:
        self._server.close()
        self._server = self._started()


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    stand = Stand(tmp_path_factory.mktemp("broken"))
    yield stand
    stand.close()


@pytest.mark.parametrize("name", SPOILT)
def test_a_broken_server_is_caught_by_its_check(name: str, stand: Stand) -> None:
    result = stand.result(name)
    assert result.outcome == ("failed" if result.level == "must" else "warned"), result
    assert result.trace is None, result
    assert "nothing arrived within" not in str(result.message)


def test_every_check_has_a_broken_server() -> None:
    assert sorted(SPOILT) == sorted(CHECKS)


@pytest.mark.soak
@pytest.mark.parametrize("name", SPOILT)
def test_a_check_passes_where_the_proxy_spoils_nothing(name: str, stand: Stand) -> None:
    result = stand.result(name, spoilt=False)
    assert result.outcome == "passed", result
