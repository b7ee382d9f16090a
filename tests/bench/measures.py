"""What is measured. Servers take turns inside each round, so that ratios compare like with like."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.bench.driver import Driven, frame
from tests.bench.servers import Bench, Server

Round = dict[str, dict[str, float]]
"""Of one round: server, metric, value."""

INITIALIZE: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}
LARGE_MESSAGES = 10_000
SESSIONS = 8


def _request(id: int, method: str, params: dict[str, Any]) -> bytes:
    return frame({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def _initialize(**options: Any) -> bytes:
    given = {"contextEngine": options} if options else {}
    return _request(0, "initialize", {**INITIALIZE, "initializationOptions": given})


def _in_turns(
    servers: Sequence[Server], rounds: int, measure: Callable[[Server], dict[str, float]]
) -> list[Round]:
    results: list[Round] = []
    for number in range(rounds):
        turn = [*servers[number % len(servers) :], *servers[: number % len(servers)]]
        results.append({server.name: measure(server) for server in turn})
    return results


def start_up(bench: Bench, rounds: int) -> list[Round]:
    """From the start of the process to the answer of `initialize`."""

    def measure(server: Server) -> dict[str, float]:
        state = bench.new_path("state")
        begin = time.perf_counter()
        driven = Driven(server.command, server.marker, {"CONTEXT_SIDECAR_STATE_DIR": str(state)})
        driven.one(_initialize())
        wall, cpu = time.perf_counter() - begin, driven.cpu_us()
        driven.stop()
        return {"cpu ms": cpu / 1000, "wall ms": wall * 1000}

    servers = [bench.floor(), bench.node(), bench.core(), bench.sidecar()]
    for server in servers:
        measure(server)
    return _in_turns(servers, rounds, measure)


def small(bench: Bench, rounds: int) -> list[Round]:
    """A request of about 200 bytes and its answer of the same content, with 1, 16 and 256 in flight.

    `context-sidecar serve` answers `context/preflight` instead, which asks the engine.
    """
    servers = [bench.floor(), bench.node(), bench.core(), bench.sidecar()]
    return _with_each(bench, servers, rounds, {1: 1000, 16: 4096, 256: 12_800}, _small_request)


def _small_request(server: Server, id: int) -> bytes:
    if server.command[-1] == "serve":
        return _request(
            id, "context/preflight", {"sessionId": "session-1", "tokenBudget": 1000, "pendingTokens": 7}
        )
    return _request(id, "bench/echo", {"sessionId": "session-1", "text": "x" * 60, "count": 7})


def ingest(bench: Bench, rounds: int) -> list[Round]:
    """A message of 1 KB, answered after its commit (WAL, synchronous FULL), with 1, 16 and 256 in flight."""
    servers = [bench.node_ingest("single"), bench.node_ingest("group"), bench.sidecar()]
    return _with_each(bench, servers, rounds, {1: 200, 16: 1600, 256: 5120}, _ingest_request)


def _ingest_request(server: Server, id: int) -> bytes:
    del server
    message = {
        "role": "user" if id % 2 else "assistant",
        "content": f"message {id}: " + "words and more " * 66,
    }
    return _request(id, "context/ingest", {"sessionId": f"session-{id % SESSIONS}", "message": message})


def _with_each(
    bench: Bench,
    servers: Sequence[Server],
    rounds: int,
    counts: dict[int, int],
    request: Callable[[Server, int], bytes],
) -> list[Round]:
    running: dict[str, Driven] = {}
    last_id = 0

    def frames(server: Server, count: int) -> list[bytes]:
        nonlocal last_id
        last_id += count
        return [request(server, last_id - count + number + 1) for number in range(count)]

    def measure(server: Server) -> dict[str, float]:
        values: dict[str, float] = {}
        for in_flight, count in counts.items():
            sample = running[server.name].run(frames(server, count), in_flight)
            values[f"cpu us, {in_flight}"] = sample.cpu_us / count
            values[f"per s, {in_flight}"] = count / sample.wall_us * 1e6
            if in_flight == 1:
                values["p50 us, 1"] = sample.median_us
        return values

    try:
        for server in servers:
            state = {"CONTEXT_SIDECAR_STATE_DIR": str(bench.new_path("state"))}
            driven = running[server.name] = Driven(server.command, server.marker, state)
            driven.one(_initialize(engine="default") if server.command[-1] == "serve" else _initialize())
            driven.run(frames(server, 512), 64)
        return _in_turns(servers, rounds, measure)
    finally:
        for driven in running.values():
            driven.stop()


def large(bench: Bench, rounds: int) -> list[Round]:
    """10 MB of messages in one request, and the same back.

    `context-sidecar serve` answers `context/assemble` with the engine `full`, which also counts their tokens.
    """
    text = 'def area(r: float) -> float:\n    return 3.14 * r ** 2  # "circle" '
    messages = [
        {"role": "user" if number % 2 == 0 else "assistant", "content": (f"{number} 面积 " + text * 14)[:930]}
        for number in range(LARGE_MESSAGES)
    ]
    params: dict[str, Any] = {"sessionId": "session-1", "messages": messages}
    echo = _request(1, "bench/messages", params)
    assemble = _request(1, "context/assemble", {**params, "tokenBudget": 10_000_000})
    size_mb = len(echo) / 1e6

    def measure(server: Server) -> dict[str, float]:
        is_sidecar = server.command[-1] == "serve"
        state = {"CONTEXT_SIDECAR_STATE_DIR": str(bench.new_path("state"))}
        driven = Driven(server.command, server.marker, state)
        try:
            driven.one(
                _initialize(engine="full", config={"store": {"kind": "memory"}})
                if is_sidecar
                else _initialize()
            )
            sample = driven.run([assemble if is_sidecar else echo], 2)
            return {
                "cpu ms/MB": sample.cpu_us / 1000 / size_mb,
                "MB/s": size_mb / sample.wall_us * 1e6,
                "peak MB": driven.peak_mb(),
            }
        finally:
            driven.stop()

    servers = [bench.floor(), bench.node(), bench.core(), bench.core(raw=True), bench.sidecar()]
    return _in_turns(servers, rounds, measure)


MEASURES: dict[str, Callable[[Bench, int], list[Round]]] = {
    "start-up": start_up,
    "small": small,
    "large": large,
    "ingest": ingest,
}
