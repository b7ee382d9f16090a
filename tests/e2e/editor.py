"""An editor over the real process: it opens transcripts, changes them and asks what they hold."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.wire.harness import ServerProcess, notification, request

COMMAND = (str(Path(sys.executable).with_name("context-sidecar")), "serve")
MEMORY = {"contextEngine": {"config": {"store": {"kind": "memory"}}}}
TREES = {"textDocument": {"documentSymbol": {"hierarchicalDocumentSymbolSupport": True}}}

Json = dict[str, Any]


class Editor:
    """A client with `textDocument` capabilities; the process is killed at the end of the with-block."""

    def __init__(self, capabilities: Json | None = None, members: Json | None = None, **process: Any) -> None:
        self.server = ServerProcess(process.pop("command", COMMAND), **process)
        self._count = 0
        answer = self.server.initialize(
            {
                "processId": None,
                "capabilities": TREES if capabilities is None else capabilities,
                "initializationOptions": MEMORY,
                **(members or {}),
            }
        )
        self.capabilities: Json = answer["result"]["capabilities"]

    def __enter__(self) -> Editor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.__exit__(kind, problem, trace)

    def ask(self, method: str, params: Json) -> Json:
        """The answer to a request, be it a result or an error."""
        self._count += 1
        self.server.say(request(self._count, method, params))
        return self.server.answer(self._count)

    def open(self, text: str, uri: str = "file:///session.jsonl") -> str:
        """Open a document; returns its name."""
        item = {"uri": uri, "languageId": "json", "version": 1, "text": text}
        self.server.say(notification("textDocument/didOpen", {"textDocument": item}))
        return uri

    def change(self, uri: str, *changes: Json, version: int = 2) -> None:
        """Send changes of a document."""
        params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)}
        self.server.say(notification("textDocument/didChange", params))

    def close(self, uri: str) -> None:
        """Close a document."""
        self.server.say(notification("textDocument/didClose", {"textDocument": {"uri": uri}}))

    def symbols(self, uri: str) -> list[Json]:
        """The symbols of a document."""
        answer = self.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
        assert "result" in answer, answer
        return answer["result"]

    def leave(self) -> int:
        """Shut down; returns the exit code."""
        assert self.ask("shutdown", {})["result"] is None
        self.server.say(notification("exit"))
        return self.server.exit_code()


def edit(line: int, start: int, end: int, text: str, *, end_line: int | None = None) -> Json:
    """The change that puts `text` in the place of a range; characters count in UTF-16."""
    last = line if end_line is None else end_line
    return {
        "range": {
            "start": {"line": line, "character": start},
            "end": {"line": last, "character": end},
        },
        "text": text,
    }


def piece(text: str, place: Json) -> str:
    """The text in a range, as an editor that counts in UTF-16 finds it."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    ends = [units(lines[place[end]["line"]])[: place[end]["character"] * 2] for end in ("start", "end")]
    start, last = place["start"]["line"], place["end"]["line"]
    if start == last:
        return ends[1][len(ends[0]) :].decode("utf-16-le")
    head = units(lines[start])[len(ends[0]) :].decode("utf-16-le")
    return "\n".join([head, *lines[start + 1 : last], ends[1].decode("utf-16-le")])


def units(text: str) -> bytes:
    """The text in UTF-16."""
    return text.encode("utf-16-le")
