"""initialize, shutdown and exit: which requests are allowed when."""

from collections.abc import Callable

import pytest

from tests.wire.harness import ServerProcess, Target, frame, notification, request

Start = Callable[..., ServerProcess]


def _codes(server: ServerProcess) -> list[tuple[object, object]]:
    return [(answer["id"], answer.get("error", {}).get("code", "ok")) for answer in server.rest()]


def test_notifications_before_initialize_are_dropped(start: Start, target: Target) -> None:
    server = start(initialized=False)
    server.say(notification("initialized", {}), notification("nothing/known"))
    server.say(request(1, "initialize", target.initialize))
    assert "result" in server.answer(1)


def test_initialize_accepts_the_params_of_an_editor(start: Start, target: Target) -> None:
    server = start(initialized=False)
    params = {
        **target.initialize,
        "clientInfo": {"name": "editor", "version": "1"},
        "locale": "en",
        "rootPath": None,
        "rootUri": "file:///tmp",
        "capabilities": {"workspace": {"applyEdit": True}, "window": {"workDoneProgress": True}},
        "trace": "off",
        "workspaceFolders": [{"uri": "file:///tmp", "name": "tmp"}],
    }
    server.say(request(1, "initialize", params))
    assert "result" in server.answer(1)


def test_requests_after_initialize_see_its_failure(start_echo: Start) -> None:
    server = start_echo(initialized=False)
    server.say(
        request(1, "initialize", {"locale": "slow-fail"}), request(2, "echo"), request(3, "initialize")
    )
    answers = server.answers(3)
    assert list(answers) == [1, 2, 3]
    assert answers[1]["error"]["code"] == 1001
    assert answers[2]["error"]["code"] == -32002
    assert "result" in answers[3]


def test_wrong_params_of_initialize_leave_it_open(start: Start, target: Target) -> None:
    server = start(initialized=False)
    server.say(request(1, "initialize", {"processId": "many"}))
    error = server.answer(1)["error"]
    assert (error["code"], error["data"]["path"]) == (-32602, "/processId")
    server.say(request(2, target.ping, {}), request(3, "initialize", target.initialize))
    assert server.answer(2)["error"]["code"] == -32002
    assert "result" in server.answer(3)


def test_initialize_cannot_be_cancelled(start_echo: Start) -> None:
    server = start_echo(initialized=False)
    server.say(request(1, "initialize", {"locale": "slow"}), notification("$/cancelRequest", {"id": 1}))
    assert "result" in server.answer(1)


def test_a_request_that_waits_for_initialize_can_be_cancelled(start_echo: Start) -> None:
    server = start_echo(initialized=False)
    server.say(
        request(1, "initialize", {"locale": "slow"}),
        request(2, "quick", {"text": "no"}),
        request(3, "stored"),
        notification("$/cancelRequest", {"id": 2}),
    )
    answers = server.answers(3)
    assert list(answers) == [2, 1, 3]
    assert answers[2]["error"]["code"] == -32800
    assert answers[3]["result"] == {"stored": []}


def test_exit_before_initialize_ends_with_1(start: Start) -> None:
    server = start(initialized=False)
    server.say(notification("exit"))
    assert server.exit_code() == 1


def test_exit_may_follow_shutdown_without_a_wait(start: Start) -> None:
    server = start()
    server.say(request(1, "shutdown"), notification("exit"))
    assert _codes(server) == [(1, "ok")]
    assert server.exit_code() == 0


def test_everything_may_be_sent_at_once(start: Start, target: Target) -> None:
    server = start(initialized=False)
    server.say(
        request(1, "initialize", target.initialize),
        notification("initialized", {}),
        request(2, target.ping, {}),
        request(3, "shutdown"),
        notification("exit"),
    )
    assert _codes(server) == [(1, "ok"), (2, "ok"), (3, "ok")]
    assert server.exit_code() == 0


def test_exit_does_not_wait_for_initialize(start_echo: Start) -> None:
    server = start_echo(initialized=False)
    server.say(request(1, "initialize", {"locale": "slow"}), notification("exit"))
    assert server.exit_code() == 1


def test_nothing_after_exit_is_read(start: Start, target: Target) -> None:
    server = start()
    server.say(notification("exit"), request(1, target.ping, {}))
    assert _codes(server) == []
    assert server.exit_code() == 1


def test_shutdown_waits_for_earlier_requests(start_echo: Start) -> None:
    server = start_echo()
    server.say(
        request(1, "slow", {"waitMs": 300}), request(2, "slow", {"waitMs": 10}), request(3, "shutdown")
    )
    assert list(server.answers(3)) == [1, 2, 3]


def test_shutdown_cancels_requests_that_take_too_long(start_echo: Start) -> None:
    server = start_echo()
    server.say(
        request(1, "slow", {"waitMs": 60_000}),
        request(2, "slow", {"waitMs": 10}),
        request(3, "never"),
        request(4, "shutdown"),
        notification("exit"),
    )
    assert sorted(_codes(server), key=str) == [(1, -32800), (2, -32800), (3, -32800), (4, "ok")]
    assert server.exit_code() == 0


def test_shutdown_cannot_be_cancelled(start_echo: Start) -> None:
    server = start_echo()
    server.say(
        request(1, "slow", {"waitMs": 200}),
        request(2, "shutdown"),
        notification("$/cancelRequest", {"id": 2}),
    )
    answers = server.answers(2)
    assert "result" in answers[1]
    assert "result" in answers[2]


def test_request_methods_without_an_id_do_nothing(start: Start, target: Target) -> None:
    server = start()
    server.say(notification("shutdown"), notification("initialize"), request(1, target.ping, {}))
    assert "result" in server.answer(1)
    assert "shutdown" in server.errors()


@pytest.mark.parametrize("argument", ["--stdio"])
def test_the_argument_that_editors_append_is_accepted(target: Target, argument: str) -> None:
    with ServerProcess((*target.command, argument)) as server:
        assert "result" in server.initialize(target.initialize)


def test_an_answer_is_not_mistaken_for_a_request(start: Start, target: Target) -> None:
    server = start()
    server.send(frame('{"jsonrpc":"2.0","id":1,"result":{"jsonrpc":"2.0","id":2,"method":"shutdown"}}'))
    server.say(request(3, target.ping, {}))
    assert "result" in server.answer(3)
