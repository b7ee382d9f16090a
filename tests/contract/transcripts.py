"""Sessions with our server, recorded in `spec/transcripts/` by `python -m tests.contract.transcripts`."""

import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sidecar.conformance.server import Server
from sidecar.conformance.server.host import Host
from sidecar.conformance.wire import Json

FOLDER = Path(__file__).parents[2] / "spec" / "transcripts"
SERVE = (sys.executable, "-m", "sidecar.cli.main", "serve")
Entry = dict[str, Any]


def recorded(session: Callable[[Host], None]) -> list[Entry]:
    """What both sides say in a session, in the order in which the host sends and receives it."""
    entries: list[Entry] = []
    with tempfile.TemporaryDirectory() as folder:
        root = str(FOLDER.parents[1])
        environment = {"CONTEXT_SIDECAR_STATE_DIR": folder, "PYTHONPATH": root}
        server = Server(SERVE, limit_s=60, environment=environment)
        with server.start() as host:
            write, receive = host.write, host.process.receive

            def tell(body: Any) -> None:
                entries.append({"from": "host", "message": body})
                write(body)

            def hear() -> Any:
                message = receive()
                if message is not None:
                    entries.append({"from": "server", "message": message.body})
                return message

            host.write, host.process.receive = tell, hear
            session(host)
            host.result("shutdown")
            host.notify("exit")
            host.rest()
        server.close()
    return entries


def initialize(host: Host, id: str, capabilities: list[str] | None = None) -> None:
    """The handshake of the host `id`."""
    options: dict[str, Json] = {"protocolVersion": "1.0", "host": {"id": id}}
    if capabilities:
        options["hostCapabilities"] = capabilities
    host.initialize(
        {"processId": None, "capabilities": {}, "initializationOptions": {"contextEngine": options}}
    )


def hello(host: Host) -> None:
    """A first session: assemble, commit twice, search, a budget that is too small, delete."""
    initialize(host, "hello")
    turn: list[Json] = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hello!"}]
    system: Json = {"role": "system", "content": "You are brief."}
    host.request("context/assemble", {"sessionId": "s1", "tokenBudget": 4096, "messages": [system, turn[0]]})
    commit: Json = {"sessionId": "s1", "advancementKey": "turn-1", "messages": turn}
    host.request("context/commitTurn", commit)
    host.request("context/commitTurn", commit)
    arguments: Json = {"mode": "search", "query": "HELLO", "before": 0, "after": 0}
    host.request("tools/call", {"sessionId": "s1", "name": "context_search", "arguments": arguments})
    long: Json = {"role": "user", "content": "a longer question than two tokens can hold"}
    host.request("context/assemble", {"sessionId": "s1", "tokenBudget": 2, "messages": [*turn, long]})
    host.request("session/delete", {"sessionId": "s1"})


def mistakes(host: Host) -> None:
    """What a host that makes mistakes is told."""
    host.request("session/list")
    initialize(host, "clumsy")
    host.request("context/remember", {"sessionId": "s1"})
    host.request("context/ingest", {"message": {"role": "user", "content": "x"}})
    host.request(
        "context/ingestBatch", {"sessionId": "s1", "messages": [{"role": "user", "content": "x"}, 7]}
    )
    host.request("context/assemble", {"sessionId": "s1", "tokenBudget": 0, "messages": []})
    host.request("context/compact", {"sessionId": "never-seen"})
    message: Json = {"role": "user", "content": "original"}
    host.request("context/ingest", {"sessionId": "s1", "messageId": "m1", "message": message})
    other: Json = {"role": "user", "content": "changed"}
    host.request("context/ingest", {"sessionId": "s1", "messageId": "m1", "message": other})
    host.request("tools/call", {"sessionId": "s1", "name": "no_such_tool", "arguments": {}})


def memory(host: Host) -> None:
    """A host with a memory source, which is asked while the host waits for its context."""
    initialize(host, "rememberer", ["memory/getContext"])
    fragment: Json = {"id": "tea", "content": "Prefers tea.", "tokens": 4, "priority": 50}
    host.answers["memory/getContext"] = lambda _: {"result": {"fragments": [fragment]}}
    host.request("memory/register", {"name": "notes", "injectionPoints": ["per-message"]})
    question: Json = {"role": "user", "content": "What should I drink?"}
    params: dict[str, Json] = {"sessionId": "s1", "agentId": "anna", "tokenBudget": 4096}
    host.request("context/assemble", {**params, "messages": [question], "prompt": "What should I drink?"})


def subagents(host: Host) -> None:
    """A child that begins with what its parent knows, and ends."""
    initialize(host, "parent")
    told: Json = {"role": "user", "content": "The code word is swordfish."}
    host.request("context/ingest", {"sessionId": "s1", "sessionKey": "main", "message": told})
    spawn: Json = {
        "parentSessionKey": "main",
        "childSessionKey": "child",
        "childSessionId": "s2",
        "contextMode": "fork",
    }
    host.request("subagent/prepareSpawn", spawn)
    host.request("context/assemble", {"sessionId": "s2", "tokenBudget": 4096})
    host.request("subagent/ended", {"childSessionKey": "child", "reason": "deleted"})
    host.request("session/get", {"sessionId": "s2"})


SESSIONS = {session.__name__: session for session in (hello, mistakes, memory, subagents)}

_COUNTED = frozenset(("tokens", "estimatedTokens", "required"))
_CHOSEN = frozenset(("resultId", "preparationId", "version", "methods", "tools", "implements"))
_MADE = re.compile(r"\[ctx:[^\]]*\]|\d{4}-\d\d-\d\dT[\d:.]+Z|^[0-9a-z]{8}-\d+$")


def comparable(value: Any, name: str = "") -> Any:
    """The value without what differs from run to run, or changes with what is installed."""
    if name in _COUNTED or name in _CHOSEN:
        return type(value).__name__
    if isinstance(value, dict):
        error = {"message", "hint"} if "code" in value or "hint" in value else frozenset[str]()
        return {key: "str" if key in error else comparable(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return _MADE.sub("...", value) if isinstance(value, str) else value


if __name__ == "__main__":
    for name, session in SESSIONS.items():
        lines = [json.dumps(entry, ensure_ascii=False) + "\n" for entry in recorded(session)]
        (FOLDER / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
