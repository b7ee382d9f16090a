"""What memory sources contribute."""

from __future__ import annotations

from sidecar.conformance.expecting import expect, expect_equal
from sidecar.conformance.server.host import Host
from sidecar.conformance.server.subject import Server
from sidecar.conformance.server.suite import check
from sidecar.conformance.server.wire import Json, Object

_COMPILE = "memory/compile"


@check("memory", "CEP-MEM-1", needs=("memory/register",))
def sources_need_the_capability(server: Server) -> None:
    """A host that does not declare `memory/getContext` gets 1004."""
    params: Json = {"name": "notes", "injectionPoints": ["per-message"]}
    expect_equal(server.shared().request("memory/register", params).code, 1004, "code of the answer")


@check("memory", "CEP-MEM-3", "CEP-MEM-5", "CEP-MEM-6", "CEP-MEM-17", "CEP-MEM-18", needs=(_COMPILE,))
def compiling(server: Server) -> None:
    """Fragments are taken by priority, whole or not at all, and the host is told before the answer."""
    fragments: list[Json] = [
        {"id": "low", "content": "low priority", "tokens": 30, "priority": 1},
        {"id": "big", "content": "too big", "tokens": 500, "priority": 99},
        {"id": "high", "content": "high priority", "tokens": 40, "priority": 90},
    ]
    with _remembering(server, {"result": {"fragments": fragments}}) as host:
        answer = host.result(
            _COMPILE, {"agentId": "anna", "injectionPoint": "per-message", "tokenBudget": 100}
        )
        taken = {str(f["content"]): f["included"] for f in answer.objects("/fragments")}
        expect_equal(taken, {"too big": False, "high priority": True, "low priority": True}, "included")
        content = answer.text("/finalContent")
        expect(content.index("high priority") < content.index("low priority"), "not in order of priority")
        expect("too big" not in content, "a fragment that does not fit is in the content")
        told = host.notifications
        expect(
            any(m.method == "memory/contextInjected" for m in told),
            "memory/contextInjected did not come first",
        )


@check("memory", "CEP-MEM-7", "CEP-MEM-19", needs=(_COMPILE,))
def tokens_that_lie(server: Server) -> None:
    """Tokens that are missing, not positive, or too few by far are replaced by an estimate."""
    fragments: list[Json] = [
        {"id": str(n), "content": f"part {n} " + "word " * 400, "tokens": tokens, "priority": 50}
        for n, tokens in enumerate((0, -5, None, 1))
    ]
    with _remembering(server, {"result": {"fragments": fragments}}) as host:
        answer = host.result(_COMPILE, {"agentId": "a", "injectionPoint": "per-message", "tokenBudget": 200})
        expect(
            not any(f["included"] for f in answer.objects("/fragments")), "400 words fitted into 200 tokens"
        )


@check("memory", "CEP-MEM-3", needs=(_COMPILE,))
def sources_that_fail(server: Server) -> None:
    """A source that fails contributes nothing, and that is no error."""
    with _remembering(server, {"error": {"code": -32000, "message": "down"}}) as host:
        answer = host.result(_COMPILE, {"agentId": "a", "injectionPoint": "per-message"})
        expect_equal(answer.objects("/fragments"), [], "fragments")


@check("memory", "CEP-MEM-16", needs=(_COMPILE,))
def sources_are_asked_for_the_agent(server: Server) -> None:
    """A source is asked under its name, for the agent of the request, at the point of the request."""
    with _remembering(server, {"result": {"fragments": []}}) as host:
        host.result(_COMPILE, {"agentId": "anna", "injectionPoint": "per-message", "prompt": "who?"})
        asked = host.wait_for_request("memory/getContext")
        expect_equal(asked.at("/params/agentId"), "anna", "agentId")
        expect_equal(asked.at("/params/name"), "notes", "name")
        expect_equal(asked.at("/params/injectionPoint"), "per-message", "injectionPoint")


def _remembering(server: Server, answer: Object) -> Host:
    """A host with one memory source that always answers so."""
    host = server.connect(hostCapabilities=["memory/getContext"])
    host.answers["memory/getContext"] = lambda _: answer
    host.result("memory/register", {"name": "notes", "injectionPoints": ["per-message"]})
    return host
