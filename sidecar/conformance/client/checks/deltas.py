"""How a client makes whole lists of the edits of `context/assemble`."""

from __future__ import annotations

from sidecar.conformance.client.played import PlayedServer, assembled
from sidecar.conformance.client.subject import Client, Stage
from sidecar.conformance.client.suite import check
from sidecar.conformance.kit import expect, expect_equal
from sidecar.conformance.server.wire import Json, Message

_ASSEMBLE = "context/assemble"


def _said(*texts: str) -> list[Json]:
    return [{"role": "user", "content": text} for text in texts]


def _assemble(stage: Stage, server: PlayedServer, session: str = "s") -> Message:
    stage.driver.do("assemble", "assemble", params={"sessionId": session})
    return server.request(_ASSEMBLE)


def _messages(stage: Stage) -> Json:
    result = stage.driver.result("assemble")
    return result.get("messages") if isinstance(result, dict) else None


@check("deltas", "CEP-DELTA-2", "CEP-DELTA-3", needs=("deltas",))
def edits_make_whole_lists(client: Client) -> None:
    """Edits are applied to the list before; the runtime gets whole lists, and without edits the same one."""
    with client.stage() as stage:
        server = stage.open(deltas=True)
        declared = server.hello.at("/params/initializationOptions/contextEngine/hostCapabilities", None)
        expect(isinstance(declared, list) and "assembleDelta" in declared, "assembleDelta is not declared")
        first = _assemble(stage, server)
        expect_equal(
            first.at("/params/previousResultId", None), None, "previousResultId of the first request"
        )
        server.answer(first, assembled(_said("a", "b", "c", "d"), "r1"))
        expect_equal(_messages(stage), _said("a", "b", "c", "d"), "the first list")
        second = _assemble(stage, server)
        expect_equal(second.at("/params/previousResultId"), "r1", "previousResultId of the second request")
        edits: Json = [
            {"start": 0, "deleteCount": 1, "messages": _said("A", "A2")},
            {"start": 2, "deleteCount": 1, "messages": []},
            {"start": 4, "deleteCount": 0, "messages": _said("e")},
        ]
        server.answer(second, assembled(None, "r2", edits=edits))
        expect_equal(_messages(stage), _said("A", "A2", "b", "d", "e"), "the second list")
        server.answer(_assemble(stage, server), assembled(None, "r3", edits=[]))
        expect_equal(_messages(stage), _said("A", "A2", "b", "d", "e"), "the third list")


@check("deltas", "CEP-DELTA-2", "CEP-DELTA-4", needs=("deltas",))
def whole_lists_in_place_of_edits(client: Client) -> None:
    """A whole list where edits could have come replaces the one before, and is asked against next."""
    with client.stage() as stage:
        server = stage.open(deltas=True)
        for id, texts in (("r1", ("a", "b")), ("r2", ("x",))):
            server.answer(_assemble(stage, server), assembled(_said(*texts), id))
            expect_equal(_messages(stage), _said(*texts), f"the list of {id}")
        third = _assemble(stage, server)
        expect_equal(third.at("/params/previousResultId"), "r2", "previousResultId of the third request")
        edits: Json = [{"start": 1, "deleteCount": 0, "messages": _said("y")}]
        server.answer(third, assembled(None, "r3", edits=edits))
        expect_equal(_messages(stage), _said("x", "y"), "the third list")


@check("deltas", "CEP-DELTA-2", needs=("deltas",))
def sessions_apart(client: Client) -> None:
    """Each session is asked against a result of its own."""
    with client.stage() as stage:
        server = stage.open(deltas=True)
        server.answer(_assemble(stage, server, "one"), assembled(_said("a"), "r1"))
        _messages(stage)
        other = _assemble(stage, server, "two")
        expect_equal(other.at("/params/previousResultId", None), None, "previousResultId of another session")
