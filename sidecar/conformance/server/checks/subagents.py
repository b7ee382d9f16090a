"""Sessions that are made for subagents."""

from __future__ import annotations

from sidecar.conformance.expecting import expect_equal
from sidecar.conformance.server.conversation import (
    expect_unknown,
    ingest,
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
