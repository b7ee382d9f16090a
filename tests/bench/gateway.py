"""`python -m tests.bench.gateway`: what the gateway adds to a request, paired with the direct connection."""

import argparse
import json
import os
import re
import signal
import socket
import socketserver
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.processes_of import children_of

Body = dict[str, Any]

AIM_MS, FIRST_BYTE_AIM_MS = 15.0, 20.0
"""Added at the median, at 100,000 tokens of history."""
BYTES_A_TOKEN = 4
WARM_UP = 5
EVENTS = [
    {
        "type": "message_start",
        "message": {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": "m",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "done"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]


class _Upstream(socketserver.StreamRequestHandler):
    """Answers each request as soon as its last byte is there."""

    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Serve one connection until its end."""
        answer = b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in EVENTS)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(answer)}\r\n\r\n"
        while self.rfile.readline():
            length = 0
            while (line := self.rfile.readline()) not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            self.rfile.read(length)
            self.wfile.write(head.encode() + answer)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 200


def serve_upstream() -> None:
    """Be the model's API until standard input ends."""
    with _Server(("127.0.0.1", 0), _Upstream) as server:
        print(server.server_address[1], flush=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()


class Timed(NamedTuple):
    """Milliseconds of one request."""

    first: float
    """Until the first byte of the answer."""
    whole: float


def ask(port: int, body: bytes) -> Timed:
    """One request on a connection of its own, as programs make it."""
    head = (
        f"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        "x-claude-code-session-id: bench\r\nanthropic-version: 2023-06-01\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begun = time.perf_counter()
        connection.sendall(head.encode() + body)
        answer = connection.recv(1 << 16)
        first = time.perf_counter()
        while b"message_stop" not in answer:
            answer += connection.recv(1 << 16)
        whole = time.perf_counter()
    assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
    return Timed((first - begun) * 1000, (whole - begun) * 1000)


class History:
    """A session of calls and results, in pages of some 600 tokens."""

    def __init__(self) -> None:
        self.messages: list[Body] = [{"role": "user", "content": [{"type": "text", "text": "Mend it."}]}]
        self._size = 0

    def grow(self) -> None:
        """Add a call and its result."""
        number = len(self.messages)
        use = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "Bash",
            "input": {"command": f"cat {number}"},
        }
        text = " ".join(f"line {number}.{n} of the log: nothing to see" for n in range(60))
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}
        self.messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        self._size += len(text) + 200

    def grow_to(self, tokens: int) -> None:
        """Grow until the history has so many tokens, roughly."""
        while self._size < tokens * BYTES_A_TOKEN:
            self.grow()

    def body(self) -> bytes:
        """The request as a program sends it: markers move to the newest message."""
        newest = self.messages[-1]
        marked = {**newest, "content": [{**newest["content"][-1], "cache_control": {"type": "ephemeral"}}]}
        request = {
            "model": "claude-x",
            "max_tokens": 4000,
            "stream": True,
            "system": [{"type": "text", "text": "You are an agent. " * 500}],
            "tools": [{"name": "Bash", "description": "Run. " * 1000, "input_schema": {"type": "object"}}],
            "messages": [*self.messages[:-1], marked],
        }
        return json.dumps(request, separators=(",", ":")).encode()


def cpu_ms(pid: int) -> float:
    """Milliseconds of processor time of all threads."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6


def memory_mb(pid: int) -> float:
    """Resident megabytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def spread(name: str, values: list[float]) -> float:
    """Print the distribution of what was measured; returns its median."""
    ordered = sorted(values)
    p50, p95 = statistics.median(ordered), ordered[int(len(ordered) * 0.95) - 1]
    print(f"{name:44} p50 {p50:8.2f}   p95 {p95:8.2f}", flush=True)
    return p50


def main() -> int:
    """Measure, and say whether the aims hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upstream", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--window", default="400k", help="below the history, requests are rewritten")
    given = parser.parse_args()
    if given.upstream:
        serve_upstream()
        return 0
    command = Path(sys.executable).with_name("context-sidecar")
    with tempfile.TemporaryDirectory() as folder:
        upstream = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.gateway", "--upstream"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert upstream.stdout is not None
        assert upstream.stdin is not None
        direct = int(upstream.stdout.readline())
        where = f"http://127.0.0.1:{direct}"
        gateway = subprocess.Popen(
            [command, "gateway", "--state-dir", folder, "--window", given.window,
             "--upstream-anthropic", where, "--upstream-openai", where],
            stderr=subprocess.PIPE, text=True, env={**os.environ, "HOME": folder}, cwd=folder,
        )  # fmt: skip
        assert gateway.stderr is not None
        found = re.search(r":(\d+), engine", gateway.stderr.readline())
        assert found is not None
        try:
            measure(direct, int(found[1]), gateway.pid, given.tokens, given.turns)
        finally:
            gateway.send_signal(signal.SIGTERM)
            gateway.wait(30)
            upstream.stdin.close()
            upstream.wait(30)
    return 0


def measure(direct: int, through: int, pid: int, tokens: int, turns: int) -> None:
    """Let a session grow from so many tokens on; each request goes the direct way as well."""
    history = History()
    history.grow_to(tokens)
    added: list[Timed] = []
    base: list[Timed] = []
    spent: list[tuple[float, float]] = []
    for turn in range(WARM_UP + turns):
        body = history.body()
        pair: dict[int, Timed] = {}
        before = 0.0, 0.0
        for port in (direct, through) if turn % 2 else (through, direct):
            if port == through:
                sidecars = children_of(pid)
                before = cpu_ms(pid), sum(map(cpu_ms, sidecars))
            pair[port] = ask(port, body)
        settle(pid)
        if turn >= WARM_UP:
            sidecars = children_of(pid)
            spent.append((cpu_ms(pid) - before[0], sum(map(cpu_ms, sidecars)) - before[1]))
            base.append(pair[direct])
            added.append(
                Timed(pair[through].first - pair[direct].first, pair[through].whole - pair[direct].whole)
            )
        history.grow()
    print(f"{len(history.messages)} messages, {len(history.body()) >> 10} KiB a request, {turns} turns; ms")
    spread("direct, whole answer", [each.whole for each in base])
    first = spread("added until the first byte", [each.first for each in added])
    whole = spread("added to the whole answer", [each.whole for each in added])
    spread("processor time a turn, gateway", [each[0] for each in spent])
    spread("processor time a turn, sidecar", [each[1] for each in spent])
    sizes = [memory_mb(each) for each in (pid, *children_of(pid))]
    print(f"resident MB of gateway and sidecar: {' '.join(f'{size:.0f}' for size in sizes)}")
    print(f"aims at the median: {AIM_MS:.0f} added, here {whole:.1f}; ", end="")
    print(f"{FIRST_BYTE_AIM_MS:.0f} to the first byte, here {first:.1f}")


def settle(pid: int) -> None:
    """Wait until what is done behind an answer is done."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        pids = [pid, *children_of(pid)]
        before = sum(map(cpu_ms, pids))
        time.sleep(0.03)
        if sum(map(cpu_ms, pids)) - before < 1.0:
            return


if __name__ == "__main__":
    sys.exit(main())
