"""How the server ends: end of input, signals, a host that dies."""

import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.wire.harness import ServerProcess, Target, frame, notification, request

Start = Callable[..., ServerProcess]


def _codes(server: ServerProcess) -> dict[object, object]:
    return {
        answer["id"]: answer.get("error", {}).get("code", "ok")
        for answer in server.rest()
        if "method" not in answer
    }


@pytest.mark.parametrize("initialized", [True, False])
def test_end_of_input_between_messages_ends_with_0(start: Start, initialized: bool) -> None:
    server = start(initialized=initialized)
    server.end_input()
    assert server.rest() == []
    assert server.exit_code() == 0


INSIDE = [
    ("a header name", b"Content-Le"),
    ("headers", b"Content-Length: 5\r\n"),
    ("headers but for the last byte", b"Content-Length: 5\r\n\r"),
    ("no byte of a body", b"Content-Length: 5\r\n\r\n"),
    ("half a body", b'Content-Length: 5\r\n\r\n{"'),
    ("a skipped body", b"Content-Type: a/b;charset=utf-16\r\nContent-Length: 5\r\n\r\n{"),
]


@pytest.mark.parametrize(("name", "data"), INSIDE, ids=[name for name, _ in INSIDE])
def test_end_of_input_inside_a_message_ends_with_1(start: Start, name: str, data: bytes) -> None:
    server = start()
    server.send(data)
    server.end_input()
    assert server.exit_code() == 1
    assert "the input ended inside a message" in server.errors()


def test_end_of_input_inside_a_line_ends_with_1(start: Start) -> None:
    server = start(lines=True)
    server.send(b'{"jsonrpc":"2.0","id":1,"meth')
    server.end_input()
    assert [answer["error"]["code"] for answer in server.rest()] == [-32700]
    assert server.exit_code() == 1


def test_a_line_end_after_the_last_body_is_not_a_message(start: Start) -> None:
    server = start()
    server.send(b"\n")
    server.end_input()
    assert server.exit_code() == 0


@pytest.mark.parametrize("stop", [ServerProcess.end_input, ServerProcess.terminate], ids=["end", "SIGTERM"])
def test_received_requests_are_answered_at_the_end(
    start: Start, target: Target, stop: Callable[[ServerProcess], None]
) -> None:
    server = start()
    server.say(*(request(id, target.ping, {}) for id in range(50)))
    stop(server)
    assert _codes(server) == dict.fromkeys(range(50), "ok")
    assert server.exit_code() == 0


@pytest.mark.parametrize("stop", [ServerProcess.end_input, ServerProcess.terminate], ids=["end", "SIGTERM"])
def test_requests_that_take_too_long_are_cancelled_at_the_end(
    start_echo: Start, stop: Callable[[ServerProcess], None]
) -> None:
    server = start_echo()
    server.say(
        request(1, "slow", {"waitMs": 60_000}),
        request(2, "slow", {"waitMs": 0}),
        request(3, "slow", {"waitMs": 200, "lane": "b"}),
        request(4, "quick", {"lane": "b"}),
        request(5, "stubborn", {"waitMs": 60_000}),
    )
    stop(server)
    assert _codes(server) == {1: -32800, 2: -32800, 3: "ok", 4: "ok", 5: -32800}
    assert server.exit_code() == 0


def test_at_the_end_of_input_work_that_goes_on_is_finished_however_long_it_takes(start_echo: Start) -> None:
    server = start_echo()
    server.say(*(request(id, "slow", {"waitMs": 700, "lane": "one"}) for id in range(5)))
    server.end_input()
    assert _codes(server) == dict.fromkeys(range(5), "ok")
    assert server.exit_code() == 0


def test_sigterm_does_not_wait_for_work_that_goes_on(start_echo: Start) -> None:
    server = start_echo()
    server.say(*(request(id, "slow", {"waitMs": 700, "lane": "one"}) for id in range(8)))
    server.terminate()
    assert set(_codes(server).values()) == {"ok", -32800}
    assert server.exit_code() == 0


@pytest.mark.parametrize("lines", [False, True], ids=["frames", "lines"])
def test_a_server_without_memory_to_read_ends_and_says_why(start: Start, target: Target, lines: bool) -> None:
    server = start(lines=lines)
    server.say(request(1, target.ping, {}))
    server.answer(1)
    held = int(Path(f"/proc/{server.pid}/statm").read_text().split()[0]) * resource.getpagesize()
    limit = held + (24 << 20)
    resource.prlimit(server.pid, resource.RLIMIT_AS, (limit, limit))
    body = b'{"jsonrpc":"2.0","id":2,"method":"x","params":{"text":"' + b"y" * (64 << 20) + b'"}}'
    with suppress(BrokenPipeError):
        server.send(body + b"\n" if lines else frame(body))
    assert server.exit_code() == 1
    assert "out of memory" in server.errors()


def test_requests_that_wait_for_the_host_are_aborted_at_the_end(start_echo: Start) -> None:
    server = start_echo()
    server.say(request(1, "askHost"), request(2, "slow", {"waitMs": 200}))
    assert server.read()["method"] == "host/ask"
    server.end_input()
    assert _codes(server) == {1: -32800, 2: "ok"}
    assert server.exit_code() == 0


def test_sigterm_inside_a_message_ends_with_1(start: Start, target: Target) -> None:
    server = start()
    server.say(request(1, target.ping, {}))
    server.answer(1)
    server.send(b"Content-Length: 500\r\n\r\n{")
    server.terminate()
    assert server.exit_code() == 1


def test_sigterm_before_anything_was_said_ends_with_0(start: Start) -> None:
    server = start(initialized=False)
    server.say(request(1, "nothing/known"))
    server.answer(1)
    server.terminate()
    assert server.exit_code() == 0


def test_end_of_input_during_initialize_waits_for_it(start_echo: Start) -> None:
    server = start_echo(initialized=False)
    server.say(request(1, "initialize", {"locale": "slow"}), request(2, "quick"))
    server.end_input()
    assert _codes(server) == {1: "ok", 2: "ok"}
    assert server.exit_code() == 0
    assert server.errors().count("closed") == 1


def test_an_initialize_that_is_stuck_does_not_keep_the_server(start_echo: Start) -> None:
    server = start_echo(initialized=False)
    server.say(
        request(1, "initialize", {"locale": "stuck"}),
        notification("initialized", {}),
        request(2, "quick"),
        notification("$/setTrace", {"value": "off"}),
    )
    server.end_input()
    assert _codes(server) == {1: -32800, 2: -32800}
    assert server.exit_code(8) == 0


@pytest.mark.parametrize("pid", [None, 0, -1, 2**22 + 5, 2**40])
def test_a_host_that_was_never_alive_is_not_watched(start: Start, target: Target, pid: int | None) -> None:
    server = start(processId=pid)
    server.say(request(1, target.ping, {}))
    assert "result" in server.answer(1)


def test_a_host_that_no_longer_reads_ends_the_server(start: Start, target: Target) -> None:
    server = start()
    server.close_output()
    server.say(request(1, target.ping, {}))
    assert server.exit_code() == 0


def test_closing_happens_once(start_echo: Start) -> None:
    server = start_echo()
    server.say(request(1, "shutdown"))
    server.answer(1)
    server.end_input()
    assert server.exit_code() == 0
    assert server.errors().count("closed") == 1
