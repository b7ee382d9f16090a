"""A running inspector, and requests to it."""

from __future__ import annotations

import signal
import subprocess
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from tests.client_kit import LIMIT_S, PROGRAM


class Inspector:
    """A running `context-sidecar inspect`; `close` ends it."""

    def __init__(self, state: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [PROGRAM, "inspect", "--no-open", "--state-dir", str(state), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        parts = urlsplit(self.address)
        self.host, self.below = parts.netloc, parts.path

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        body: str | None = None,
        headers: dict[str, str] | None = None,
        patience_s: float = LIMIT_S,
    ) -> tuple[int, str, HTTPResponse]:
        connection = HTTPConnection(self.host, timeout=patience_s)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text, answer

    def page(self, name: str, **query: object) -> str:
        status, text, _ = self.ask(f"{self.below}{name}{'?' + urlencode(query) if query else ''}")
        assert status == 200, text
        return text

    def post(self, where: str, form: dict[str, str]) -> int:
        headers = {
            "Origin": f"http://{self.host}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        return self.ask(self.below + where, method="POST", body=urlencode(form), headers=headers)[0]

    def act(self, query: str, action: str, value: str = "") -> int:
        return self.post(f"act?{query}", {"action": action, "value": value})

    def close(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(LIMIT_S)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code
