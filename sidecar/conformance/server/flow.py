"""Cancellation, ordering, flow control, and what must not be logged."""

from __future__ import annotations

from sidecar.conformance.kit import expect, expect_equal
from sidecar.conformance.server.conversation import assemble, history, ingest, text_of, user
from sidecar.conformance.server.host import Host
from sidecar.conformance.server.subject import Server, check
from sidecar.conformance.wire import Json

_COMPACT = "runtime/compact"


def _held(server: Server, **limits: int) -> Host:
    """A connection whose host leaves requests `runtime/compact` open."""
    host = server.connect(hostCapabilities=[_COMPACT], engine="legacy", config={"limits": limits})
    host.answers[_COMPACT] = lambda _: {}
    return host


@check("flow", "CEP-CANCEL-1", "CEP-CANCEL-2", "CEP-CANCEL-4", needs=("context/compact",))
def cancelling_a_request_that_waits_for_the_host(server: Server) -> None:
    """A cancelled request gets -32800, and the server cancels the request to the host that it waits for."""
    with _held(server) as host:
        host.begin("context/compact", {"sessionId": "any"}, id="slow")
        forwarded = host.wait_for_request(_COMPACT)
        host.cancel("slow")
        expect_equal(host.answer("slow").code, -32800, "code of the answer to the cancelled request")
        cancellation = host.wait_for_notification("$/cancelRequest")
        expect_equal(cancellation.at("/params/id"), forwarded.id, "id that the server cancels")
        host.alive()


@check("flow", "CEP-CANCEL-5", "CEP-CANCEL-6")
def cancelling_nothing(server: Server) -> None:
    """Cancelling `initialize`, an unknown id or an answered one has no effect."""
    with server.start() as host:
        host.begin("initialize", server.params(), id="hello")
        host.cancel("hello")
        host.answer("hello").result()
        host.cancel("hello")
        host.cancel(987654)
        host.notify("$/cancelRequest", {})
        host.alive()


@check("flow", "CEP-CANCEL-2", needs=("context/ingest", "session/export"))
def cancelled_requests_have_no_effect(server: Server) -> None:
    """If requests are cancelled right away, those with a result are stored and those with -32800 are not."""
    host, session = server.shared(), server.name()
    ingest(host, session, user("first"))
    ids: list[int | str] = []
    for number in range(60):
        ids.append(host.begin("context/ingest", {"sessionId": session, "message": user(f"text {number}")}))
        if number % 2:
            host.cancel(ids[-1])
    expected: list[str] = ["first"]
    for number, id in enumerate(ids):
        answer = host.answer(id)
        expect(answer.code in (None, -32800), f"code {answer.code}")
        if answer.code is None:
            expected.append(f"text {number}")
    expect_equal([text_of(m) for m in history(host, session)], expected, "what is stored")


@check("flow", "CEP-CANCEL-8", needs=("context/commitTurn", "session/export"))
def a_cancelled_commit_keeps_its_key(server: Server) -> None:
    """A cancelled commit can be sent again with the same key, and is stored once."""
    host, session = server.shared(), server.name()
    params: Json = {"sessionId": session, "advancementKey": "k", "messages": [user("once")]}
    id = host.begin("context/commitTurn", params)
    host.cancel(id)
    first = host.answer(id)
    expect(first.code in (None, -32800), f"code {first.code}")
    second = host.result("context/commitTurn", params)
    expect_equal(second.result("/status"), "committed" if first.code else "duplicate", "status of the second")
    expect_equal(len(history(host, session)), 1, "number of stored messages")


@check("flow", "CEP-ORDER-1", needs=("context/ingest", "context/assemble"))
def effects_in_the_order_received(server: Server) -> None:
    """Requests of one session take effect in order, however many are in flight."""
    host, session = server.shared(), server.name()
    ids: list[tuple[int, int | str]] = []
    for number in range(100):
        host.begin("context/ingest", {"sessionId": session, "message": user(f"number {number}")})
        ids.append((number, host.begin("context/assemble", {"sessionId": session})))
    for number, id in ids:
        texts = [text_of(m) for m in host.answer(id).objects("/messages")]
        wanted = f"number {number}"
        expect(texts and texts[-1] == wanted, f"the answer after {wanted!r} ends with {texts[-1:]}")


@check("flow", "CEP-ORDER-2", "CEP-HOST-1", needs=("context/compact",))
def sessions_do_not_wait_for_each_other(server: Server) -> None:
    """A request that waits for the host does not block another session."""
    with _held(server) as host:
        host.begin("context/compact", {"sessionId": "slow"}, id="slow")
        forwarded = host.wait_for_request(_COMPACT)
        host.request("context/preflight", {"sessionId": "other", "tokenBudget": 1000})
        host.write(
            {
                "jsonrpc": "2.0",
                "id": forwarded.id,
                "result": {"ok": True, "compacted": False, "reason": "small"},
            }
        )
        host.answer("slow").result()


@check("flow", "CEP-ORDER-5", needs=("context/assemble", "context/ingestBatch"))
def assemble_is_repeatable(server: Server) -> None:
    """Repeating an `assemble` yields the same messages, epoch and additions, and stores nothing."""
    host, session = server.shared(), server.name()
    messages: list[Json] = [user("one"), {"role": "assistant", "content": "two"}, user("three")]
    host.result("context/ingestBatch", {"sessionId": session, "messages": messages})
    first, second = assemble(host, session), assemble(host, session)
    for member in ("messages", "contextEpoch", "systemPromptAddition", "userMessageAppend"):
        expect_equal(second.at(f"/result/{member}", None), first.at(f"/result/{member}", None), member)
    expect_equal(len(history(host, session)), 3, "number of stored messages")


@check("flow", "CEP-FLOW-1", "CEP-FLOW-2", needs=("context/compact",))
def answers_are_read_however_many_requests_wait(server: Server) -> None:
    """The server reads answers of the host even while more than `maxInFlight` requests wait."""
    with _held(server, maxInFlight=4) as host:
        for number in range(12):
            host.begin("context/compact", {"sessionId": f"s{number}"}, id=f"c{number}")
        answer: Json = {"ok": True, "compacted": False, "reason": "small"}
        for _ in range(12):
            forwarded = host.wait_for_request(_COMPACT)
            host.write({"jsonrpc": "2.0", "id": forwarded.id, "result": answer})
        for number in range(12):
            host.answer(f"c{number}").result()


@check("flow", "CEP-FLOW-3", needs=("context/compact", "context/ingest", "session/get"))
def busy(server: Server) -> None:
    """A request over `limits.maxParkedBytes` gets 1007 at once, is retryable and has no effect."""
    with _held(server, maxInFlight=1, maxParkedBytes=1000) as host:
        host.begin("context/compact", {"sessionId": "slow"}, id="slow")
        forwarded = host.wait_for_request(_COMPACT)
        host.begin("session/get", {"sessionId": "x", "note": "x" * 2000}, id="refused")
        answer = host.answer("refused")
        expect_equal(answer.code, 1007, "code of the answer")
        expect_equal(answer.at("/error/data/retryable"), True, "data.retryable")
        host.write({"jsonrpc": "2.0", "id": forwarded.id, "error": {"code": -32603, "message": "no"}})
        host.answer("slow").result()


@check("flow", "CEP-FLOW-7", needs=("context/compact",))
def hosts_that_do_not_answer(server: Server) -> None:
    """The server cancels a request to the host after `limits.hostRequestTimeoutMs` and carries on."""
    with _held(server, hostRequestTimeoutMs=300) as host:
        host.begin("context/compact", {"sessionId": "slow"}, id="slow")
        forwarded = host.wait_for_request(_COMPACT)
        result = host.answer("slow")
        expect_equal(result.result("/ok"), False, "ok")
        cancellation = host.wait_for_notification("$/cancelRequest")
        expect_equal(cancellation.at("/params/id"), forwarded.id, "id that the server cancels")
        host.write({"jsonrpc": "2.0", "id": forwarded.id, "result": {"ok": True, "compacted": True}})
        host.alive()


@check("flow", "CEP-BASE-13", "CEP-BASE-11", needs=("session/list",))
def every_request_is_answered_once(server: Server) -> None:
    """Each of 500 requests sent at once gets exactly one answer."""
    with server.connect() as host:
        ids = [host.begin("session/list", {"limit": 1}) for _ in range(500)]
        for id in ids:
            host.answer(id).result()
        host.alive()
        expect(not host.early(), "there are more answers than requests")


@check("flow", "CEP-CANCEL-3", needs=("context/compact", "context/assemble"))
def cancelling_a_queued_request(server: Server) -> None:
    """A cancelled request gets -32800 while it is still queued behind another."""
    with _held(server, maxInFlight=1) as host:
        host.begin("context/compact", {"sessionId": "slow"}, id="slow")
        forwarded = host.wait_for_request(_COMPACT)
        host.begin("context/assemble", {"sessionId": "other", "messages": [user("x")]}, id="queued")
        host.cancel("queued")
        expect_equal(host.answer("queued").code, -32800, "code of the answer to the cancelled request")
        host.write({"jsonrpc": "2.0", "id": forwarded.id, "error": {"code": -32603, "message": "no"}})
        host.answer("slow").result()


_DEBUG = 5
"""The debug level of `window/logMessage`."""


@check("logging", "CEP-LIFE-14", "CEP-FRAME-1", needs=("context/ingest", "context/assemble"))
def bodies_are_not_logged(server: Server) -> None:
    """Message bodies appear neither on standard error nor in `window/logMessage` above debug level."""
    with server.connect() as host:
        host.notify("$/setTrace", {"value": "verbose"})
        session = server.name()
        ingest(host, session, user("chrysanthemum"))
        assemble(host, session)
        host.request("context/assemble", {"sessionId": session, "tokenBudget": 1})
        logged = [m for m in host.notifications if m.method == "window/logMessage"]
        loud = [m.raw for m in logged if m.at("/params/type", None) != _DEBUG]
        expect(not any(b"chrysanthemum" in raw for raw in loud), "window/logMessage contains a message body")
        expect(b"chrysanthemum" not in host.process.log(), "standard error contains a message body")


@check("logging", "CEP-SEC-6")
def passwords_are_not_disclosed(server: Server) -> None:
    """If a store cannot be reached, neither the error nor the log contains the password of its URL."""
    url = "postgresql://someone:hollyhock@127.0.0.1:1/none"
    config: Json = {"store": {"kind": "postgres", "url": url}}
    with server.start() as host:
        answer = host.initialize(server.params(config=config))
        expect("error" in answer.body, "initialize succeeded")
        expect(b"hollyhock" not in answer.raw, "the error contains the password")
        expect(b"hollyhock" not in host.process.log(), "standard error contains the password")
