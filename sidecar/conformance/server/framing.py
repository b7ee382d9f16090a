"""Framing and invalid input."""

from __future__ import annotations

from collections.abc import Callable

from sidecar.conformance.kit import Violation, expect, expect_equal
from sidecar.conformance.server.conversation import user
from sidecar.conformance.server.host import Host
from sidecar.conformance.server.subject import Server, check
from sidecar.conformance.wire import Json, encode, frame, request

_PING = "conformance/unknownMethod"


def _expect_answer(host: Host, id: int | str) -> None:
    answer = host.answer(id)
    expect_equal(answer.code, -32601, "code of the answer to an unknown method")


def _body(id: str) -> bytes:
    return encode(request(id, _PING, {}))


def _with_headers(id: str, *headers: bytes, end: bytes = b"\r\n") -> bytes:
    body = _body(id)
    lines = [header.replace(b"SIZE", str(len(body)).encode()) for header in headers]
    return end.join(lines) + end + end + body


@check("framing", "CEP-FRAME-4", "CEP-BASE-3")
def header_framing(server: Server) -> None:
    """A request framed by `Content-Length` is answered in a frame of its own, with the id of the request."""
    host = server.shared()
    host.process.send(frame(request("framing-1", _PING, {})))
    _expect_answer(host, "framing-1")


@check("framing", "CEP-FRAME-5")
def header_names_in_any_case_and_order(server: Server) -> None:
    """Headers are accepted in any case and order, and unknown headers are ignored."""
    host = server.shared()
    headers = (
        b"x-other: 1",
        b"CONTENT-TYPE: application/vscode-jsonrpc; charset=utf-8",
        b"content-LENGTH: SIZE",
    )
    host.process.send(_with_headers("framing-2", *headers))
    _expect_answer(host, "framing-2")


@check("framing", "CEP-FRAME-5")
def header_lines_that_end_with_lf(server: Server) -> None:
    """Header lines that end with LF alone are accepted."""
    host = server.shared()
    host.process.send(_with_headers("framing-3", b"Content-Length: SIZE", end=b"\n"))
    _expect_answer(host, "framing-3")


@check("framing", "CEP-FRAME-6")
def equal_lengths(server: Server) -> None:
    """Two `Content-Length` headers with the same value count as one."""
    host = server.shared()
    host.process.send(_with_headers("framing-4", b"Content-Length: SIZE", b"Content-Length: SIZE"))
    _expect_answer(host, "framing-4")


@check("framing", "CEP-FRAME-7", "CEP-BAD-10")
def other_charset(server: Server) -> None:
    """A charset other than utf-8 gets -32700; the frame is skipped, and the next one is read."""
    host = server.shared()
    host.process.send(
        _with_headers(
            "framing-5", b"Content-Type: application/json; charset=latin-1", b"Content-Length: SIZE"
        )
    )
    answer = host.answer(None)
    expect_equal(answer.code, -32700, "code of the answer to another charset")
    host.alive()


@check("framing", "CEP-FRAME-4")
def frames_cut_anywhere(server: Server) -> None:
    """A frame may arrive byte by byte, and two frames may arrive at once."""
    host = server.shared()
    for byte in frame(request("framing-6", _PING, {})):
        host.process.send(bytes((byte,)))
    host.process.send(frame(request("framing-7", _PING, {})) + frame(request("framing-8", _PING, {})))
    for id in ("framing-6", "framing-7", "framing-8"):
        _expect_answer(host, id)


@check("framing", "CEP-FRAME-4")
def length_in_bytes(server: Server) -> None:
    """`Content-Length` counts bytes, not characters."""
    host = server.shared()
    host.process.send(frame(request("长度-😀", _PING, {})) + frame(request("framing-9", _PING, {})))
    _expect_answer(host, "长度-😀")
    _expect_answer(host, "framing-9")


@check("framing", "CEP-FRAME-3", "CEP-FRAME-9")
def newline_framing(server: Server) -> None:
    """A first byte `{` selects one message per line in both directions."""
    with server.start(lines=True) as host:
        answer = host.initialize(server.params())
        answer.result()
        expect(b"\n" not in answer.raw, "an answer contains a line break")
        host.alive()


@check("framing", "CEP-FRAME-10")
def newline_framing_is_lenient(server: Server) -> None:
    """A byte order mark, whitespace, empty lines, CR LF and a last line without LF are accepted."""
    with server.start(lines=True) as host:
        hello = encode(request("hello", "initialize", server.params()))
        host.process.send(
            b"\xef\xbb\xbf \r\n\n" + hello + b"\r\n\n  \n\t" + _body("one") + b" \n" + _body("two")
        )
        host.process.end_input()
        codes = {message.id: message.code for message in host.rest() if message.is_response}
        expect_equal(codes, {"hello": None, "one": -32601, "two": -32601}, "codes of the answers by id")


@check("framing", "CEP-FRAME-1")
def nothing_else_on_standard_output(server: Server) -> None:
    """Standard output carries nothing but frames, from the first byte to the last."""
    with server.connect() as host:
        host.result("engine/list") if _declares(host, "engine/list") else host.alive()
        host.result("shutdown")
        host.notify("exit")
        host.rest()


def _declares(host: Host, method: str) -> bool:
    methods = host.offer.get("methods")
    return isinstance(methods, list) and method in methods


def _fatal(server: Server, data: bytes) -> None:
    with server.connect() as host:
        host.process.send(data)
        answer = host.answer(None)
        expect_equal(answer.code, -32600, "code of the answer")
        expect(not host.rest(), "more messages followed the answer")
        expect_equal(host.process.exit_status(), 1, "exit status")


def _fatal_check(name: str, fault: str, data: Callable[[], bytes], *clauses: str) -> None:
    def run(server: Server) -> None:
        _fatal(server, data())

    run.__name__ = name
    run.__doc__ = f"{fault} gets -32600 with id null, and the process ends with status 1."
    check("framing", "CEP-BAD-12", *clauses)(run)


_HIDDEN = frame(request("forged", _PING, {}))

_fatal_check("length_missing", "A header block without a length", lambda: b"X-Other: 1\r\n\r\n" + _HIDDEN)
_fatal_check("length_negative", "A negative length", lambda: b"Content-Length: -5\r\n\r\n" + _HIDDEN)
_fatal_check(
    "length_not_digits", "A length with anything but digits", lambda: b"Content-Length: 0x10\r\n\r\n"
)
_fatal_check(
    "lengths_that_differ",
    "A header block with two different lengths",
    lambda: b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}" + _HIDDEN,
)
_fatal_check(
    "headers_too_long",
    "A header block over 8 KiB",
    lambda: b"X-Filler: " + b"x" * 9000 + b"\r\nContent-Length: 2\r\n\r\n{}",
    "CEP-FRAME-8",
)
_fatal_check("header_without_colon", "A header line without a colon", lambda: b"garbage\r\n\r\n" + _HIDDEN)
_fatal_check(
    "length_out_of_proportion",
    "A length over four times the limit",
    lambda: b"Content-Length: 999999999999999\r\n\r\n",
)


@check("framing", "CEP-BAD-13")
def no_search_for_the_next_header(server: Server) -> None:
    """A frame inside the body of an invalid frame is not read as a request."""
    host = server.shared()
    host.process.send(frame(b"{not json " + _HIDDEN))
    expect_equal(host.answer(None).code, -32700, "code of the answer to the outer frame")
    host.alive()
    if any(message.id == "forged" for message in host.early()):
        raise Violation("text inside a frame was executed as a request")


@check("framing", "CEP-BAD-11", "CEP-INIT-11")
def body_over_the_limit(server: Server) -> None:
    """A body over `limits.maxMessageBytes` gets -32600 with `data.limit`, and the connection stays usable."""
    with server.connect(config={"limits": {"maxMessageBytes": 65536}}) as host:
        expect_equal(host.limit("maxMessageBytes"), 65536, "limits.maxMessageBytes")
        host.process.send(
            frame(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"' + b"x" * 100_000 + b'"}}')
        )
        answer = host.answer(None)
        expect_equal(answer.code, -32600, "code of the answer")
        expect_equal(answer.at("/error/data/limit"), 65536, "data.limit")
        host.alive()


@check("framing", "CEP-FRAME-11", "CEP-BAD-11")
def line_over_the_limit(server: Server) -> None:
    """A line over `limits.maxMessageBytes` gets -32600 with `data.limit`, and the connection stays usable."""
    with server.connect(lines=True, config={"limits": {"maxMessageBytes": 65536}}) as host:
        host.write(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"' + b"x" * 100_000 + b'"}}')
        answer = host.answer(None)
        expect_equal(answer.code, -32600, "code of the answer")
        expect_equal(answer.at("/error/data/limit"), 65536, "data.limit")
        host.alive()


def _expect_refused(host: Host, body: bytes | str | Json, code: int, id: Json = None) -> None:
    host.write(body)
    answer = host.answer(id)
    expect_equal(answer.code, code, f"code of the answer to {str(body)[:80]}")
    host.alive()


def _invalid(server: Server, method: str, params: Json, path: str, place: str) -> None:
    host = server.shared()
    answer = host.request(method, params)
    expect_equal(answer.code, -32602, f"code of the answer to {method} with a wrong {place or 'params'}")
    expect_equal(answer.at("/error/data/path"), path, "data.path")
    expect(place in answer.error_text, f"the message does not name {place}: {answer.error_text}")


@check("bad input", "CEP-BAD-1")
def invalid_json(server: Server) -> None:
    """Invalid JSON, invalid UTF-8, NaN and Infinity get -32700 with id null; the connection stays usable."""
    host = server.shared()
    bodies = (
        b"{",
        b"not json",
        b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":Infinity}}',
    )
    for body in bodies:
        _expect_refused(host, body, -32700)


@check("bad input", "CEP-BAD-1")
def empty_bodies(server: Server) -> None:
    """`Content-Length: 0` gets -32700 with id null, and the connection stays usable."""
    host = server.shared()
    host.process.send(frame(b""))
    expect_equal(host.answer(None).code, -32700, "code of the answer to an empty body")
    host.alive()


@check("bad input", "CEP-BAD-2", "CEP-BASE-1")
def invalid_envelopes(server: Server) -> None:
    """A batch, a body that is not an object, and a wrong or missing `jsonrpc` get -32600."""
    host = server.shared()
    _expect_refused(host, [{"jsonrpc": "2.0", "id": 1, "method": "x"}], -32600)
    _expect_refused(host, [], -32600)
    _expect_refused(host, "7", -32600)
    _expect_refused(host, '"text"', -32600)
    _expect_refused(host, {"jsonrpc": "1.0", "id": "old", "method": "x"}, -32600, "old")
    _expect_refused(host, {"id": "none", "method": "x"}, -32600, "none")
    _expect_refused(host, {"jsonrpc": "2.0", "id": "number", "method": 7}, -32600, "number")


@check("bad input", "CEP-BAD-2", "CEP-BASE-2")
def ids_of_a_wrong_type(server: Server) -> None:
    """An id that is a fraction, a boolean, a list, an object or null gets -32600 with id null."""
    host = server.shared()
    for id in (1.5, True, [1], {"a": 1}, None):
        wrong: Json = {"jsonrpc": "2.0", "id": id, "method": "engine/list", "params": {}}
        _expect_refused(host, wrong, -32600)


@check("bad input", "CEP-BASE-2", "CEP-BASE-3")
def ids_come_back_as_they_were(server: Server) -> None:
    """Ids keep their type and value: 1 and "1" are two ids, and strings of any script are valid."""
    host = server.shared()
    ids: tuple[int | str, ...] = (900001, "900001", "", "ключ 键 🔑", 2**53 - 1, -7)
    for id in ids:
        host.begin("conformance/unknownMethod", id=id)
    for id in ids:
        answer = host.answer(id)
        expect(type(answer.id) is type(id), f"id {id!r} came back as {answer.id!r}")


@check("bad input", "CEP-BAD-2", needs=("context/assemble", "context/compact"))
def ids_in_flight(server: Server) -> None:
    """An id that is already in flight gets -32600, and the first request is still answered."""
    with server.connect(hostCapabilities=["runtime/compact"], engine="legacy") as host:
        host.answers["runtime/compact"] = lambda _: {}
        host.begin("context/compact", {"sessionId": "any"}, id="twice")
        forwarded = host.wait_for_request("runtime/compact")
        host.begin("conformance/unknownMethod", id="twice")
        refused = host.answer("twice")
        expect_equal(refused.code, -32600, "code of the answer to the second request")
        answer: Json = {"jsonrpc": "2.0", "id": forwarded.id, "result": {"ok": True, "compacted": False}}
        host.write(answer)
        host.answer("twice").result()


@check("bad input", "CEP-BAD-3")
def deep_nesting(server: Server) -> None:
    """JSON nested 100 000 levels deep gets -32700 or -32602, and the connection stays usable."""
    host = server.shared()
    deep = "[" * 100_000 + "]" * 100_000
    host.write(f'{{"jsonrpc":"2.0","id":"deep","method":"context/ingest","params":{{"message":{deep}}}}}')
    answer = host.answer_to_any("deep", None)
    expect(answer.code in (-32700, -32602), f"code {answer.code} for nesting that is too deep")
    host.alive()


@check("bad input", "CEP-BAD-5", "CEP-BASE-4")
def params_that_are_not_objects(server: Server) -> None:
    """Params that are a list, a string or a number get -32602 with `data.path` empty."""
    host = server.shared()
    for number, params in enumerate(("[1]", '"text"', "7")):
        id = f"params-{number}"
        host.write(f'{{"jsonrpc":"2.0","id":"{id}","method":"context/ingest","params":{params}}}')
        answer = host.answer(id)
        expect_equal(answer.code, -32602, f"code of the answer to params {params}")
        expect_equal(answer.at("/error/data/path"), "", "data.path")


@check("bad input", "CEP-BAD-5", "CEP-BASE-10", needs=("context/ingest", "context/assemble"))
def members_of_a_wrong_type(server: Server) -> None:
    """A wrong or missing member gets -32602; the message names it, and `data.path` is its JSON Pointer."""
    _invalid(server, "context/ingest", {"sessionId": 7, "message": user("x")}, "/sessionId", "sessionId")
    _invalid(server, "context/ingest", {"message": user("x")}, "/sessionId", "sessionId")
    _invalid(server, "context/ingest", {"sessionId": "s"}, "/message", "message")
    _invalid(
        server, "context/assemble", {"sessionId": "s", "tokenBudget": "4k"}, "/tokenBudget", "tokenBudget"
    )


@check("bad input", "CEP-BAD-5", "CEP-MSG-6", needs=("context/ingestBatch", "session/get"))
def messages_of_a_wrong_type(server: Server) -> None:
    """An invalid message gets -32602 with its path, and the whole request has no effect."""
    host, session = server.shared(), server.name()
    odd: tuple[Json, ...] = (7, "text", [], {"content": "no role"})
    for wrong in odd:
        messages: Json = [user("fine"), user("fine too"), wrong]
        _invalid(
            server,
            "context/ingestBatch",
            {"sessionId": session, "messages": messages},
            "/messages/2",
            "messages[2]",
        )
    expect_equal(
        host.request("session/get", {"sessionId": session}).code, 1003, "code of session/get afterwards"
    )


@check("bad input", "CEP-BASE-5", "CEP-BASE-6", needs=("context/ingest",))
def null_and_unknown_members(server: Server) -> None:
    """An optional member may be `null`, a required one may not; unknown members are ignored."""
    host, session = server.shared(), server.name()
    params: Json = {
        "sessionId": session,
        "message": user("x"),
        "messageId": None,
        "turnId": None,
        "isHeartbeat": None,
        "noSuchMember": {"deep": [1]},
    }
    host.result("context/ingest", params)
    answer = host.request("context/ingest", {"sessionId": None, "message": user("x")})
    expect_equal(answer.code, -32602, "code of the answer to a required member that is null")


@check("bad input", "CEP-BAD-6")
def unknown_methods(server: Server) -> None:
    """An unknown request gets -32601; an unknown notification is ignored, whatever its name."""
    host = server.shared()
    for method in ("context/noSuchThing", "", "$/noSuchThing", "initialize/"):
        expect_equal(host.request(method).code, -32601, f"code of the answer to {method!r}")
    host.notify("context/noSuchThing")
    host.notify("$/noSuchThing")
    host.alive()


@check("bad input", "CEP-BAD-7", needs=("context/ingest", "session/get"))
def requests_sent_as_notifications(server: Server) -> None:
    """A request without an id has no effect and gets no answer."""
    host, session = server.shared(), server.name()
    host.notify("context/ingest", {"sessionId": session, "message": user("x")})
    expect_equal(
        host.request("session/get", {"sessionId": session}).code, 1003, "code of session/get afterwards"
    )


@check("bad input", "CEP-BAD-8")
def answers_to_nothing(server: Server) -> None:
    """An unexpected response is ignored."""
    host = server.shared()
    host.write({"jsonrpc": "2.0", "id": 424242, "result": {}})
    host.write({"jsonrpc": "2.0", "id": "nobody", "error": {"code": -1, "message": "x"}})
    host.write({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}})
    host.alive()


@check("bad input", "CEP-BASE-9", "CEP-BASE-10")
def errors_say_what_to_do(server: Server) -> None:
    """Every error has `data.retryable` and `data.hint`, and shows neither a traceback nor a local path."""
    host = server.shared()
    for method, params in (("no/such", None), ("context/ingest", {"sessionId": ""}), ("initialize", {})):
        answer = host.request(method, params)
        expect(isinstance(answer.at("/error/data/retryable"), bool), "data.retryable is not a boolean")
        expect(isinstance(answer.at("/error/data/hint"), str), "data.hint is not a string")
        shown = answer.raw.decode()
        for trace in ("Traceback", 'File \\"', "/home/", "/usr/", str(server.folder)):
            expect(trace not in shown, f"an error contains {trace!r}")


@check("bad input", "CEP-BAD-4", "CEP-MSG-4", needs=("context/ingest", "session/export"))
def lone_surrogates(server: Server) -> None:
    """Escaped lone surrogates in a message are accepted and come back unchanged."""
    host, session = server.shared(), server.name()
    message = '{"role":"user","content":"cut \\ud83d"}'
    host.write(
        f'{{"jsonrpc":"2.0","id":"cut","method":"context/ingest","params":{{"sessionId":"{session}","message":{message}}}}}'
    )
    host.answer("cut").result()
    answer = host.result("session/export", {"sessionId": session})
    expect(message.encode() in answer.raw, f"the message came back changed: {answer.raw[:200]!r}")
