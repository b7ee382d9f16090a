"""A gateway process on loopback, and a program that speaks with it."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.provider_rules import Body

LIMIT_S = 120.0
PATIENT = ("--wait", "60")
"""However busy the machine is, no request is to go past the engine because of it."""
IMPATIENT = ("--wait", "15")
"""For tests of what happens without an answer; a later option counts."""
COMMAND = str(Path(sys.executable).with_name("context-sidecar"))


class Running:
    """A gateway process, and a program that speaks with it."""

    def __init__(self, state: Path, upstream: str, *options: str) -> None:
        self.state = state
        command = [COMMAND, "gateway", "--state-dir", str(state), *PATIENT]
        command += ["--upstream-anthropic", upstream, "--upstream-openai", upstream, *options]
        environment = {**os.environ, "HOME": str(state.parent), "XDG_CONFIG_HOME": str(state.parent)}
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environment, cwd=state.parent
        )
        assert self.process.stderr is not None
        first = self.process.stderr.readline()
        found = re.search(r":(\d+), engine", first)
        assert found is not None, first + self.process.stderr.read()
        self.port = int(found[1])

    def ask(
        self, path: str, body: Any, headers: dict[str, str] | None = None, method: str = "POST"
    ) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, raw, {"content-type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        try:
            return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()

    def stored(self) -> list[str]:
        """The messages of the one session, as they are stored."""
        [session] = self.listed() or [{"sessionId": ""}]
        return self._command("export", session["sessionId"]).splitlines()

    def listed(self) -> list[Body]:
        """The sessions, as `sessions list` shows them."""
        shown = self._command("list", "--json")
        return json.loads(shown)["sessions"] if shown else []

    def _command(self, verb: str, *arguments: str) -> str:
        namespace = [] if verb == "savings" else ["--namespace", "gateway"]
        command = [COMMAND, "sessions", verb, *arguments, *namespace]
        return subprocess.run(
            [*command, "--state-dir", str(self.state)],
            capture_output=True, text=True, timeout=LIMIT_S, check=True,
        ).stdout  # fmt: skip

    def savings(self) -> list[Body]:
        """What `sessions savings` says, a row a session."""
        return json.loads(self._command("savings", "--json"))["sessions"]

    def close(self) -> str:
        """End it; returns what it wrote to standard error."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stderr is not None
        with self.process.stderr:
            said = self.process.stderr.read()
        assert self.process.wait(LIMIT_S) == 0
        return said


Start = Callable[..., Running]
