"""Sidecars on a primary with a standby: what is acknowledged survives whatever happens to the servers.

Each case prints what the host has seen. The figures in spec/server/many-machines.md come from here.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from tests.e2e.kill_recorder import Recorder
from tests.e2e.sidecar_host import COMMAND, LIMIT_S, Host
from tests.missing_programs import leave_out, program
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

SETTLED_S = 60
"""A sidecar goes on at most that long after there is a server again that takes commits."""


class Pair(NamedTuple):
    """A primary that syncs to disk, and its standby."""

    primary: PostgresServer
    standby: PostgresServer

    def wait_for_standby(self) -> None:
        """Commits wait for the standby from now on."""
        self.primary.configure(synchronous_standby_names=self.standby.name)
        self.primary.wait_for("SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')")

    @property
    def config(self) -> dict[str, Any]:
        hosts = ",".join(server.url.split()[0].removeprefix("host=") for server in self)
        url = f"host={hosts} user=tests dbname=postgres target_session_attrs=read-write"
        return {"store": {"kind": "postgres", "url": url}}


@pytest.fixture
def pair() -> Iterator[Pair]:
    primary = PostgresServer(durable=True)
    try:
        standby = PostgresServer(durable=True, standby_of=primary)
        yield Pair(primary, standby)
        standby.remove()
    finally:
        primary.remove()


def play(
    host: Host, what: str, fail: Callable[[], None], mend: Callable[[], None], *, loses: bool = False
) -> None:
    """Write before, during and after a fault; then hold what is stored against what was acknowledged."""
    recorder = Recorder(host, 1, f"{what} ")
    recorder.send_for_a_while()
    fail()
    recorder.send_some()
    mend()
    mended = time.monotonic()
    before = recorder.count()
    while recorder.count() == before:
        assert time.monotonic() < mended + SETTLED_S, "nothing is acknowledged"
        recorder.send_some()
        recorder.settle()
    took_s = time.monotonic() - mended
    recorder.send_for_a_while()
    recorder.settle()
    if not loses:
        recorder.check()
    print(
        f"{what}: {recorder.count()} messages acknowledged, none lost or twice, {recorder.refused} requests "
        f"refused as retryable, first acknowledgement {took_s:.1f} s after"
    )


def nothing() -> None:
    """For faults that mend themselves."""


def terminate(server: PostgresServer, seconds: float) -> None:
    """End all connections of sidecars again and again."""
    ends = time.monotonic() + seconds
    with psycopg.connect(server.url, autocommit=True) as admin:
        while time.monotonic() < ends:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'context-sidecar'"
            )
            time.sleep(0.01)


def restart(server: PostgresServer) -> None:
    server.stop()
    server.start()


def paused(server: PostgresServer, seconds: float) -> None:
    """Stop all processes of a server for a while, in which it is sent to."""
    server.pause()
    threading.Timer(seconds, server.resume).start()


FAULTS: dict[str, tuple[Callable[[Pair], None], Callable[[Pair], None]]] = {
    "synchronous standby promoted": (
        lambda pair: pair.primary.kill(),
        lambda pair: pair.standby.promote(),
    ),
    "primary stopped, standby promoted": (
        lambda pair: pair.primary.pause(),
        lambda pair: pair.standby.promote(),
    ),
    "standby stalled for 15 s": (
        lambda pair: paused(pair.standby, 15),
        lambda pair: nothing(),
    ),
    "primary stopped for 15 s": (
        lambda pair: paused(pair.primary, 15),
        lambda pair: nothing(),
    ),
    "connections terminated for 5 s": (
        lambda pair: threading.Thread(target=terminate, args=(pair.primary, 5)).start(),
        lambda pair: nothing(),
    ),
    "primary restarted": (
        lambda pair: restart(pair.primary),
        lambda pair: nothing(),
    ),
}


@pytest.mark.parametrize("what", list(FAULTS))
def test_nothing_that_is_acknowledged_is_lost(tmp_path: Path, pair: Pair, what: str) -> None:
    pair.wait_for_standby()
    fail, mend = FAULTS[what]
    with Host(tmp_path, engine="default", config=pair.config) as host:
        try:
            play(host, what, lambda: fail(pair), lambda: mend(pair))
        finally:
            if what.startswith("primary stopped"):
                pair.primary.resume()


FORWARDER = """
import asyncio, sys

async def pump(reader, writer):
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()

async def forward(reader, writer):
    upper, lower = await asyncio.open_unix_connection(sys.argv[1])
    await asyncio.gather(pump(reader, lower), pump(upper, writer), return_exceptions=True)

async def main():
    server = await asyncio.start_server(forward, "127.0.0.1", 5432)
    print("ready", flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


class Network:
    """A network of the test's own, through which a server is reached, and which can drop all packets."""

    def __init__(self, server: PostgresServer) -> None:
        script = 'ip link set lo up && exec "$0" -c "$1" "$2"'
        command = [program("unshare"), "-n", "sh", "-c", script]
        self._process = subprocess.Popen(
            [*command, sys.executable, FORWARDER, server.socket_path], stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            leave_out("a network namespace")
        self.inside = [program("nsenter"), "-t", str(self._process.pid), "-n"]

    @contextmanager
    def black_hole(self) -> Iterator[None]:
        """Drop every packet, and tell nobody."""
        change = [*self.inside, program("tc"), "qdisc"]
        subprocess.run([*change, "add", "dev", "lo", "root", "blackhole"], check=True)
        yield
        subprocess.run([*change, "del", "dev", "lo", "root"], check=True)

    def remove(self) -> None:
        """End the network, and everything that goes through it."""
        self._process.kill()
        self._process.communicate(timeout=LIMIT_S)


def test_requests_end_in_time_while_the_network_drops_every_packet(tmp_path: Path, pair: Pair) -> None:
    network = Network(pair.primary)
    url = "host=127.0.0.1 user=tests dbname=postgres sslmode=disable gssencmode=disable"
    config = {"store": {"kind": "postgres", "url": url}}
    try:
        with Host(tmp_path, engine="default", config=config, command=[*network.inside, *COMMAND]) as host:
            recorder = Recorder(host, 1, "black hole ")
            recorder.send_for_a_while()
            recorder.settle()
            with network.black_hole():
                for limit_s in (20, 5):
                    began = time.monotonic()
                    for _ in range(3):
                        recorder.send_some()
                    recorder.settle()
                    assert time.monotonic() - began < limit_s
                assert recorder.refused
            play(host, "network dropped for 15 s", nothing, nothing)
            recorder.check()
    finally:
        network.remove()
