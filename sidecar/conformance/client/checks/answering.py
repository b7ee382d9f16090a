"""How a client answers what the server asks."""

from __future__ import annotations

from sidecar.conformance.client.subject import Client
from sidecar.conformance.client.suite import check
from sidecar.conformance.kit import expect, expect_equal
from sidecar.conformance.server.wire import Json, Object

_COMPLETE = "runtime/complete"
_MEMORY = "memory/getContext"
_ASKED: Json = {
    "purpose": "summary",
    "messages": [{"role": "user", "content": "Summarise it."}],
    "maxTokens": 100,
}
_DECLINED: Json = {"ok": True, "compacted": False, "reason": "small"}


@check("answering", "CEP-HOST-1", "CEP-HOST-4", "CEP-BASE-12", needs=(_COMPLETE,))
def while_it_waits(client: Client) -> None:
    """A request of the server is answered by the runtime while the one that waits for it is not."""
    with client.stage() as stage:
        server = stage.open(answers={_COMPLETE: {"result": {"text": "a summary"}}})
        stage.ask("compact", "context/compact", sessionId="s")
        request = server.request("context/compact")
        answer = server.answer_to(server.ask(_COMPLETE, _ASKED))
        expect_equal(answer.at("/result/text", None), "a summary", "the text of the answer")
        server.answer(request, _DECLINED)
        stage.driver.result("compact")


@check("answering", "CEP-HOST-1", "CEP-BASE-13", needs=(_COMPLETE,))
def two_at_once(client: Client) -> None:
    """Two requests of the server are with the runtime at once, and an answer is read meanwhile."""
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
def what_a_source_remembers(client: Client) -> None:
    """`memory/getContext` is answered with the fragments of the runtime."""
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
def what_it_does_not_know(client: Client) -> None:
    """An unknown request of the server gets -32601, and so does one that was not declared."""
    with client.stage() as stage:
        server = stage.open()
        for method in ("future/thing", "runtime/compact"):
            answer = server.answer_to(server.ask(method, {"sessionId": "s"}))
            expect_equal(answer.code, -32601, f"code of the answer to {method}")


@check("answering", "CEP-BASE-3", "CEP-HOST-5", needs=(_COMPLETE,))
def where_the_runtime_fails(client: Client) -> None:
    """A failure of the runtime becomes an error, and the connection goes on."""
    with client.stage() as stage:
        server = stage.open(answers={_COMPLETE: {"error": "the model is overloaded"}})
        answer = server.answer_to(server.ask(_COMPLETE, _ASKED))
        expect(isinstance(answer.code, int), f"no error: {answer.raw[:200]!r}")
        stage.ask("next", "engine/list")
        server.answer(server.request("engine/list"), {"engines": []})
        stage.driver.result("next")


@check("answering", "CEP-HOST-2", "CEP-CANCEL-1", level="should", needs=(_COMPLETE,))
def what_the_server_takes_back(client: Client) -> None:
    """A request that the server cancels is given up, and answered with -32800."""
    with client.stage() as stage:
        server = stage.open(answers={_COMPLETE: {"never": True}})
        id = server.ask(_COMPLETE, _ASKED)
        server.tell("$/cancelRequest", {"id": id})
        expect_equal(server.answer_to(id).code, -32800, "code of the answer")
