"""Newline-delimited JSON, as typed into a shell."""

import json
from collections.abc import Callable

import pytest

from tests.wire.harness import ServerProcess, Target, request

CALL = b'{"jsonrpc":"2.0","id":7,"method":"nothing/known"}'


@pytest.fixture
def lines(start: Callable[..., ServerProcess]) -> ServerProcess:
    """A server addressed in lines from the first byte."""
    return start(lines=True)


BAD = [
    ("an unfinished line", b'{"jsonrpc":\n', -32700),
    ("words", b"what?\n", -32700),
    ("a header", b"Content-Length: 2\n", -32700),
    ("a batch", b"[" + CALL + b"]\n", -32600),
    ("bad UTF-8", b'{"a":"\xff"}\n', -32700),
    ("NaN", b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":NaN}}\n', -32700),
    ("a number", b"5\n", -32600),
]


def test_a_bad_line_is_answered_and_the_next_one_is_read(lines: ServerProcess) -> None:
    for name, data, code in BAD:
        lines.send(data + CALL + b"\n")
        codes = lines.answer(None)["error"]["code"], lines.answer(7)["error"]["code"]
        assert codes == (code, -32601), name


OPENINGS = [
    ("a byte order mark", b"\xef\xbb\xbf"),
    ("white space", b" \r\n\t\n"),
    ("white space and a mark", b"\n\xef\xbb\xbf\n"),
]


def test_the_first_byte_that_is_not_white_space_decides_the_framing(
    start: Callable[..., ServerProcess], target: Target
) -> None:
    for name, opening in OPENINGS:
        server = start(initialized=False, lines=True)
        for byte in opening:
            server.send(bytes((byte,)))
        server.say(request(1, "initialize", target.initialize))
        assert "result" in server.answer(1), name


def test_white_space_may_come_before_headers_too(start: Callable[..., ServerProcess], target: Target) -> None:
    server = start(initialized=False)
    server.send(b"\r\n \n")
    server.say(request(1, "initialize", target.initialize))
    assert "result" in server.answer(1)


def test_an_opening_bracket_speaks_lines_too(start: Callable[..., ServerProcess]) -> None:
    server = start(initialized=False, lines=True)
    server.send(b"[]\n")
    assert server.answer(None)["error"]["code"] == -32600


def test_a_whole_conversation_may_be_piped_in(start: Callable[..., ServerProcess], target: Target) -> None:
    server = start(initialized=False, lines=True)
    server.say(
        request(1, "initialize", target.initialize),
        {"jsonrpc": "2.0", "method": "initialized"},
        request(2, target.ping, {}),
        request(3, "shutdown"),
        {"jsonrpc": "2.0", "method": "exit"},
    )
    server.end_input()
    assert [(answer["id"], "result" in answer) for answer in server.rest()] == [
        (1, True),
        (2, True),
        (3, True),
    ]
    assert server.exit_code() == 0


def test_a_line_over_the_limit_is_refused_and_skipped(start_echo: Callable[..., ServerProcess]) -> None:
    server = start_echo("--small", lines=True)
    server.send(b"[" * 2000)
    assert server.answer(None)["error"]["data"]["limit"] == 1000
    server.send(b"[" * 1000 + b"\n" + CALL + b"\n")
    assert server.answer(7)["error"]["code"] == -32601


def test_a_line_without_end_is_fatal(start_echo: Callable[..., ServerProcess]) -> None:
    server = start_echo("--small", lines=True)
    server.send(b"[" * 1500)
    server.answer(None)
    server.send(b"[" * 3000)
    assert server.answer(None)["error"]["code"] == -32600
    assert server.exit_code() == 1


def test_line_breaks_between_tokens_become_spaces(start_echo: Callable[..., ServerProcess]) -> None:
    server = start_echo(lines=True)
    message = '{"role":"user",\r"content":"a\\nb"}'
    line = json.dumps(request(7, "echo", {"message": "@"})).replace('"@"', message)
    server.send(line.encode() + b"\n")
    answer = server.answer(7)
    assert answer["result"]["message"] == {"role": "user", "content": "a\nb"}
