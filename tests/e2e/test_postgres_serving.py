"""Sidecars that keep their sessions in PostgreSQL."""

from pathlib import Path

import pytest

from tests.e2e.sidecar_host import Host, Refused
from tests.postgres_server import shared_server


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
