"""Sessions that are made for subagents."""

from __future__ import annotations

from sidecar.conformance.expecting import expect_equal
from sidecar.conformance.server.conversation import (
    expect_unknown,
    ingest,
    text_of,
    user,
)
from sidecar.conformance.server.subject import Server
from sidecar.conformance.server.suite import check
from sidecar.conformance.server.wire import Object


@check("subagents", "CEP-SUB-3", needs=("subagent/prepareSpawn",))
def forks_need_a_parent(server: Server) -> None:
    """A fork of an unknown parent gets 1003; an isolated child needs none."""
    host = server.shared()
    params: Object = {"parentSessionKey": server.name("none"), "childSessionKey": server.name("child")}
    forked = host.request("subagent/prepareSpawn", {**params, "contextMode": "fork"})
    expect_equal(forked.code, 1003, "code of a fork")
    host.result("subagent/prepareSpawn", {**params, "contextMode": "isolated"})


@check("subagents", "CEP-SUB-7", "CEP-DUR-5", needs=("subagent/ended", "context/ingest"))
def the_end_of_a_child(server: Server) -> None:
    """`ended` is idempotent, also for unknown children; `deleted` erases and the others keep."""
    host, kept, erased = server.shared(), server.name(), server.name()
    for session, reason in ((kept, "completed"), (erased, "deleted")):
        ingest(host, session, user("x"), sessionKey=f"key-{session}")
        for _ in range(2):
            host.result("subagent/ended", {"childSessionKey": f"key-{session}", "reason": reason})
    host.result("subagent/ended", {"childSessionKey": server.name("never"), "reason": "released"})
    host.result("session/get", {"sessionId": kept})
    expect_unknown(host, erased)


@check("subagents", "CEP-SUB-11", needs=("subagent/prepareSpawn", "context/ingest"))
def children_that_are_there_already(server: Server) -> None:
    """A `childSessionId` of a session that has messages gets -32602."""
    host, taken, key = server.shared(), server.name(), server.name("key")
    ingest(host, taken, user("x"))
    params: Object = {"parentSessionKey": key, "childSessionKey": f"{key}-child", "childSessionId": taken}
    answer = host.request("subagent/prepareSpawn", {**params, "contextMode": "isolated"})
    expect_equal(answer.code, -32602, "code of the answer")


@check("subagents", "CEP-SUB-12", needs=("subagent/prepareSpawn", "context/ingest", "context/assemble"))
def spawns_in_the_order_received(server: Server) -> None:
    """What is sent in one go takes effect in order: the parent's message, the fork, the child's request."""
    host, parent, child, key = server.shared(), server.name(), server.name("child"), server.name("key")
    ingest(host, parent, user("first"), sessionKey=key)
    host.begin("context/ingest", {"sessionId": parent, "message": user("second")})
    params: Object = {"parentSessionKey": key, "childSessionKey": f"{key}-child", "childSessionId": child}
    host.begin("subagent/prepareSpawn", {**params, "contextMode": "fork"})
    answer = host.request("context/assemble", {"sessionId": child})
    sent = [text_of(message) for message in answer.objects("/messages")]
    expect_equal(sent, ["first", "second"], "what the child begins with")
