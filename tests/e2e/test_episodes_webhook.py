"""Episodes reach a webhook whatever it does, always with the same key, and hold up no turn."""

import base64
import hashlib
import hmac
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.e2e.agent_host import AgentHost
from tests.e2e.episode_sessions import SECRET, both, flush, say, to_webhook, until_taken
from tests.postgres_server import shared_server
from tests.webhook_server import HANG, RESET, WebhookServer

TURNS = [f"thought number {number}" for number in range(5)]


@pytest.fixture
def server() -> Iterator[WebhookServer]:
    """A receiver that takes everything."""
    with WebhookServer() as serving:
        yield serving


def test_every_turn_comes_once_signed_and_in_order(server: WebhookServer, tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="default", config=to_webhook(server, secret=SECRET)) as host:
        for text in TURNS:
            say(host, text, agentId="ada", sessionKey="desk")
        flush(host)
        until_taken(server, host, len(TURNS))
    assert server.texts == both(*TURNS)
    assert set(server.keys.values()) == {1}
    for posted in server.posted:
        episode = posted.episode
        assert (episode["agentId"], episode["sessionId"], episode["sessionKey"]) == ("ada", "s", "desk")
        assert episode["key"] == posted.key == posted.headers["webhook-id"]
        signed = f"{posted.key}.{posted.headers['webhook-timestamp']}.".encode() + posted.body
        key = base64.b64decode(SECRET.removeprefix("whsec_"))
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert posted.headers["webhook-signature"] == f"v1,{expected}"


def _later(body: dict[str, Any], times: int) -> web.Response | int:
    return 200 if times > 1 else web.Response(status=429, headers={"Retry-After": "1"})


@pytest.mark.parametrize("first", [500, RESET, HANG, 302], ids=["500", "reset", "hang", "redirected"])
def test_no_fault_loses_an_episode_and_repetitions_carry_its_key(first: int, tmp_path: Path) -> None:
    with WebhookServer(lambda body, times: first if times == 1 else 200) as server:
        config = to_webhook(server, timeoutMs=900, retries=1)
        with AgentHost(tmp_path, engine="sliding-window", config=config) as host:
            say(host, "once")
            flush(host)
            until_taken(server, host, 1)
        assert server.texts == both("once")
        assert len(server.keys) == 1 and len(server.posted) > 1


def test_a_receiver_says_when_it_wants_to_be_asked_again(tmp_path: Path) -> None:
    with WebhookServer(_later) as server:
        with AgentHost(tmp_path, engine="default", config=to_webhook(server)) as host:
            say(host, "hello")
            flush(host)
            until_taken(server, host, 1)
        stamps = [int(posted.headers["webhook-timestamp"]) for posted in server.posted]
        assert len(stamps) == 2 and stamps[1] > stamps[0], "asked again after the second that it wanted"


def test_turns_go_on_while_the_receiver_hangs(tmp_path: Path) -> None:
    with WebhookServer(lambda body, times: HANG) as server:
        config = to_webhook(server, timeoutMs=600_000)
        with AgentHost(tmp_path, engine="default", config=config) as host:
            say(host, "first")
            flush(host)
            server.wait_for(lambda: len(server.posted) == 1)
            for text in TURNS:
                say(host, text)
                host.assemble("s", tokenBudget=8000)
                flush(host)
            assert len(server.posted) == 1, "all of this was answered while one delivery hangs"
            host.call("context/dispose")


def test_what_a_receiver_refuses_is_kept_and_holds_up_nothing(tmp_path: Path) -> None:
    def refuse(body: dict[str, Any], times: int) -> int:
        return 422 if "poison" in body["messages"][0]["text"] else 200

    with WebhookServer(refuse) as server:
        with AgentHost(tmp_path, engine="default", config=to_webhook(server, timeoutMs=3000)) as host:
            for text in ("poison", "bread"):
                say(host, text)
            flush(host)
            server.wait_for(lambda: server.texts == both("bread"))
            server.script = lambda body, times: 200
            host.restart()
            server.wait_for(lambda: len(server.texts) == 4)
        assert sorted(server.texts) == sorted(both("poison", "bread"))


def test_a_kill_between_delivery_and_deletion_repeats_one_episode_at_most(tmp_path: Path) -> None:
    with WebhookServer(lambda body, times: HANG) as server:
        with AgentHost(
            tmp_path, engine="default", config=to_webhook(server, timeoutMs=2000, retries=0)
        ) as host:
            for text in TURNS:
                say(host, text)
            flush(host)
            server.wait_for(lambda: len(server.posted) == 1)
            server.script = lambda body, times: 200
            host.restart(signal.SIGKILL)
            until_taken(server, host, len(TURNS))
        assert sorted(server.texts) == sorted(both(*TURNS)), "others may come before the one that is claimed"
        assert sorted(server.keys.values()) == [1, 1, 1, 1, 2]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_processes_on_one_store_deliver_each_episode_once(
    kind: str, server: WebhookServer, tmp_path: Path
) -> None:
    store = {"kind": kind, "url": shared_server().fresh()} if kind == "postgres" else {"kind": kind}
    config = {**to_webhook(server), "store": store}
    with (
        AgentHost(tmp_path, engine="default", config=config) as one,
        AgentHost(tmp_path, engine="sliding-window", config=config) as other,
    ):
        for text in TURNS:
            say(one, text, "first")
            say(other, text, "second")
        requests = [
            (host, host.send("context/compact", sessionId=session))
            for host, session in ((one, "first"), (other, "second"))
        ]
        for host, request in requests:
            host.result(request)
        until_taken(server, one, 2 * len(TURNS))
    assert set(server.keys.values()) == {1} and len(server.keys) == 2 * len(TURNS)


def test_nothing_is_buffered_unless_somebody_asks_for_it(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="default") as host:
        say(host, "private")
        flush(host)
        host.call("context/dispose")
        assert "episodes" not in [check["name"] for check in host.call("engine/doctor")["checks"]]
    assert not (tmp_path / "episodes.jsonl").exists()


def test_a_secret_of_the_environment_signs_nothing_for_an_address_of_the_host(
    server: WebhookServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "CONTEXT_SIDECAR_EPISODES_SECRET", SECRET)
    with AgentHost(tmp_path, engine="default", config=to_webhook(server)) as host:
        say(host, "hello")
        flush(host)
        until_taken(server, host, 1)
    assert "webhook-signature" not in server.posted[0].headers
