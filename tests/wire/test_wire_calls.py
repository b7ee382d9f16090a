"""Running calls: cancelling, order, errors, requests to the host, backpressure, stray output."""

import json
from collections.abc import Callable

import pytest

from tests.wire.harness import ServerProcess, frame, notification, request

Start = Callable[..., ServerProcess]


@pytest.fixture
def echo(start_echo: Start) -> ServerProcess:
    """An initialized tiny server."""
    return start_echo()


def test_a_running_call_is_cancelled_without_effect(echo: ServerProcess) -> None:
    echo.say(request(1, "slow", {"waitMs": 60_000, "text": "no"}), notification("$/cancelRequest", {"id": 1}))
    assert echo.answer(1)["error"]["code"] == -32800
    echo.say(request(2, "stored"))
    assert echo.answer(2)["result"] == {"stored": []}


def test_a_call_that_cannot_stop_gives_its_result(echo: ServerProcess) -> None:
    echo.say(request(1, "stubborn", {"waitMs": 300, "text": "yes"}), request(2, "echo"))
    echo.answer(2)
    echo.say(notification("$/cancelRequest", {"id": 1}), notification("$/cancelRequest", {"id": 1}))
    assert echo.answer(1)["result"] == {"text": "yes"}


def test_a_coroutine_that_has_not_begun_is_cancelled(echo: ServerProcess) -> None:
    echo.say(request(1, "stubborn", {"text": "no"}), notification("$/cancelRequest", {"id": 1}))
    assert echo.answer(1)["error"]["code"] == -32800
    echo.say(request(2, "stored"))
    assert echo.answer(2)["result"] == {"stored": []}
    assert "never awaited" not in echo.errors()


def test_a_waiting_call_is_cancelled_and_never_started(echo: ServerProcess) -> None:
    echo.say(
        request(1, "slow", {"waitMs": 300, "text": "first"}),
        request(2, "slow", {"waitMs": 0, "text": "never"}),
        request(3, "slow", {"waitMs": 0, "text": "third"}),
        notification("$/cancelRequest", {"id": 2}),
    )
    answers = echo.answers(3)
    assert list(answers) == [2, 1, 3]
    assert answers[2]["error"]["code"] == -32800
    echo.say(request(4, "stored"))
    assert echo.answer(4)["result"] == {"stored": ["first", "third"]}


def test_an_id_in_flight_is_not_accepted_twice(echo: ServerProcess) -> None:
    echo.say(request(1, "slow", {"waitMs": 200, "text": "first"}), request(1, "echo", {"text": "second"}))
    first, second = echo.read(), echo.read()
    assert (first["id"], first["error"]["code"]) == (1, -32600)
    assert second["result"] == {"text": "first"}
    echo.say(request(1, "echo", {"text": "again"}))
    assert echo.answer(1)["result"]["text"] == "again"


def test_calls_of_one_lane_keep_their_order_and_lanes_do_not_wait(echo: ServerProcess) -> None:
    echo.say(
        request(1, "slow", {"waitMs": 200, "lane": "a"}),
        request(2, "quick", {"lane": "a"}),
        request(3, "slow", {"waitMs": 0, "lane": "a"}),
        request(4, "quick", {"lane": "b"}),
    )
    assert list(echo.answers(4)) == [4, 1, 2, 3]


def test_a_failing_handler_is_reported_without_details(echo: ServerProcess) -> None:
    echo.say(request(1, "raise"), request(2, "echo"))
    error = echo.answer(1)["error"]
    assert (error["code"], error["message"]) == (-32603, "internal error")
    assert "secret" not in json.dumps(error)
    assert "result" in echo.answer(2)
    assert "ZeroDivisionError" in echo.errors()


def test_an_error_of_a_handler_carries_its_data(echo: ServerProcess) -> None:
    echo.say(request(1, "refuse", {"text": "thing"}))
    error = echo.answer(1)["error"]
    assert error["code"] == 1003
    assert error["data"] == {"retryable": False, "hint": "make one", "thing": "thing"}


PATHS = [
    ({"text": 5}, "/text", "text"),
    ({"messages": {}}, "/messages", "messages"),
    ({"messages": [{"role": "a"}, {"role": 1}]}, "/messages/1/role", "messages[1].role"),
    ({"messages": [{"role": "a"}, {}]}, "/messages/1/role", "messages[1].role"),
    ({"messages": [None]}, "/messages/0", "messages[0]"),
    ({"size": 1.5}, "/size", "size"),
]


@pytest.mark.parametrize(
    ("params", "pointer", "words"), PATHS, ids=[case[1] + " " + str(case[0]) for case in PATHS]
)
def test_wrong_params_are_named(echo: ServerProcess, params: object, pointer: str, words: str) -> None:
    echo.say(request(1, "echo", params))
    error = echo.answer(1)["error"]
    assert (error["code"], error["data"]["path"]) == (-32602, pointer)
    assert words in error["message"]


def test_null_members_count_as_absent(echo: ServerProcess) -> None:
    echo.say(request(1, "echo", {"text": None, "messages": None, "size": None}))
    assert echo.answer(1)["result"]["text"] == ""


@pytest.mark.parametrize(
    "message",
    [
        rb'{"role":"user","content":"cut \ud83d"}',
        rb'{"role":"user","content":"\uDE00 and \ud83d\ude00 and \\ud83d and \uFFFD"}',
        rb'{ "role" : "user" ,"n":1.50,"n2":1e400,"content":"\u00e9\/"}',
        '{"role":"user","content":"中文 é 😀"}'.encode(),
    ],
)
def test_raw_members_come_back_byte_for_byte(echo: ServerProcess, message: bytes) -> None:
    echo.send(frame(b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"x","message":%b}}' % message))
    echo.wait_for(lambda: echo._fill(0.01) and b'"id":1' in echo.output)
    assert message in echo.output


def test_lone_surrogates_in_text_are_shown_as_replacement_characters(echo: ServerProcess) -> None:
    echo.send(
        frame(rb'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"a\ud83d \udc00b \ud83d\ude00"}}')
    )
    assert echo.answer(1)["result"]["text"] == "a� �b 😀"


def test_the_host_answers_a_request_of_the_server(echo: ServerProcess) -> None:
    echo.say(request(1, "askHost", {"text": "how?"}))
    asked = echo.read()
    assert (asked["method"], asked["params"]) == ("host/ask", {"text": "how?"})
    echo.say({"jsonrpc": "2.0", "id": asked["id"], "result": {"text": "so"}})
    assert echo.answer(1)["result"] == {"answer": {"text": "so"}}


BAD_ANSWERS = [
    {"error": {"code": 5, "message": "no"}},
    {"error": {"code": 5, "message": "no", "data": [1]}},
    {"error": "no"},
    {"result": "text instead of an object"},
    {"result": None},
]


@pytest.mark.parametrize("answer", BAD_ANSWERS, ids=str)
def test_a_bad_answer_of_the_host_is_an_error(echo: ServerProcess, answer: dict[str, object]) -> None:
    echo.say(request(1, "askHost"))
    echo.say({"jsonrpc": "2.0", "id": echo.read()["id"], **answer})
    assert "error" in echo.answer(1)


def test_a_request_to_a_slow_host_is_cancelled(echo: ServerProcess) -> None:
    echo.say(request(1, "askHost", {"waitMs": 100}))
    asked = echo.read()
    assert echo.read() == notification("$/cancelRequest", {"id": asked["id"]})
    assert echo.answer(1)["error"]["data"]["retryable"] is True
    echo.say({"jsonrpc": "2.0", "id": asked["id"], "result": {}}, request(2, "echo"))
    assert "result" in echo.answer(2)


def test_cancelling_a_call_cancels_its_requests_to_the_host(echo: ServerProcess) -> None:
    echo.say(request(1, "askHost"))
    asked = echo.read()
    echo.say(notification("$/cancelRequest", {"id": 1}))
    assert echo.read() == notification("$/cancelRequest", {"id": asked["id"]})
    assert echo.answer(1)["error"]["code"] == -32800


def test_beyond_the_limit_requests_are_parked_in_order(start_echo: Start) -> None:
    server = start_echo("--small")
    server.say(*(request(id, "slow", {"waitMs": 50, "lane": str(id)}) for id in range(6)), request(6, "echo"))
    assert list(server.answers(7)) == [0, 1, 2, 3, 4, 5, 6]


def test_a_parked_request_can_be_cancelled(start_echo: Start) -> None:
    server = start_echo("--small")
    server.say(request(1, "never"), request(2, "askHost"), request(3, "echo"), request(4, "echo"))
    asked = server.read()
    server.say(notification("$/cancelRequest", {"id": 3}))
    assert server.answer(3)["error"]["code"] == -32800
    server.say({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
    assert list(server.answers(2)) == [2, 4]


def test_too_many_parked_requests_are_refused_at_once(start_echo: Start) -> None:
    server = start_echo("--small")
    server.say(request(1, "never"), request(2, "askHost"))
    asked = server.read()
    server.say(*(request(id, "echo", {"text": "x" * 100}) for id in range(3, 20)))
    server.say(notification("$/cancelRequest", {"id": 3}))
    refused: list[object] = []
    while (answer := server.read())["id"] != 3:
        assert (answer["error"]["code"], answer["error"]["data"]["retryable"]) == (1007, True)
        refused.append(answer["id"])
    assert answer["error"]["code"] == -32800
    kept = [id for id in range(4, 20) if id not in refused]
    assert refused
    assert kept
    server.say({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
    assert list(server.answers(1 + len(kept))) == [2, *kept]


def test_answers_and_exit_are_read_although_requests_are_parked(start_echo: Start) -> None:
    server = start_echo("--small")
    server.say(request(1, "never"), request(2, "never"), request(3, "echo"), notification("exit"))
    server.rest()
    assert server.exit_code() == 1


def test_a_host_that_writes_without_reading_gets_everything_in_the_end(echo: ServerProcess) -> None:
    count, size = 200, 1_000_000
    echo.say(*(request(id, "blob", {"size": size}) for id in range(count)))
    echo.say(request("ask", "askHost"), notification("$/cancelRequest", {"id": count - 1}))
    seen = 0
    for _ in range(count):
        answer = echo.read()
        if "result" in answer:
            assert len(answer["result"]["blob"]) == size
            seen += 1
        else:
            assert (answer["id"], answer["error"]["code"]) == (count - 1, -32800)
    assert seen == count - 1
    assert echo.read()["method"] == "host/ask"


def test_output_printed_by_a_handler_does_not_reach_the_host(echo: ServerProcess) -> None:
    echo.say(request(1, "print", {"text": "x"}), request(2, "echo"))
    assert list(echo.answers(2)) == [1, 2]
    echo.end_input()
    assert echo.rest() == []
    assert "stray" in echo.errors()
