"""The life cycle of a connection: initialize, shutdown, exit, and the handshake."""

from __future__ import annotations

import os
import subprocess
import sys

from sidecar.conformance.kit import expect, expect_equal
from sidecar.conformance.server.conversation import ingest, user
from sidecar.conformance.server.subject import METHOD_NAMES, Server, check
from sidecar.conformance.wire import Json, Message, frame, request


@check("lifecycle", "CEP-LIFE-1")
def requests_before_initialize(server: Server) -> None:
    """A request before `initialize` gets -32002, and a notification is ignored."""
    with server.start() as host:
        host.notify("initialized")
        expect_equal(host.request("session/list").code, -32002, "code of the answer")
        host.initialize(server.params()).result()


@check("lifecycle", "CEP-LIFE-2")
def initialize_is_a_barrier(server: Server) -> None:
    """A request sent right after `initialize` waits for its outcome."""
    with server.start() as host:
        hello = request("hello", "initialize", server.params())
        host.process.send(frame(hello) + frame(request("behind", "conformance/unknownMethod", {})))
        host.answer("hello").result()
        expect_equal(host.answer("behind").code, -32601, "code of the answer to the next request")


@check("lifecycle", "CEP-LIFE-2", "CEP-LIFE-3")
def after_a_failed_initialize(server: Server) -> None:
    """After a failed `initialize`, requests get -32002, and another `initialize` may succeed."""
    with server.start() as host:
        wrong = request("wrong", "initialize", server.params(protocolVersion="0.0-none"))
        host.process.send(frame(wrong) + frame(request("behind", "session/list", {})))
        expect_equal(host.answer("wrong").code, -32602, "code of the answer to initialize")
        expect_equal(host.answer("behind").code, -32002, "code of the answer to the next request")
        host.initialize(server.params()).result()
        host.alive()


@check("lifecycle", "CEP-LIFE-3")
def second_initialize(server: Server) -> None:
    """A second `initialize` after a successful one gets -32600, and the connection stays usable."""
    host = server.shared()
    expect_equal(host.request("initialize", server.params()).code, -32600, "code of the answer")
    host.alive()


@check("lifecycle", "CEP-LIFE-4")
def initialized_is_optional(server: Server) -> None:
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
    """`shutdown` returns null, later requests get -32600, and `exit` ends the process with status 0."""
    with server.connect() as host:
        answer = host.request("shutdown")
        expect_equal(answer.result(), None, "result of shutdown")
        expect_equal(host.request("session/list").code, -32600, "code of the answer after shutdown")
        host.notify("exit")
        host.rest()
        expect_equal(host.process.exit_status(), 0, "exit status")


@check("lifecycle", "CEP-LIFE-9")
def exit_alone(server: Server) -> None:
    """`exit` without `shutdown` ends the process with status 1."""
    with server.connect() as host:
        host.notify("exit")
        expect_equal(host.process.exit_status(), 1, "exit status")


@check("lifecycle", "CEP-LIFE-7", needs=("context/ingest",))
def shutdown_comes_last(server: Server) -> None:
    """Requests sent before `shutdown` are answered before it."""
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
    """When the input ends between messages, all requests are answered, and the exit status is 0."""
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
    """When the input ends inside a message, earlier requests are answered, and the exit status is 1."""
    with server.connect() as host:
        host.begin("conformance/unknownMethod", id="whole")
        host.process.send(frame(request("half", "conformance/unknownMethod", {}))[:-5])
        host.process.end_input()
        expect_equal([m.id for m in host.rest() if m.is_response], ["whole"], "ids of the answers")
        expect_equal(host.process.exit_status(), 1, "exit status")


@check("lifecycle", "CEP-LIFE-10", needs=("context/ingest",))
def sigterm(server: Server) -> None:
    """On SIGTERM the process answers the requests it has received and ends with status 0."""
    with server.connect() as host:
        host.result("context/ingest", {"sessionId": server.name(), "message": user("x")})
        host.process.terminate()
        host.rest()
        expect_equal(host.process.exit_status(), 0, "exit status")


@check("lifecycle", "CEP-LIFE-11")
def death_of_the_host(server: Server) -> None:
    """When the process `processId` dies, the server ends with status 1, even with its input open."""
    parent = subprocess.Popen([sys.executable, "-I", "-c", "input()"], stdin=subprocess.PIPE)
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
    """The `processId` of a living process changes nothing."""
    with server.start() as host:
        host.initialize({**server.params(), "processId": os.getpid()}).result()
        host.alive()


@check("lifecycle", "CEP-LIFE-15")
def set_trace(server: Server) -> None:
    """`$/setTrace` is accepted with any value."""
    host = server.shared()
    for value in ("verbose", "messages", "nonsense", "off"):
        host.notify("$/setTrace", {"value": value})
    host.alive()


@check("lifecycle", "CEP-LIFE-16", "CEP-LIFE-17", needs=("context/compact", "context/ingestBatch"))
def progress(server: Server) -> None:
    """Progress, if any, comes before the answer; `workDoneProgress/create` needs the host's capability."""
    host, session = server.shared(), server.name()
    host.result("context/ingestBatch", {"sessionId": session, "messages": [user("x")]})
    token = server.name("token")
    before = len(host.notifications)
    host.request("context/compact", {"sessionId": session, "workDoneToken": token, "force": True})
    count = _progress(host.notifications[before:], token)
    host.alive()
    expect_equal(_progress(host.notifications[before:], token), count, "progress after the answer")
    expect(
        not any(message.method == "window/workDoneProgress/create" for message in host.server_requests),
        "window/workDoneProgress/create was sent to a host without the capability",
    )


def _progress(messages: list[Message], token: str) -> int:
    return sum(message.method == "$/progress" and token in message.raw.decode() for message in messages)


_LIMITS = ("maxMessageBytes", "maxInFlight", "maxParkedBytes", "hostRequestTimeoutMs", "defaultTokenBudget")


@check("handshake", "CEP-INIT-9", "CEP-INIT-11")
def answer_to_initialize(server: Server) -> None:
    """The answer names the version, engine, methods, tools, message formats and all limits."""
    offer = server.shared().offer
    expect_equal(offer.get("protocolVersion"), "1.0", "protocolVersion")
    for name, kind in (("engine", dict), ("methods", list), ("tools", list), ("messageFormats", list)):
        expect(isinstance(offer.get(name), kind), f"{name} is missing or of the wrong type")
    limits = offer.get("limits")
    for name in _LIMITS:
        expect(isinstance(limits, dict) and isinstance(limits.get(name), int), f"limits.{name} is missing")


@check("handshake", "CEP-INIT-10")
def declared_methods(server: Server) -> None:
    """The server accepts exactly the requests in `methods`; any other gets -32601."""
    host = server.shared()
    declared = host.offer.get("methods")
    assert isinstance(declared, list)
    skipped = {"initialize", "shutdown", "context/dispose"}
    for method in sorted(METHOD_NAMES - skipped):
        if method.startswith(("$/", "window/")) or method in ("initialized", "exit"):
            continue
        known = host.request(method, {"sessionId": server.name("never")}).code != -32601
        expect_equal(known, method in declared, f"whether {method} is known")


@check("handshake", "CEP-INIT-2", "CEP-VER-1")
def unknown_version(server: Server) -> None:
    """An unsupported version gets -32602 with `data.supported`."""
    with server.start() as host:
        answer = host.initialize(server.params(protocolVersion="99.0"))
        expect_equal(answer.code, -32602, "code of the answer")
        supported = answer.at("/error/data/supported")
        expect(isinstance(supported, list) and "1.0" in supported, f"data.supported is {supported}")


@check("handshake", "CEP-VER-1", "CEP-VER-5")
def every_supported_version(server: Server) -> None:
    """Each version in `data.supported` can be requested and is then the one negotiated."""
    with server.start() as host:
        refused = host.initialize(server.params(protocolVersion="99.0"))
        supported = refused.at("/error/data/supported")
    assert isinstance(supported, list)
    for version in supported:
        with server.connect(protocolVersion=version) as host:
            expect_equal(host.offer.get("protocolVersion"), version, "protocolVersion")


@check("handshake", "CEP-INIT-2", "CEP-INIT-4")
def defaults_and_unknown_capabilities(server: Server) -> None:
    """`protocolVersion` is optional, and unknown host capabilities are ignored."""
    with server.start() as host:
        answer = host.initialize(
            server.params(protocolVersion=None, hostCapabilities=["no/such", "assembleDelta"])
        )
        answer.text("/capabilities/experimental/contextEngine/protocolVersion")


@check("handshake", "CEP-INIT-5")
def unknown_message_format(server: Server) -> None:
    """An unknown `messageFormat` gets -32602 with a message that names the member."""
    with server.start() as host:
        answer = host.initialize(server.params(messageFormat="smoke-signals"))
        expect_equal(answer.code, -32602, "code of the answer")
        expect(
            "messageFormat" in answer.error_text,
            f"the error does not name messageFormat: {answer.error_text}",
        )


@check("handshake", "CEP-INIT-13", "CEP-INIT-14")
def unknown_engine(server: Server) -> None:
    """An unknown engine gets 1001 with a message that names it; no other engine takes its place."""
    with server.start() as host:
        answer = host.initialize(server.params(engine="no-such-engine"))
        expect_equal(answer.code, 1001, "code of the answer")
        expect(
            "no-such-engine" in answer.error_text, f"the error does not name the engine: {answer.error_text}"
        )


@check("handshake", "CEP-CONF-3", "CEP-LIFE-6")
def wrong_setting(server: Server) -> None:
    """A setting with an invalid value makes `initialize` fail with -32602, which names the setting."""
    with server.start() as host:
        answer = host.initialize(server.params(config={"limits": {"maxInFlight": "many"}}))
        expect_equal(answer.code, -32602, "code of the answer")
        expect("maxInFlight" in answer.raw.decode(), f"the error does not name the key: {answer.error_text}")


@check("handshake", "CEP-SEC-12")
def state_folder(server: Server) -> None:
    """A host cannot choose any `stateDir`: `/` gets -32602, which names the setting."""
    with server.start() as host:
        answer = host.initialize(server.params(config={"stateDir": "/"}))
        expect_equal(answer.code, -32602, "code of the answer")
        expect("stateDir" in answer.raw.decode(), f"the error does not name the key: {answer.error_text}")


@check("handshake", "CEP-CONF-3")
def unknown_setting(server: Server) -> None:
    """An unknown setting is not an error."""
    with server.connect(config={"noSuchKey": {"deep": 1}}) as host:
        host.alive()


@check("handshake", "CEP-CONF-2", "CEP-SEC-1")
def code_cannot_be_loaded_from_the_wire(server: Server) -> None:
    """`plugins.load.paths` in `config` is refused with -32602, or ignored."""
    with server.start() as host:
        config: Json = {"plugins": {"load": {"paths": [str(server.folder)]}}}
        answer = host.initialize(server.params(config=config))
        expect(answer.code in (None, -32602), f"code {answer.code}")


@check("handshake", "CEP-INIT-15", "CEP-DUR-4")
def store_that_cannot_be_opened(server: Server) -> None:
    """A store that cannot be opened gets 1006, and its file is left unchanged."""
    place = server.folder / server.name("damaged")
    content = b"this is no store" * 500
    place.write_bytes(content)
    with server.start() as host:
        answer = host.initialize(server.params(config={"store": {"kind": "sqlite", "path": str(place)}}))
        expect_equal(answer.code, 1006, "code of the answer")
    expect(place.read_bytes() == content, "the damaged file was changed")


@check("handshake", "CEP-INIT-7", "CEP-SESS-4", "CEP-SEC-5", needs=("context/ingest", "session/get"))
def namespaces(server: Server) -> None:
    """A session is visible to every host in its namespace, and unknown in other namespaces."""
    session, here, there = server.name(), server.name("space"), server.name("space")
    with server.connect(namespace=here) as host:
        ingest(host, session, user("mine"))
    with server.connect(namespace=there) as host:
        expect_equal(
            host.request("session/get", {"sessionId": session}).code, 1003, "code in another namespace"
        )
    with server.connect(namespace=here, host={"id": "another-host"}) as host:
        host.result("session/get", {"sessionId": session})


@check("handshake", "CEP-INIT-4", needs=("context/compact", "context/ingestBatch"))
def undeclared_requests_are_not_sent(server: Server) -> None:
    """A host that declares no capabilities gets no requests, even if a compaction could use a model."""
    with server.connect(hostCapabilities=[]) as host:
        session = server.name()
        messages: list[Json] = [user(f"message {number} " + "word " * 200) for number in range(12)]
        host.result("context/ingestBatch", {"sessionId": session, "messages": messages})
        host.request("context/compact", {"sessionId": session, "force": True, "tokenBudget": 500})
        expect_equal([message.method for message in host.server_requests], [], "requests of the server")
