"""What `initialize` settles."""

from __future__ import annotations

from sidecar.conformance.expecting import expect, expect_equal
from sidecar.conformance.server.conversation import ingest, user
from sidecar.conformance.server.subject import Server
from sidecar.conformance.server.suite import METHOD_NAMES, check
from sidecar.conformance.server.wire import Json

_LIMITS = ("maxMessageBytes", "maxInFlight", "maxParkedBytes", "hostRequestTimeoutMs", "defaultTokenBudget")


@check("handshake", "CEP-INIT-9", "CEP-INIT-11")
def what_the_answer_names(server: Server) -> None:
    """The answer has version, engine, methods, tools, message formats and all limits."""
    offer = server.shared().offer
    expect_equal(offer.get("protocolVersion"), "1.0", "protocolVersion")
    for name, kind in (("engine", dict), ("methods", list), ("tools", list), ("messageFormats", list)):
        expect(isinstance(offer.get(name), kind), f"{name} is missing or of the wrong type")
    limits = offer.get("limits")
    for name in _LIMITS:
        expect(isinstance(limits, dict) and isinstance(limits.get(name), int), f"limits.{name} is missing")


@check("handshake", "CEP-INIT-10")
def declared_methods(server: Server) -> None:
    """`methods` lists what the server takes: a listed request is known, an unlisted one gets -32601."""
    host = server.shared()
    declared = host.offer.get("methods")
    assert isinstance(declared, list)
    skipped = {"initialize", "shutdown", "context/dispose"}
    for method in sorted(METHOD_NAMES - skipped):
        if method.startswith(("$/", "window/")) or method in ("initialized", "exit"):
            continue
        known = host.request(method, {"sessionId": server.name("never")}).code != -32601
        expect_equal(known, method in declared, f"whether {method} is known, against whether it is declared")


@check("handshake", "CEP-INIT-2", "CEP-VER-1")
def unknown_version(server: Server) -> None:
    """A version that the server does not have gets -32602 with `data.supported`."""
    with server.start() as host:
        answer = host.initialize(server.params(protocolVersion="99.0"))
        expect_equal(answer.code, -32602, "code of the answer")
        supported = answer.at("/error/data/supported")
        expect(isinstance(supported, list) and "1.0" in supported, f"data.supported is {supported}")


@check("handshake", "CEP-VER-1", "CEP-VER-5")
def every_supported_version(server: Server) -> None:
    """Each version that `data.supported` names can be asked for, and is the one that is settled."""
    with server.start() as host:
        refused = host.initialize(server.params(protocolVersion="99.0"))
        supported = refused.at("/error/data/supported")
    assert isinstance(supported, list)
    for version in supported:
        with server.connect(protocolVersion=version) as host:
            expect_equal(host.offer.get("protocolVersion"), version, "protocolVersion")


@check("handshake", "CEP-INIT-2", "CEP-INIT-4")
def defaults_and_unknown_capabilities(server: Server) -> None:
    """Without a version the newest holds, and unknown host capabilities are ignored."""
    with server.start() as host:
        answer = host.initialize(
            server.params(protocolVersion=None, hostCapabilities=["no/such", "assembleDelta"])
        )
        answer.text("/capabilities/experimental/contextEngine/protocolVersion")


@check("handshake", "CEP-INIT-5")
def unknown_message_format(server: Server) -> None:
    """An unknown `messageFormat` gets -32602 that names it."""
    with server.start() as host:
        answer = host.initialize(server.params(messageFormat="smoke-signals"))
        expect_equal(answer.code, -32602, "code of the answer")
        expect("messageFormat" in answer.error_text, f"the message does not name it: {answer.error_text}")


@check("handshake", "CEP-INIT-13", "CEP-INIT-14")
def unknown_engine(server: Server) -> None:
    """An engine that is not there gets 1001 that names it, and no other takes its place."""
    with server.start() as host:
        answer = host.initialize(server.params(engine="no-such-engine"))
        expect_equal(answer.code, 1001, "code of the answer")
        expect("no-such-engine" in answer.error_text, f"the message does not name it: {answer.error_text}")


@check("handshake", "CEP-CONF-3", "CEP-LIFE-6")
def wrong_setting(server: Server) -> None:
    """A setting of a wrong value makes `initialize` fail with -32602 that names it."""
    with server.start() as host:
        answer = host.initialize(server.params(config={"limits": {"maxInFlight": "many"}}))
        expect_equal(answer.code, -32602, "code of the answer")
        expect("maxInFlight" in answer.raw.decode(), f"the key is not named: {answer.error_text}")


@check("handshake", "CEP-CONF-3")
def unknown_setting(server: Server) -> None:
    """An unknown key is no error."""
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
    """A store that cannot be opened gets 1006, and what lies there is left alone."""
    place = server.folder / server.name("damaged")
    content = b"this is no store" * 500
    place.write_bytes(content)
    with server.start() as host:
        answer = host.initialize(server.params(config={"store": {"kind": "sqlite", "path": str(place)}}))
        expect_equal(answer.code, 1006, "code of the answer")
    expect(place.read_bytes() == content, "the damaged file was changed")


@check("handshake", "CEP-INIT-7", "CEP-SESS-4", "CEP-SEC-5", needs=("context/ingest", "session/get"))
def namespaces(server: Server) -> None:
    """A session of one namespace is unknown in another, and known to another host of the same."""
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
    """A host that declares nothing is asked nothing, also where a compaction could use a model."""
    with server.connect(hostCapabilities=[]) as host:
        session = server.name()
        messages: list[Json] = [user(f"message {number} " + "word " * 200) for number in range(12)]
        host.result("context/ingestBatch", {"sessionId": session, "messages": messages})
        host.request("context/compact", {"sessionId": session, "force": True, "tokenBudget": 500})
        expect_equal([message.method for message in host.asked], [], "requests of the server")
