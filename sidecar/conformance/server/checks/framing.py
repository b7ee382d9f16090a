"""How bytes become messages."""

from __future__ import annotations

from collections.abc import Callable

from sidecar.conformance.expecting import Violation, expect, expect_equal
from sidecar.conformance.server.host import Host
from sidecar.conformance.server.subject import Server
from sidecar.conformance.server.suite import check
from sidecar.conformance.server.wire import encode, frame, request

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
    """A body behind `Content-Length` is answered in a frame of its own, with the id of the request."""
    host = server.shared()
    host.process.send(frame(request("framing-1", _PING, {})))
    _expect_answer(host, "framing-1")


@check("framing", "CEP-FRAME-5")
def header_names_in_any_case_and_order(server: Server) -> None:
    """Header names are taken in any case and order, and unknown headers are ignored."""
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
    """A charset other than utf-8 is answered with -32700, the frame is skipped, and the next one is read."""
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
    """A frame that arrives byte by byte, and two frames that arrive at once, are read alike."""
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
    """A first byte `{` selects one message a line in both directions."""
    with server.start(lines=True) as host:
        answer = host.initialize(server.params())
        answer.result()
        expect(b"\n" not in answer.raw, "an answer has a line break inside")
        host.alive()


@check("framing", "CEP-FRAME-10")
def newline_framing_is_lenient(server: Server) -> None:
    """A byte order mark, blanks, empty lines, CR LF and a last line without LF are accepted."""
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
    """Standard output has frames and nothing else, from the first byte to the last."""
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
        expect(not host.rest(), "more came behind the answer")
        expect_equal(host.process.exit_status(), 1, "exit status")


def _fatal_check(name: str, seen: str, data: Callable[[], bytes], *clauses: str) -> None:
    def run(server: Server) -> None:
        _fatal(server, data())

    run.__name__ = name
    run.__doc__ = f"{seen} is answered with -32600 and id null, and the process ends with status 1."
    check("framing", "CEP-BAD-12", *clauses)(run)


_HIDDEN = frame(request("forged", _PING, {}))

_fatal_check("length_missing", "A header block without a length", lambda: b"X-Other: 1\r\n\r\n" + _HIDDEN)
_fatal_check("length_negative", "A negative length", lambda: b"Content-Length: -5\r\n\r\n" + _HIDDEN)
_fatal_check(
    "length_not_digits", "A length that is not plain digits", lambda: b"Content-Length: 0x10\r\n\r\n"
)
_fatal_check(
    "lengths_that_differ",
    "A pair of different lengths",
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
    "A length of more than four times the limit",
    lambda: b"Content-Length: 999999999999999\r\n\r\n",
)


@check("framing", "CEP-BAD-13")
def no_search_for_the_next_header(server: Server) -> None:
    """A frame inside the body of an unusable one is not read as a request."""
    host = server.shared()
    host.process.send(frame(b"{not json " + _HIDDEN))
    expect_equal(host.answer(None).code, -32700, "code of the answer to the frame around")
    host.alive()
    if any(message.id == "forged" for message in host.early()):
        raise Violation("text inside a frame was executed as a request")


@check("framing", "CEP-BAD-11", "CEP-INIT-11")
def body_over_the_limit(server: Server) -> None:
    """A body over `limits.maxMessageBytes` gets -32600 with `data.limit`, and the connection goes on."""
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
    """A line over `limits.maxMessageBytes` gets -32600 with `data.limit`, and the connection goes on."""
    with server.connect(lines=True, config={"limits": {"maxMessageBytes": 65536}}) as host:
        host.write(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"' + b"x" * 100_000 + b'"}}')
        answer = host.answer(None)
        expect_equal(answer.code, -32600, "code of the answer")
        expect_equal(answer.at("/error/data/limit"), 65536, "data.limit")
        host.alive()
