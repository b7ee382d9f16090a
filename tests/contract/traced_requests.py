"""Serves three requests in this process, and prints the files of the package that each of them enters."""

import json
import os
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = f"{Path(__file__).parents[2] / 'sidecar'}{os.sep}"
entered: dict[str, None] = {}


def record(frame: FrameType, event: str, _argument: object) -> None:
    if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
        entered[frame.f_code.co_filename.removeprefix(PACKAGE)] = None


def drive(requests: int, answers: int, screen: int) -> None:
    """Speak as a host: store a long session, ask for it, compact it, end."""
    lines = os.fdopen(answers, "rb")
    passed: dict[str, list[str]] = {}

    def ask(method: str, params: Any) -> None:
        entered.clear()
        os.write(
            requests, json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        )
        os.write(requests, b"\n")
        while "id" not in (answer := json.loads(lines.readline())):
            pass
        assert "result" in answer, answer
        passed.setdefault(method, list(entered))
        passed[method] = sorted({*passed[method], *entered})

    ask("initialize", {"capabilities": {}, "initializationOptions": {"contextEngine": {"engine": "default"}}})
    for number in range(40):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        for message in (
            {"role": "user", "content": f"Question {number}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"line {number} " * 400},
            {"role": "assistant", "content": f"Answer {number}."},
        ):
            ask("context/ingest", {"sessionId": "s", "message": message})
        if number % 10 == 0:
            ask("context/assemble", {"sessionId": "s", "tokenBudget": 12_000})
    pinned = {"sessionId": "s", "text": "Keep this."}
    ask("session/pin", pinned)
    ask("context/assemble", {"sessionId": "s", "tokenBudget": 12_000})
    ask("context/compact", {"sessionId": "s", "tokenBudget": 12_000, "force": True})
    ask("shutdown", {})
    walks = ("context/ingest", "context/assemble", "context/compact")
    os.write(screen, json.dumps({method: passed[method] for method in walks}).encode())
    os.write(requests, b'{"jsonrpc":"2.0","method":"exit"}\n')
    os.close(requests)


def main() -> None:
    """Put pipes in place of the standard streams, then serve."""
    screen = os.dup(1)
    source, requests = os.pipe()
    answers, sink = os.pipe()
    os.dup2(source, 0)
    os.dup2(sink, 1)
    threading.Thread(target=drive, args=(requests, answers, screen), daemon=True).start()
    threading.setprofile(record)
    sys.setprofile(record)
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(HOME=home, XDG_CONFIG_HOME=home, CONTEXT_SIDECAR_STATE_DIR=f"{home}/state")
        sys.argv = ["context-sidecar", "serve"]
        from sidecar.cli.main import main as serve

        serve()


if __name__ == "__main__":
    main()
