"""What a client does after its server has died."""

from __future__ import annotations

from sidecar.conformance.client.played import PlayedServer, assembled
from sidecar.conformance.client.subject import Client, Stage
from sidecar.conformance.client.suite import check
from sidecar.conformance.kit import expect_equal
from sidecar.conformance.server.wire import Json

_INGEST = "context/ingest"
_ASSEMBLE = "context/assemble"
_REGISTER = "memory/register"
_MESSAGE: Json = {"role": "user", "content": "x"}


def _dies(stage: Stage, server: PlayedServer) -> None:
    """End the server under a request that stores, which the runtime is told."""
    stage.ask("lost", _INGEST, sessionId="s", message=_MESSAGE)
    server.request(_INGEST)
    server.exit(1)
    expect_equal(stage.driver.failure("lost").get("kind"), "lost", "kind of the failure")


def _opened_again(stage: Stage, **members: Json) -> PlayedServer:
    stage.driver.do("open", "again", **members)
    server = stage.server()
    server.welcome()
    return server


@check("restarting", "CEP-LIFE-12", "CEP-ID-3")
def nothing_is_stored_again(client: Client) -> None:
    """A server that follows one that died gets what the runtime asks, and no message a second time."""
    with client.stage() as stage:
        _dies(stage, stage.open())
        server = _opened_again(stage)
        stage.driver.result("again")
        stage.ask("next", "engine/list")
        server.answer(server.request("engine/list"), {"engines": []})
        stage.driver.result("next")


@check("restarting", "CEP-DELTA-1", "CEP-DELTA-2", needs=("deltas",))
def edits_begin_afresh(client: Client) -> None:
    """What an earlier server answered is no base for the edits of its successor."""
    with client.stage() as stage:
        server = stage.open(deltas=True)
        stage.driver.do("assemble", "assemble", params={"sessionId": "s"})
        server.answer(server.request(_ASSEMBLE), assembled([_MESSAGE], "r1"))
        stage.driver.result("assemble")
        _dies(stage, server)
        server = _opened_again(stage, deltas=True)
        stage.driver.result("again")
        stage.driver.do("assemble", "assemble", params={"sessionId": "s"})
        request = server.request(_ASSEMBLE)
        expect_equal(request.at("/params/previousResultId", None), None, "previousResultId for a new server")
        server.answer(request, assembled([_MESSAGE], "r2"))
        stage.driver.result("assemble")


@check("restarting", "CEP-MEM-1", needs=("memory/getContext",))
def sources_are_offered_again(client: Client) -> None:
    """Memory sources live as long as a connection, so each new server is offered them."""
    offer: dict[str, Json] = {
        "answers": {"memory/getContext": {"result": {"fragments": []}}},
        "sources": ["notes"],
    }
    with client.stage() as stage:
        stage.driver.do("open", "open", **offer)
        server = stage.server()
        server.welcome()
        server.answer(server.request(_REGISTER), {"registered": True})
        stage.driver.result("open")
        _dies(stage, server)
        server = _opened_again(stage, **offer)
        request = server.request(_REGISTER)
        expect_equal(request.at("/params/name", None), "notes", "the source that the new server is offered")
        server.answer(request, {"registered": True})
        stage.driver.result("again")
