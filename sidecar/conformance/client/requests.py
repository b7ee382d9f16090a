"""Requests: those of the server, those of the client, and those lost when a server ends."""

from __future__ import annotations

from sidecar.conformance.client.driver import Client, Stage, check, failed_with
from sidecar.conformance.client.played_server import PlayedServer, assembled
from sidecar.conformance.kit import expect, expect_equal
from sidecar.conformance.wire import Json, Message, Object

_COMPLETE = "runtime/complete"
_MEMORY = "memory/getContext"
_ASKED: Json = {
    "purpose": "summary",
    "messages": [{"role": "user", "content": "Summarise it."}],
    "maxTokens": 100,
}
_DECLINED: Json = {"ok": True, "compacted": False, "reason": "small"}


@check("answering", "CEP-HOST-1", "CEP-HOST-4", "CEP-BASE-12", needs=(_COMPLETE,))
def requests_while_the_client_waits(client: Client) -> None:
    """The runtime answers a request of the server while a request of its own is still open."""
    with client.stage() as stage:
        server = stage.open(answers={_COMPLETE: {"result": {"text": "a summary"}}})
        stage.ask("compact", "context/compact", sessionId="s")
        request = server.request("context/compact")
        answer = server.answer_to(server.ask(_COMPLETE, _ASKED))
        expect_equal(answer.at("/result/text", None), "a summary", "the text of the answer")
        server.answer(request, _DECLINED)
        stage.driver.result("compact")


@check("answering", "CEP-HOST-1", "CEP-BASE-13", needs=(_COMPLETE,))
def concurrent_requests(client: Client) -> None:
    """The runtime handles two requests of the server at once, and the client reads answers meanwhile."""
    with client.stage() as stage:
        server = stage.open(answers={_COMPLETE: {"result": {"text": "a summary"}, "together": 2}})
        stage.ask("next", "engine/list")
        request = server.request("engine/list")
        first = server.ask(_COMPLETE, _ASKED)
        server.answer(request, {"engines": []})
        stage.driver.result("next")
        second = server.ask(_COMPLETE, _ASKED)
        for id in (second, first):
            expect_equal(server.answer_to(id).at("/result/text", None), "a summary", "the text of an answer")


@check("answering", "CEP-HOST-8", "CEP-MEM-3", needs=(_MEMORY,))
def memory_fragments(client: Client) -> None:
    """`memory/getContext` is answered with the runtime's fragments."""
    fragment: Object = {"content": "Prefers short answers.", "priority": 80, "tokens": 5, "synthesize": False}
    asked: Json = {"name": "notes", "agentId": "main", "injectionPoint": "per-message", "sessionId": "s"}
    with client.stage() as stage:
        server = stage.open(answers={_MEMORY: {"result": {"fragments": [fragment]}}})
        answer = server.answer_to(server.ask(_MEMORY, asked))
        for member in ("content", "priority", "tokens", "synthesize"):
            expect_equal(
                answer.at(f"/result/fragments/0/{member}", None),
                fragment[member],
                f"{member} of the fragment",
            )


@check("answering", "CEP-BASE-12")
def unknown_requests(client: Client) -> None:
    """An unknown request of the server gets -32601, and so does an undeclared one."""
    with client.stage() as stage:
        server = stage.open()
        for method in ("future/thing", "runtime/compact"):
            answer = server.answer_to(server.ask(method, {"sessionId": "s"}))
            expect_equal(answer.code, -32601, f"code of the answer to {method}")


@check("answering", "CEP-BASE-3", "CEP-HOST-5", needs=(_COMPLETE,))
def runtime_failures(client: Client) -> None:
    """If the runtime fails, the server gets an error, and the connection stays usable."""
    with client.stage() as stage:
        server = stage.open(answers={_COMPLETE: {"error": "the model is overloaded"}})
        answer = server.answer_to(server.ask(_COMPLETE, _ASKED))
        expect(isinstance(answer.code, int), f"the answer is not an error: {answer.raw[:200]!r}")
        stage.expect_alive(server)


@check("answering", "CEP-HOST-2", "CEP-CANCEL-1", level="should", needs=(_COMPLETE,))
def requests_that_the_server_cancels(client: Client) -> None:
    """A request that the server cancels is abandoned and answered with -32800."""
    with client.stage() as stage:
        server = stage.open(answers={_COMPLETE: {"never": True}})
        id = server.ask(_COMPLETE, _ASKED)
        server.tell("$/cancelRequest", {"id": id})
        expect_equal(server.answer_to(id).code, -32800, "code of the answer")


_GET = "session/get"
_INGEST = "context/ingest"
_MESSAGE: Json = {"role": "user", "content": "x"}
_ERRORS: tuple[tuple[int, dict[str, Json]], ...] = (
    (1002, {"required": 900, "tokenBudget": 500}),
    (1003, {"sessionId": "s"}),
    (1005, {"engineId": "e", "method": "assemble", "message": "It broke."}),
    (1007, {"retryable": True}),
    (-32602, {"path": "/sessionId"}),
    (-32603, {}),
    (4242, {}),
)


@check("waiting", "CEP-BASE-9", "CEP-VER-2")
def errors_reach_the_runtime(client: Client) -> None:
    """The runtime gets the code, message and data of an error, even if the code is unknown."""
    with client.stage() as stage:
        server = stage.open()
        for code, data in _ERRORS:
            stage.ask(str(code), _GET, sessionId="s")
            server.refuse(server.request(_GET), code, f"What happened is {code}.", **data)
            failure = stage.driver.failure(str(code))
            expect_equal(failed_with(failure), f"answer {code}", "the failure")
            expect(f"What happened is {code}." in str(failure.get("message")), f"the message: {failure}")
            received = failure.get("data")
            expect(
                isinstance(received, dict) and data.items() <= received.items(),
                f"data of {code} is {received}",
            )
            expect(isinstance(received, dict) and "hint" in received, f"the data of {code} lacks a hint")


@check("waiting", "CEP-CANCEL-1", needs=("cancelling",))
def cancelling_requests(client: Client) -> None:
    """If the runtime cancels a request, `$/cancelRequest` carries its id, and the answer -32800 ends it."""
    with client.stage() as stage:
        server = stage.open()
        request = _cancelled(stage, server)
        server.refuse(request, -32800, "It was cancelled.")
        expect_equal(stage.driver.failure("slow").get("kind"), "cancelled", "kind of the failure")
        stage.expect_alive(server)


@check("waiting", "CEP-CANCEL-2", needs=("cancelling",))
def cancelling_too_late(client: Client) -> None:
    """A result that arrives after `$/cancelRequest` does no harm."""
    with client.stage() as stage:
        server = stage.open()
        request = _cancelled(stage, server)
        server.answer(request, {"engines": []})
        stage.driver.report("slow")
        stage.expect_alive(server)


@check("waiting", "CEP-CANCEL-1", needs=("timeouts",))
def slow_servers(client: Client) -> None:
    """A request that times out is cancelled and reported; the connection stays usable."""
    with client.stage() as stage:
        server = stage.open()
        stage.driver.do("request", "slow", method="engine/list", params={}, timeoutMs=300)
        request = server.request("engine/list")
        expect_equal(
            server.notification("$/cancelRequest").at("/params/id"), request.id, "id that is cancelled"
        )
        server.refuse(request, -32800, "It was cancelled.")
        expect_equal(stage.driver.failure("slow").get("kind"), "timeout", "kind of the failure")
        stage.expect_alive(server)


@check("waiting", "CEP-LIFE-12", "CEP-ID-3")
def crashes(client: Client) -> None:
    """If the server dies during an ingest, the runtime gets an error; the client does not send it again."""
    with client.stage() as stage:
        server = stage.open()
        stage.ask("lost", _INGEST, sessionId="s", message=_MESSAGE)
        server.request(_INGEST)
        server.exit(1)
        expect_equal(stage.driver.failure("lost").get("kind"), "lost", "kind of the failure")
        again = stage.another_server()
        if again is not None:
            again.welcome()
            stage.driver.do("close", "close")
            expect_equal(
                again.next().method in ("initialized", "shutdown"), True, "whether it sends nothing to store"
            )


@check("waiting", "CEP-LIFE-13")
def outputs_that_end(client: Client) -> None:
    """If the server closes its output, open requests fail, and the process is not left running."""
    with client.stage() as stage:
        server = stage.open()
        stage.ask("lost", _INGEST, sessionId="s", message=_MESSAGE)
        server.request(_INGEST)
        server.close_output()
        expect_equal(stage.driver.failure("lost").get("kind"), "lost", "kind of the failure")
        stage.driver.do("close", "close")
        stage.driver.report("close")
        expect(server.gone(5), "the process still runs")


@check("waiting", "CEP-FRAME-6", level="should")
def invalid_frames(client: Client) -> None:
    """If a frame has no length, open requests fail, because nothing after it can be read."""
    with client.stage() as stage:
        server = stage.open()
        stage.ask("lost", _INGEST, sessionId="s", message=_MESSAGE)
        server.request(_INGEST)
        server.write(b"A stray print.\r\n\r\n")
        expect_equal(stage.driver.failure("lost").get("kind"), "lost", "kind of the failure")


@check("waiting", "CEP-FRAME-1")
def standard_error_is_read(client: Client) -> None:
    """A server that writes a megabyte to standard error does not block."""
    with client.stage() as stage:
        server = stage.open()
        server.complain(b"It is fine, only talkative.\n" * 40_000)
        stage.expect_alive(server)


def _cancelled(stage: Stage, server: PlayedServer) -> Message:
    stage.ask("slow", "engine/list")
    request = server.request("engine/list")
    stage.driver.do("cancel", "cancel", target="slow")
    expect_equal(server.notification("$/cancelRequest").at("/params/id"), request.id, "id that is cancelled")
    return request


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
    """Edits apply to the previous list; the runtime gets whole lists, and the same one without edits."""
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
    """A whole list replaces the previous one and becomes the base of the next edits."""
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
    """Each session has its own `previousResultId`."""
    with client.stage() as stage:
        server = stage.open(deltas=True)
        server.answer(_assemble(stage, server, "one"), assembled(_said("a"), "r1"))
        _messages(stage)
        other = _assemble(stage, server, "two")
        expect_equal(other.at("/params/previousResultId", None), None, "previousResultId of another session")


_REGISTER = "memory/register"


def _dies(stage: Stage, server: PlayedServer) -> None:
    """End the server during an ingest, and check that the runtime gets an error."""
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
    """A server started after a crash gets the runtime's new requests, and no message a second time."""
    with client.stage() as stage:
        _dies(stage, stage.open())
        server = _opened_again(stage)
        stage.driver.result("again")
        stage.expect_alive(server)


@check("restarting", "CEP-DELTA-1", "CEP-DELTA-2", needs=("deltas",))
def edits_start_over(client: Client) -> None:
    """A result of an earlier server is not the base of edits of its successor."""
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
    """Memory sources last as long as a connection, so the client registers them with each new server."""
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
        expect_equal(request.at("/params/name", None), "notes", "the source registered with the new server")
        server.answer(request, {"registered": True})
        stage.driver.result("again")
