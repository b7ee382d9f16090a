"""From the start of a connection to the end of its process."""

from __future__ import annotations

import os
import subprocess
import sys

from sidecar.conformance.expecting import expect, expect_equal
from sidecar.conformance.server.conversation import user
from sidecar.conformance.server.subject import Server
from sidecar.conformance.server.suite import check
from sidecar.conformance.server.wire import Message, frame, request


@check("lifecycle", "CEP-LIFE-1")
def requests_before_initialize(server: Server) -> None:
    """A request before `initialize` gets -32002, and a notification is ignored."""
    with server.start() as host:
        host.notify("initialized")
        expect_equal(host.request("session/list").code, -32002, "code of the answer")
        host.initialize(server.params()).result()


@check("lifecycle", "CEP-LIFE-2")
def initialize_is_a_barrier(server: Server) -> None:
    """What is sent behind `initialize` before its answer sees its outcome."""
    with server.start() as host:
        hello = request("hello", "initialize", server.params())
        host.process.send(frame(hello) + frame(request("behind", "conformance/unknownMethod", {})))
        host.answer("hello").result()
        expect_equal(host.answer("behind").code, -32601, "code of the answer to the request behind")


@check("lifecycle", "CEP-LIFE-2", "CEP-LIFE-3")
def after_a_failed_initialize(server: Server) -> None:
    """Behind a failed `initialize` requests get -32002, and another `initialize` may succeed."""
    with server.start() as host:
        wrong = request("wrong", "initialize", server.params(protocolVersion="0.0-none"))
        host.process.send(frame(wrong) + frame(request("behind", "session/list", {})))
        expect_equal(host.answer("wrong").code, -32602, "code of the answer to initialize")
        expect_equal(host.answer("behind").code, -32002, "code of the answer to the request behind")
        host.initialize(server.params()).result()
        host.alive()


@check("lifecycle", "CEP-LIFE-3")
def second_initialize(server: Server) -> None:
    """A second `initialize` after a successful one gets -32600, and the connection goes on."""
    host = server.shared()
    expect_equal(host.request("initialize", server.params()).code, -32600, "code of the answer")
    host.alive()


@check("lifecycle", "CEP-LIFE-4")
def initialized_is_not_waited_for(server: Server) -> None:
    """Requests are served without the notification `initialized`."""
    with server.start() as host:
        host.request("initialize", server.params()).result()
        expect_equal(host.request("conformance/unknownMethod").code, -32601, "code of the answer")


@check("lifecycle", "CEP-LIFE-5", "CEP-INIT-1", level="should")
def bare_initialize(server: Server) -> None:
    """`initialize` succeeds with empty params: every member has a default."""
    with server.start() as host:
        host.request("initialize", {}).result()


@check("lifecycle", "CEP-LIFE-7", "CEP-LIFE-8", "CEP-LIFE-9")
def shutdown_then_exit(server: Server) -> None:
    """`shutdown` is answered with null, requests behind it get -32600, and `exit` ends with status 0."""
    with server.connect() as host:
        answer = host.request("shutdown")
        expect_equal(answer.result(), None, "result of shutdown")
        expect_equal(host.request("session/list").code, -32600, "code of the answer after shutdown")
        host.notify("exit")
        host.rest()
        expect_equal(host.process.exit_status(), 0, "exit status")


@check("lifecycle", "CEP-LIFE-9")
def exit_alone(server: Server) -> None:
    """`exit` without `shutdown` ends with status 1."""
    with server.connect() as host:
        host.notify("exit")
        expect_equal(host.process.exit_status(), 1, "exit status")


@check("lifecycle", "CEP-LIFE-7", needs=("context/ingest",))
def shutdown_comes_last(server: Server) -> None:
    """Requests before `shutdown` are answered before it."""
    with server.connect() as host:
        session = server.name()
        for number in range(20):
            host.begin(
                "context/ingest", {"sessionId": session, "message": user(str(number))}, id=f"i{number}"
            )
        host.begin("shutdown", id="last")
        order = [message.id for message in host.answers_in_order(21)]
        expect_equal(order[-1], "last", "id of the last answer")


@check("lifecycle", "CEP-LIFE-10", "CEP-BASE-11", needs=("context/ingest",))
def end_of_input_between_messages(server: Server) -> None:
    """What was received completely is answered when the input ends, with status 0."""
    with server.connect() as host:
        session = server.name()
        for number in range(20):
            host.begin(
                "context/ingest", {"sessionId": session, "message": user(str(number))}, id=f"i{number}"
            )
        host.process.end_input()
        answered = sorted(str(message.id) for message in host.rest() if message.is_response)
        expect_equal(answered, sorted(f"i{number}" for number in range(20)), "ids of the answers")
        expect_equal(host.process.exit_status(), 0, "exit status")


@check("lifecycle", "CEP-LIFE-10")
def end_of_input_inside_a_message(server: Server) -> None:
    """Where the input ends inside a message, what came before is answered, with status 1."""
    with server.connect() as host:
        host.begin("conformance/unknownMethod", id="whole")
        host.process.send(frame(request("half", "conformance/unknownMethod", {}))[:-5])
        host.process.end_input()
        expect_equal([m.id for m in host.rest() if m.is_response], ["whole"], "ids of the answers")
        expect_equal(host.process.exit_status(), 1, "exit status")


@check("lifecycle", "CEP-LIFE-10", needs=("context/ingest",))
def sigterm(server: Server) -> None:
    """On SIGTERM the process ends with status 0 after answering what it has received."""
    with server.connect() as host:
        host.result("context/ingest", {"sessionId": server.name(), "message": user("x")})
        host.process.terminate()
        host.rest()
        expect_equal(host.process.exit_status(), 0, "exit status")


@check("lifecycle", "CEP-LIFE-11")
def death_of_the_host(server: Server) -> None:
    """Where the process named by `processId` dies, the server ends with status 1, its input still open."""
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        with server.start() as host:
            host.initialize({**server.params(), "processId": parent.pid}).result()
            parent.kill()
            parent.wait()
            expect_equal(host.process.exit_status(), 1, "exit status")
    finally:
        parent.kill()
        parent.wait()
        if parent.stdin is not None:
            parent.stdin.close()


@check("lifecycle", "CEP-LIFE-5")
def own_process_id(server: Server) -> None:
    """A `processId` that lives changes nothing."""
    with server.start() as host:
        host.initialize({**server.params(), "processId": os.getpid()}).result()
        host.alive()


@check("lifecycle", "CEP-LIFE-15")
def set_trace(server: Server) -> None:
    """`$/setTrace` is taken with any value."""
    host = server.shared()
    for value in ("verbose", "messages", "nonsense", "off"):
        host.notify("$/setTrace", {"value": value})
    host.alive()


@check("lifecycle", "CEP-LIFE-16", "CEP-LIFE-17", needs=("context/compact", "context/ingestBatch"))
def progress(server: Server) -> None:
    """Progress for a token, if any, comes before the answer; without the capability none is asked for."""
    host, session = server.shared(), server.name()
    host.result("context/ingestBatch", {"sessionId": session, "messages": [user("x")]})
    token = server.name("token")
    before = len(host.notifications)
    host.request("context/compact", {"sessionId": session, "workDoneToken": token, "force": True})
    count = _progress(host.notifications[before:], token)
    host.alive()
    expect_equal(_progress(host.notifications[before:], token), count, "progress after the answer")
    expect(
        not any(message.method == "window/workDoneProgress/create" for message in host.asked),
        "window/workDoneProgress/create was asked of a host without the capability",
    )


def _progress(messages: list[Message], token: str) -> int:
    return sum(message.method == "$/progress" and token in message.raw.decode() for message in messages)
