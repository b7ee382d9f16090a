"""Frames: unusual but valid ones, bad ones that are skipped, and fatal ones."""

from collections.abc import Callable

from tests.wire.conftest import LiveServer
from tests.wire.harness import ServerProcess, frame

CALL = b'{"jsonrpc":"2.0","id":7,"method":"nothing/known"}'
N = b"%d" % len(CALL)

FINE = [
    ("the plain form", b"Content-Length: " + N + b"\r\n\r\n"),
    ("a name in lower case", b"content-length: " + N + b"\r\n\r\n"),
    ("a name in upper case", b"CONTENT-LENGTH: " + N + b"\r\n\r\n"),
    ("no space", b"Content-Length:" + N + b"\r\n\r\n"),
    ("many spaces", b"Content-Length:   \t" + N + b"  \r\n\r\n"),
    ("leading zeros", b"Content-Length: 000" + N + b"\r\n\r\n"),
    ("LF only", b"Content-Length: " + N + b"\n\n"),
    ("LF, then CR LF", b"Content-Length: " + N + b"\n\r\n"),
    (
        "a type behind it",
        b"Content-Length: " + N + b"\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
    ),
    ("a type before it", b"Content-Type: application/json\r\nContent-Length: " + N + b"\r\n\r\n"),
    ("the old charset name", b"Content-Type: x/y; charset=utf8\r\nContent-Length: " + N + b"\r\n\r\n"),
    ("a quoted charset", b'Content-Type: x/y; Charset="UTF-8"\r\nContent-Length: ' + N + b"\r\n\r\n"),
    ("unknown headers", b"X-Trace: a:b:c\r\nContent-Length: " + N + b"\r\nHost: here\r\n\r\n"),
    ("the same length twice", b"Content-Length: " + N + b"\r\nContent-Length: " + N + b"\r\n\r\n"),
    ("a line end in front", b"\r\nContent-Length: " + N + b"\r\n\r\n"),
    ("headers of 8000 bytes", b"X: " + b"y" * 7960 + b"\r\nContent-Length: " + N + b"\r\n\r\n"),
]


def test_headers_may_be_written_in_many_ways(live: LiveServer) -> None:
    for name, head in FINE:
        live.server().send(head + CALL)
        error = live.server().answer(7)["error"]
        assert error["code"] == -32601, f"{name}: {error}"
        live.ping(about=name)


def test_a_body_may_contain_text_that_looks_like_a_frame(live: LiveServer) -> None:
    server = live.server()
    forged = 'Content-Length: 51\r\n\r\n{"jsonrpc":"2.0","id":666,"method":"nothing/known"}'
    server.send(frame({"jsonrpc": "2.0", "id": 7, "method": "nothing/known", "params": {"text": forged}}))
    assert server.answer(7)["error"]["code"] == -32601
    live.ping()


def test_a_large_body_is_read_whole(live: LiveServer) -> None:
    server = live.server()
    params = {"text": "é" * 2_000_000}
    server.send(frame({"jsonrpc": "2.0", "id": 7, "method": "nothing/known", "params": params}))
    assert server.answer(7)["error"]["code"] == -32601


SKIPPED = [
    ("an empty body", b"Content-Length: 0\r\n\r\n", b"", -32700),
    ("an empty body and a type", b"Content-Length: 0\r\nContent-Type: a/b\r\n\r\n", b"", -32700),
    ("UTF-16", b"Content-Type: a/b; charset=utf-16\r\nContent-Length: " + N + b"\r\n\r\n", CALL, -32700),
    ("Latin-1", b"Content-Length: " + N + b"\r\nContent-Type: a/b;charset=iso-8859-1\r\n\r\n", CALL, -32700),
    ("bad UTF-8", b"Content-Length: 2\r\n\r\n", b"\xff\xfe", -32700),
    (
        "a frame inside a bad body",
        b"Content-Length: 26\r\n\r\n",
        b"Content-Length: 2\r\n\r\n{}\r\n\r\n"[:26],
        -32700,
    ),
]


def test_a_bad_body_of_known_length_is_skipped(live: LiveServer) -> None:
    for name, head, body, code in SKIPPED:
        live.server().send(head + body)
        error = live.server().answer(None)["error"]
        assert error["code"] == code, f"{name}: {error}"
        live.ping(about=name)


FATAL = [
    ("no length", b"Content-Type: a/b\r\n\r\n{}"),
    ("no headers at all", b"hello\r\n\r\n"),
    ("a body without headers", CALL),
    ("a negative length", b"Content-Length: -5\r\n\r\n"),
    ("a length with a sign", b"Content-Length: +5\r\n\r\n"),
    ("a length that is no number", b"Content-Length: many\r\n\r\n"),
    ("an empty length", b"Content-Length:\r\n\r\n"),
    ("a length with a fraction", b"Content-Length: 5.0\r\n\r\n"),
    ("a hexadecimal length", b"Content-Length: 0x5\r\n\r\n"),
    ("a length with an underscore", b"Content-Length: 1_0\r\n\r\n"),
    ("a length in Arabic digits", "Content-Length: ٥\r\n\r\n".encode()),
    ("two numbers in one header", b"Content-Length: 5, 5\r\n\r\n"),
    ("two different lengths", b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n"),
    ("headers over 8 KiB", b"X: " + b"y" * 9000),
    ("many headers over 8 KiB", b"X: y\r\n" * 2000),
    ("a length far over the limit", b"Content-Length: 99999999999\r\n\r\n"),
    ("a length of 5000 digits", b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n"),
    ("an HTTP request", b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"),
    ("a TLS handshake", b"\x16\x03\x01\x02\x00\x01\x00"),
    ("a header line without a colon", b"garbage\r\nContent-Length: 2\r\n\r\n{}"),
]


def test_a_frame_of_unknown_length_ends_the_connection(start: Callable[..., ServerProcess]) -> None:
    for name, data in FATAL:
        server = start()
        server.send(data + frame(CALL))
        answers = server.rest()
        found = [(answer["id"], answer["error"]["code"]) for answer in answers]
        assert found == [(None, -32600)], f"{name}: {answers}"
        assert answers[0]["error"]["data"]["hint"], name
        assert server.exit_code() == 1, name


def test_requests_before_a_fatal_frame_are_answered(start: Callable[..., ServerProcess]) -> None:
    server = start()
    server.send(frame(CALL) + b"Content-Length: x\r\n\r\n")
    assert [answer["id"] for answer in server.rest()] == [7, None]
    assert server.exit_code() == 1


def test_a_fatal_frame_ends_a_server_that_was_never_initialized(start: Callable[..., ServerProcess]) -> None:
    server = start(initialized=False)
    server.send(b"Content-Length: x\r\n\r\n")
    assert [answer["error"]["code"] for answer in server.rest()] == [-32600]
    assert server.exit_code() == 1


def test_a_body_over_the_limit_is_refused_and_skipped(start_echo: Callable[..., ServerProcess]) -> None:
    server = start_echo("--small")
    server.send(frame(b"[" * 1001) + frame(CALL) + frame(b"[" * 4000) + frame(CALL))
    first, second = server.read(), server.read()
    assert (first["id"], first["error"]["code"], first["error"]["data"]["limit"]) == (None, -32600, 1000)
    assert second["id"] == 7
    assert server.read()["error"]["data"]["limit"] == 1000
    assert server.read()["id"] == 7


def test_a_body_over_four_times_the_limit_is_fatal(start_echo: Callable[..., ServerProcess]) -> None:
    server = start_echo("--small")
    server.send(b"Content-Length: 4001\r\n\r\n")
    assert server.answer(None)["error"]["code"] == -32600
    assert server.exit_code() == 1
