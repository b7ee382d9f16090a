"""The handshake, reading messages, and ending the connection."""

from __future__ import annotations

import os
from collections.abc import Callable

from sidecar.conformance.client.driver import Client, Stage, check, failed_with
from sidecar.conformance.client.played_server import PlayedServer, assembled, greeting
from sidecar.conformance.kit import expect, expect_equal
from sidecar.conformance.wire import Json, Message, Object, encode, frame
from sidecar.protocol.lifecycle import LATEST

_OPTIONS = "/params/initializationOptions/contextEngine"
_COMPLETE = "runtime/complete"


def _capabilities(hello: Message) -> list[Json]:
    found = hello.at(f"{_OPTIONS}/hostCapabilities", None)
    return list(found) if isinstance(found, list) else []


@check("handshake", "CEP-LIFE-1", "CEP-INIT-2", "CEP-BASE-1")
def initialize_comes_first(client: Client) -> None:
    """The first message is `initialize` with a known version; the client waits for its answer."""
    with client.stage() as stage:
        stage.driver.do("open", "open")
        server = stage.server()
        first = server.next()
        expect_equal(first.method, "initialize", "the first message")
        version = first.at(f"{_OPTIONS}/protocolVersion", None)
        expect(version in (None, LATEST), f"protocolVersion is {version}")
        server.answer(first, greeting())
        stage.driver.result("open")
        stage.expect_alive(server)


@check("handshake", "CEP-LIFE-4", level="should")
def initialized_follows(client: Client) -> None:
    """The client sends `initialized` after the answer, before any other request."""
    with client.stage() as stage:
        server = stage.open()
        stage.ask("next", "engine/list")
        server.request("engine/list")
        seen = [message.method for message in server.notifications]
        expect("initialized" in seen, f"notifications before the first request: {seen}")


@check("handshake", "CEP-LIFE-11", level="should")
def process_id(client: Client) -> None:
    """`processId` is the id of a running process, so that the server ends with its host."""
    with client.stage() as stage:
        pid = stage.open().hello.at("/params/processId", None)
        expect(isinstance(pid, int) and _lives(pid), f"processId is {pid}")


@check("handshake", "CEP-INIT-4", "CEP-HOST-1", needs=(_COMPLETE,))
def declared_capabilities(client: Client) -> None:
    """`hostCapabilities` lists exactly the requests that the runtime answers."""
    for answers in ({}, {_COMPLETE: {"result": {"text": "yes"}}}):
        with client.stage() as stage:
            declared = _capabilities(stage.open(answers=answers).hello)
            asked = sorted(str(name) for name in declared if name != "assembleDelta")
            expect_equal(asked, sorted(answers), "hostCapabilities")


@check("handshake", "CEP-INIT-13", "CEP-BASE-9")
def refusals_reach_the_runtime(client: Client) -> None:
    """If `initialize` fails, the runtime gets code, message and data, and no process is left running."""
    with client.stage() as stage:
        stage.driver.do("open", "open")
        server = stage.server()
        server.refuse(server.request("initialize"), 1001, "The engine is not there.", engineId="gone")
        failure = stage.driver.failure("open")
        expect_equal(failed_with(failure), "answer 1001", "the failure")
        expect("The engine is not there." in str(failure.get("message")), f"the message: {failure}")
        data = failure.get("data")
        expect(isinstance(data, dict) and data.get("engineId") == "gone", f"data is {data}")
        stage.driver.do("close", "close")
        server.end_of_input()


@check("handshake", "CEP-BASE-6", "CEP-INIT-12", "CEP-VER-2")
def answers_of_newer_servers(client: Client) -> None:
    """Unknown members of the answer are ignored."""
    with client.stage() as stage:
        stage.driver.do("open", "open")
        server = stage.server()
        offer = greeting(
            noSuchMember={"deep": [1]}, methods=["context/ingest", "future/thing"], messageFormats=["to-come"]
        )
        server.answer(server.request("initialize"), {**offer, "noSuchMember": [None]})
        stage.driver.result("open")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


_GET = "session/get"
_NEW = "to-come"
"""A value that no version of the protocol defines."""
_TIME = "2024-01-15T10:30:00.000Z"
_PROGRESS: tuple[Json, ...] = (
    {"kind": "begin", "title": "Looking", "percentage": 0},
    {"kind": "report", "percentage": 50},
    {"kind": "end"},
)
_ENTRY: Object = {
    "sessionId": "s",
    "engine": "full",
    "messageFormat": _NEW,
    "messageCount": 1,
    "createdAt": _TIME,
    "updatedAt": _TIME,
}
_ENGINE: Object = {
    "id": "e",
    "name": "E",
    "version": "1",
    "ownsCompaction": True,
    "turnMaintenanceMode": _NEW,
    "implements": [_NEW],
    "active": True,
    "available": True,
}
_ASSEMBLED: Object = assembled(
    [{"role": _NEW, "content": "x"}],
    "r1",
    composition=[{"kind": _NEW, "tokens": 10, "messageCount": 1}],
    promptAuthority=_NEW,
    contextProjection={
        "mode": _NEW,
        "epoch": "1",
        "fingerprint": "f",
        "developerInstructions": "",
        "prompt": "x",
    },
)
_EXPLAINED: Object = {
    "decisions": [{"messageId": "m1", "turnId": "t1", "tokens": 1, "decision": _NEW, "reason": "x"}],
    "injected": [{"pluginName": "p", "injectionPoint": _NEW, "tokens": 1, "content": "x"}],
}
_COMPILED: Object = {"finalContent": "", "tokens": 0, "synthesized": False, "fragments": []}
_NEWER: tuple[tuple[str, Object, Object], ...] = (
    ("context/commitTurn", {"sessionId": "s", "advancementKey": "k", "messages": []}, {"status": _NEW}),
    (
        "context/preflight",
        {"sessionId": "s", "tokenBudget": 100},
        {"fits": True, "estimatedTokens": 1, "action": _NEW},
    ),
    ("context/assemble", {"sessionId": "s"}, _ASSEMBLED),
    ("context/explain", {"sessionId": "s"}, _EXPLAINED),
    ("session/list", {}, {"sessions": [_ENTRY]}),
    (_GET, {"sessionId": "s"}, {**_ENTRY, "turnCount": 1, "importing": {"state": _NEW, "total": 2}}),
    ("session/export", {"sessionId": "s"}, {"sessionId": "s", "messageFormat": _NEW, "messages": []}),
    ("engine/list", {}, {"engines": [_ENGINE]}),
    ("memory/compile", {"agentId": "a", "injectionPoint": "per-message"}, _COMPILED),
)
"""Method, params and result for each open enumeration that a host reads, with a value it does not know."""


def _session(name: str) -> dict[str, Json]:
    return {
        "sessionId": name,
        "engine": "full",
        "messageFormat": "openai",
        "messageCount": 1,
        "turnCount": 1,
        "createdAt": _TIME,
        "updatedAt": _TIME,
    }


def _expect_read(stage: Stage, server: PlayedServer, write: Callable[[bytes], None], text: str = "s") -> None:
    """Require that the client reads one answer, whose body `write` sends."""
    stage.ask("read", _GET, sessionId=text)
    request = server.request(_GET)
    write(encode({"jsonrpc": "2.0", "id": request.id, "result": _session(text)}))
    found = stage.driver.result("read")
    expect(isinstance(found, dict) and found.get("sessionId") == text, f"the result is {found}")


@check("reading", "CEP-BASE-3", "CEP-BASE-13")
def answers_in_any_order(client: Client) -> None:
    """Answers are matched to requests by id, in any order."""
    names = ["one", "two", "three"]
    with client.stage() as stage:
        server = stage.open()
        for name in names:
            stage.ask(name, _GET, sessionId=name)
        requests = [server.request(_GET) for _ in names]
        for request in reversed(requests):
            server.answer(request, _session(str(request.at("/params/sessionId"))))
        for name in names:
            found = stage.driver.result(name)
            expect(isinstance(found, dict) and found.get("sessionId") == name, f"{name} got {found}")


@check("reading", "CEP-BASE-2")
def ids_of_requests(client: Client) -> None:
    """Open requests have distinct ids, which are strings or integers."""
    with client.stage() as stage:
        server = stage.open()
        for number in range(20):
            stage.ask(f"r{number}", _GET, sessionId=f"s{number}")
        ids = [server.request(_GET).id for _ in range(20)]
        expect(all(isinstance(id, str | int) and not isinstance(id, bool) for id in ids), f"ids: {ids}")
        expect_equal(len({(type(id), id) for id in ids}), 20, "number of different ids")


@check("reading", "CEP-FRAME-4")
def frames_cut_anywhere(client: Client) -> None:
    """A frame may arrive byte by byte, and two frames may arrive at once."""
    with client.stage() as stage:
        server = stage.open()

        def bytewise(body: bytes) -> None:
            for byte in frame(body):
                server.write(bytes((byte,)))

        _expect_read(stage, server, bytewise)
        log = {"jsonrpc": "2.0", "method": "window/logMessage", "params": {"type": 3, "message": "x"}}
        _expect_read(stage, server, lambda body: server.write(frame(log) + frame(body)))


@check("reading", "CEP-FRAME-4")
def length_in_bytes(client: Client) -> None:
    """`Content-Length` counts bytes, not characters."""
    with client.stage() as stage:
        server = stage.open()
        log = {"jsonrpc": "2.0", "method": "window/logMessage", "params": {"type": 3, "message": "长度 😀"}}
        _expect_read(stage, server, lambda body: server.write(frame(log) + frame(body)), "会话-😀")


@check("reading", "CEP-FRAME-5")
def header_names_in_any_case_and_order(client: Client) -> None:
    """Headers are accepted in any case and order, and unknown headers are ignored."""
    with client.stage() as stage:
        server = stage.open()
        kind = b"x-other: 1\r\nCONTENT-TYPE: application/vscode-jsonrpc; charset=utf-8\r\n"
        _expect_read(
            stage,
            server,
            lambda body: server.write(kind + b"content-LENGTH: %d\r\n\r\n%b" % (len(body), body)),
        )


@check("reading", "CEP-FRAME-5", level="should")
def header_lines_that_end_with_lf(client: Client) -> None:
    """Header lines that end with LF alone are accepted."""
    with client.stage() as stage:
        server = stage.open()
        _expect_read(
            stage, server, lambda body: server.write(b"Content-Length: %d\n\n%b" % (len(body), body))
        )


@check("reading", "CEP-FLOW-6")
def large_answers(client: Client) -> None:
    """An answer of several megabytes is read."""
    with client.stage() as stage:
        server = stage.open()
        stage.ask("large", "session/export", sessionId="s")
        request = server.request("session/export")
        entry: Object = {
            "messageId": "m1",
            "turnId": "t1",
            "timestamp": "2024-01-15T10:30:00.000Z",
            "message": {"role": "user", "content": "long " * 1_000_000},
        }
        result: Json = {"sessionId": "s", "messageFormat": "openai", "messages": [entry]}
        server.answer(request, result)
        found = stage.driver.result("large")
        entries = found.get("messages") if isinstance(found, dict) else None
        first = entries[0] if isinstance(entries, list) and entries else None
        expect_equal(
            first.get("message") if isinstance(first, dict) else None, entry["message"], "the message"
        )


@check("reading", "CEP-BASE-5", "CEP-BASE-6")
def null_and_unknown_members(client: Client) -> None:
    """An optional member of a result may be `null`, and unknown members are ignored."""
    with client.stage() as stage:
        server = stage.open()
        stage.ask("odd", "context/ingest", sessionId="s", message={"role": "user", "content": "x"})
        request = server.request("context/ingest")
        known: dict[str, Json] = {"ingested": True, "messageId": "m1", "turnId": "t1"}
        server.answer(request, {**known, "reason": None, "displayMessage": None, "noSuchMember": {"deep": 1}})
        found = stage.driver.result("odd")
        expect(isinstance(found, dict) and found.get("messageId") == "m1", f"the result is {found}")


@check("reading", "CEP-HOST-9", "CEP-VER-2")
def unknown_notifications(client: Client) -> None:
    """Unknown notifications are ignored."""
    with client.stage() as stage:
        server = stage.open()
        server.tell("future/thing", {"deep": [1]})
        server.tell("$/future", {})
        _expect_read(stage, server, lambda body: server.write(frame(body)))


@check("reading", "CEP-HOST-9", needs=("notifications",))
def notifications_reach_the_runtime(client: Client) -> None:
    """The runtime gets `session/changed` with its params."""
    with client.stage() as stage:
        server = stage.open()
        server.tell("session/changed", {"sessionId": "s", "reason": "truncated"})
        heard = stage.driver.notified("session/changed").get("params")
        expect(isinstance(heard, dict) and heard.get("sessionId") == "s", f"it heard {heard}")


@check("reading", "CEP-LIFE-16", "CEP-HOST-9", needs=("progress",))
def progress_reaches_the_runtime(client: Client) -> None:
    """The runtime gets `$/progress` while the request is still open."""
    with client.stage() as stage:
        server = stage.open()
        stage.ask("long", "engine/doctor", workDoneToken="token-7")
        request = server.request("engine/doctor")
        expect_equal(request.at("/params/workDoneToken", None), "token-7", "workDoneToken of the request")
        for value in _PROGRESS:
            server.tell("$/progress", {"token": "token-7", "value": value})
            heard = stage.driver.notified("$/progress").get("params")
            token = heard.get("token") if isinstance(heard, dict) else None
            expect_equal(token, "token-7", "token of the progress")
        server.answer(request, {"ok": True, "checks": []})
        stage.driver.result("long")


@check("reading", "CEP-VER-2", "CEP-VER-4")
def future_values(client: Client) -> None:
    """Unknown values of open enumerations do no harm, wherever they occur."""
    with client.stage() as stage:
        server = stage.open()
        server.tell("window/logMessage", {"type": 77, "message": "x"})
        server.tell("session/changed", {"sessionId": "s", "reason": _NEW})
        server.tell("$/progress", {"token": "nobody", "value": {"kind": _NEW}})
        for method, params, result in _NEWER:
            stage.ask(method, method, **params)
            server.answer(server.request(method), result)
            stage.driver.result(method)


@check("reading", "CEP-BAD-8")
def answers_to_nothing(client: Client) -> None:
    """Unexpected answers and errors with id null are ignored."""
    with client.stage() as stage:
        server = stage.open()
        server.send({"jsonrpc": "2.0", "id": "nobody", "result": {}})
        server.send({"jsonrpc": "2.0", "id": 424242, "error": {"code": -32603, "message": "x"}})
        server.send({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}})
        _expect_read(stage, server, lambda body: server.write(frame(body)))


@check("ending", "CEP-LIFE-7", "CEP-LIFE-9")
def in_order(client: Client) -> None:
    """The client sends `shutdown`, waits for the answer, and sends `exit`."""
    with client.stage() as stage:
        server = stage.open()
        stage.driver.do("close", "close")
        request = server.request("shutdown")
        early = [message.method for message in server.notifications if message.method == "exit"]
        expect_equal(early, [], "messages before the answer to shutdown")
        server.answer(request, None)
        server.notification("exit")
        server.exit(0)
        stage.driver.result("close")


@check("ending", "CEP-LIFE-9")
def by_force(client: Client) -> None:
    """A server that ignores both `shutdown` and SIGTERM is killed."""
    with client.stage() as stage:
        server = stage.open()
        server.ignore_sigterm()
        stage.driver.do("close", "close")
        server.request("shutdown")
        stage.driver.report("close")
        expect(server.gone(2), "the process outlives its client")
