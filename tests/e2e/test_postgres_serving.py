"""Sidecars that keep their sessions in PostgreSQL."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.sidecar_host import LIMIT_S, Host, Refused, exported
from tests.postgres_server import PostgresServer, shared_server


@pytest.fixture
def crashing_server() -> Iterator[PostgresServer]:
    """A server that a test may kill."""
    server = PostgresServer(durable=True)
    yield server
    server.remove()


class Listener:
    """Takes one connection as a PostgreSQL server that asks for a password in the clear."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.received = b""
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        """Return once the connection has ended."""
        self._thread.join(LIMIT_S)
        self._socket.close()

    def _serve(self) -> None:
        self._socket.settimeout(LIMIT_S)
        connection, _ = self._socket.accept()
        with connection:
            connection.settimeout(LIMIT_S)
            connection.sendall(b"R\0\0\0\x08\0\0\0\x03")
            while part := connection.recv(65536):
                self.received += part


@pytest.mark.parametrize("where", ["environment", "file", "service"])
def test_a_server_that_the_host_names_is_not_shown_what_libpq_finds(tmp_path: Path, where: str) -> None:
    listener = Listener()
    environment = {"HOME": str(tmp_path), "PGUSER": "operator"}
    if where == "environment":
        environment["PGPASSWORD"] = "heron-secret"
    elif where == "file":
        (tmp_path / ".pgpass").write_text("*:*:*:*:heron-secret\n", encoding="utf-8")
        (tmp_path / ".pgpass").chmod(0o600)
    else:
        (tmp_path / ".pg_service.conf").write_text("[own]\npassword=heron-secret\n", encoding="utf-8")
        environment["PGSERVICE"] = "own"
    store = {"kind": "postgres", "url": f"postgresql://127.0.0.1:{listener.port}/d?sslmode=disable"}
    with Host(tmp_path / "state", initialized=False, environment=environment) as host:
        host.options["config"] = {"store": store}
        with pytest.raises(Refused) as refused:
            host.initialize()
    listener.close()
    assert refused.value.code == 1006
    assert listener.received and b"heron" not in listener.received and b"operator" not in listener.received


def test_the_url_of_a_host_names_no_file(tmp_path: Path) -> None:
    store = {"kind": "postgres", "url": f"postgresql://127.0.0.1:1/d?passfile={tmp_path}/any"}
    with (
        Host(tmp_path / "state", initialized=False, config={"store": store}) as host,
        pytest.raises(Refused) as refused,
    ):
        host.initialize()
    assert refused.value.code == 1006 and "passfile" in str(refused.value)


def message(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def test_two_sidecars_on_one_server_share_a_session(tmp_path: Path) -> None:
    config = {"store": {"kind": "postgres", "url": shared_server().fresh()}}
    with (
        Host(tmp_path / "one", engine="full", config=config, namespace="shared") as one,
        Host(tmp_path / "two", engine="full", config=config, namespace="shared") as two,
    ):
        for number in range(6):
            host = (one, two)[number % 2]
            host.call("context/ingest", sessionId="s", message=message(f"text {number}"))
        for host in (one, two):
            exported = host.call("session/export", sessionId="s")["messages"]
            assert [each["message"]["content"] for each in exported] == [f"text {n}" for n in range(6)]
            found = host.call(
                "tools/call",
                sessionId="s",
                name="context_search",
                arguments={"mode": "search", "query": "text 3"},
            )
            assert "text 3" in found["content"][0]["text"]
        assert one.call("session/delete", sessionId="s") == {"deleted": True}
        with pytest.raises(Refused) as refused:
            two.call("session/export", sessionId="s")
        assert refused.value.code == 1003


@pytest.mark.parametrize(
    ("store", "part"),
    [
        ({"kind": "postgres"}, "store.url"),
        ({"kind": "postgres", "url": "postgresql://127.0.0.1:1/x"}, "server"),
        ({"kind": "postgres", "url": "nonsense"}, "postgresql://"),
    ],
)
def test_a_store_that_cannot_be_opened_is_1006_with_a_hint(
    tmp_path: Path, store: dict[str, str], part: str
) -> None:
    with Host(tmp_path, initialized=False, engine="full", config={"store": store}) as host:
        with pytest.raises(Refused) as refused:
            host.initialize()
        assert refused.value.code == 1006
        assert part in refused.value.data["hint"]


def test_requests_under_load_outlast_a_crash_of_the_server_and_none_is_half_done(
    tmp_path: Path, crashing_server: PostgresServer
) -> None:
    config = {"store": {"kind": "postgres", "url": crashing_server.url}}
    with Host(tmp_path, engine="full", config=config) as host:
        ids = [ingest(host, n) for n in range(100)]
        crashing_server.kill()
        ids += [ingest(host, n) for n in range(100, 200)]
        crashing_server.start()
        kept: list[str] = []
        for number, answer in enumerate(host.wait_all(ids)):
            if isinstance(answer, Refused):  # where the machine is so slow that the limit is over
                assert (answer.code, answer.data["retryable"]) == (1006, True)
            else:
                kept.append(f"text {number}")
        host.wait(ingest(host, 200))
        assert said(host) == [*kept, "text 200"]


def test_a_server_that_stays_away_is_1006_after_the_limit_and_the_sidecar_goes_on_when_it_is_back(
    tmp_path: Path, crashing_server: PostgresServer
) -> None:
    config = {"store": {"kind": "postgres", "url": crashing_server.url}}
    with Host(tmp_path, engine="full", config=config) as host:
        host.wait(ingest(host, 0))
        crashing_server.kill()
        refused = host.wait_all([ingest(host, n) for n in range(1, 20)])
        crashing_server.start()
        assert {answer.code for answer in refused} == {1006}
        assert all(answer.data["retryable"] for answer in refused)
        while isinstance(host.wait_all([ingest(host, 20)])[0], Refused):
            pass
        assert said(host) == ["text 0", "text 20"]


def ingest(host: Host, number: int) -> int:
    return host.send("context/ingest", sessionId="s", message=message(f"text {number}"))


def said(host: Host) -> list[str]:
    return [each["message"]["content"] for each in exported(host, "s")]
