"""What the server wrote over the whole run: nothing unasked, nothing against the schema."""

from __future__ import annotations

from sidecar.conformance.kit import expect
from sidecar.conformance.server.conversation import assemble, ingest, user
from sidecar.conformance.server.subject import Server, check
from sidecar.conformance.server.wire import Json

_DEBUG = 5
"""The type of `window/logMessage` for debugging."""


@check("keeping quiet", "CEP-LIFE-14", "CEP-FRAME-1", needs=("context/ingest", "context/assemble"))
def bodies_are_not_logged(server: Server) -> None:
    """Neither `window/logMessage` above debug level nor standard error has bodies of messages."""
    with server.connect() as host:
        host.notify("$/setTrace", {"value": "verbose"})
        session = server.name()
        ingest(host, session, user("chrysanthemum"))
        assemble(host, session)
        host.request("context/assemble", {"sessionId": session, "tokenBudget": 1})
        told = [m for m in host.notifications if m.method == "window/logMessage"]
        loud = [m.raw for m in told if m.at("/params/type", None) != _DEBUG]
        expect(not any(b"chrysanthemum" in raw for raw in loud), "a body is in window/logMessage")
        expect(b"chrysanthemum" not in host.process.log(), "a body is on standard error")


@check("keeping quiet", "CEP-SEC-6")
def passwords_are_not_told(server: Server) -> None:
    """A password in the URL of a store that cannot be reached is neither in the error nor in the log."""
    url = "postgresql://someone:hollyhock@127.0.0.1:1/none"
    config: Json = {"store": {"kind": "postgres", "url": url}}
    with server.start() as host:
        answer = host.initialize(server.params(config=config))
        expect("error" in answer.body, "initialize succeeded")
        expect(b"hollyhock" not in answer.raw, "the password is in the error")
        expect(b"hollyhock" not in host.process.log(), "the password is on standard error")


_SHOWN = 5


@check("schema", "CEP-BASE-1", "CEP-BASE-3", "CEP-BASE-7", "CEP-BASE-8", "CEP-BASE-9")
def every_message_keeps_the_schema(server: Server) -> None:
    """All messages that the server sent during this run are of the types that the method table names."""
    more = len(server.problems) - _SHOWN
    rest = f"; and {more} more" if more > 0 else ""
    expect(not server.problems, "; ".join(server.problems[:_SHOWN]) + rest)
