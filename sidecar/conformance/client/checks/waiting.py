"""What a runtime is told where a request does not simply succeed."""

from __future__ import annotations

from sidecar.conformance.client.driver import failed_with
from sidecar.conformance.client.played import PlayedServer
from sidecar.conformance.client.subject import Client, Stage
from sidecar.conformance.client.suite import check
from sidecar.conformance.kit import expect, expect_equal
from sidecar.conformance.server.wire import Json, Message

_GET = "session/get"
_INGEST = "context/ingest"
_MESSAGE: Json = {"role": "user", "content": "x"}
_ERRORS: tuple[tuple[int, dict[str, Json]], ...] = (
    (1002, {"required": 900, "tokenBudget": 500}),
    (1003, {"sessionId": "s"}),
    (1005, {"engineId": "e", "method": "assemble", "message": "It broke."}),
    (1007, {"retryable": True}),
    (-32602, {"path": "/sessionId"}),
    (-32603, {}),
    (4242, {}),
)


@check("waiting", "CEP-BASE-9", "CEP-VER-2")
def errors_reach_the_runtime(client: Client) -> None:
    """An error is told with code, message and data, also under a code that the client does not know."""
    with client.stage() as stage:
        server = stage.open()
        for code, data in _ERRORS:
            stage.ask(str(code), _GET, sessionId="s")
            server.refuse(server.request(_GET), code, f"What happened is {code}.", **data)
            failure = stage.driver.failure(str(code))
            expect_equal(failed_with(failure), f"answer {code}", "the failure")
            expect(f"What happened is {code}." in str(failure.get("message")), f"the message: {failure}")
            told = failure.get("data")
            expect(isinstance(told, dict) and data.items() <= told.items(), f"data of {code} is {told}")
            expect(isinstance(told, dict) and "hint" in told, f"no hint in the data of {code}")


@check("waiting", "CEP-CANCEL-1", needs=("cancelling",))
def taking_back(client: Client) -> None:
    """A request that the runtime takes back is cancelled by its id; the answer -32800 ends it."""
    with client.stage() as stage:
        server = stage.open()
        request = _cancelled(stage, server)
        server.refuse(request, -32800, "It was cancelled.")
        expect_equal(stage.driver.failure("slow").get("kind"), "cancelled", "kind of the failure")
        _expect_alive(stage, server)


@check("waiting", "CEP-CANCEL-2", needs=("cancelling",))
def taking_back_too_late(client: Client) -> None:
    """A result in spite of `$/cancelRequest` upsets nothing."""
    with client.stage() as stage:
        server = stage.open()
        request = _cancelled(stage, server)
        server.answer(request, {"engines": []})
        stage.driver.report("slow")
        _expect_alive(stage, server)


@check("waiting", "CEP-CANCEL-1", needs=("timeouts",))
def slow_servers(client: Client) -> None:
    """Where no answer comes in time the request is cancelled and the runtime told; the connection goes on."""
    with client.stage() as stage:
        server = stage.open()
        stage.driver.do("request", "slow", method="engine/list", params={}, timeoutMs=300)
        request = server.request("engine/list")
        expect_equal(
            server.notification("$/cancelRequest").at("/params/id"), request.id, "id that is cancelled"
        )
        server.refuse(request, -32800, "It was cancelled.")
        expect_equal(stage.driver.failure("slow").get("kind"), "timeout", "kind of the failure")
        _expect_alive(stage, server)


@check("waiting", "CEP-LIFE-12", "CEP-ID-3")
def crashes(client: Client) -> None:
    """Where the server ends under a request that stores, that is told, and nothing is sent a second time."""
    with client.stage() as stage:
        server = stage.open()
        stage.ask("lost", _INGEST, sessionId="s", message=_MESSAGE)
        server.request(_INGEST)
        server.exit(1)
        expect_equal(stage.driver.failure("lost").get("kind"), "lost", "kind of the failure")
        again = stage.another_server()
        if again is not None:
            again.welcome()
            stage.driver.do("close", "close")
            expect_equal(
                again.next().method in ("initialized", "shutdown"), True, "whether it sends no ingest"
            )


@check("waiting", "CEP-LIFE-13")
def outputs_that_end(client: Client) -> None:
    """Where the server closes its output the runtime is told, and the process is not left behind."""
    with client.stage() as stage:
        server = stage.open()
        stage.ask("lost", _INGEST, sessionId="s", message=_MESSAGE)
        server.request(_INGEST)
        server.close_output()
        expect_equal(stage.driver.failure("lost").get("kind"), "lost", "kind of the failure")
        stage.driver.do("close", "close")
        stage.driver.report("close")
        expect(server.gone(5), "the process is still there")


@check("waiting", "CEP-FRAME-6", level="should")
def bytes_that_are_no_frame(client: Client) -> None:
    """Where no header has a length the runtime is told, for nothing can be read any more."""
    with client.stage() as stage:
        server = stage.open()
        stage.ask("lost", _INGEST, sessionId="s", message=_MESSAGE)
        server.request(_INGEST)
        server.write(b"A stray print.\r\n\r\n")
        expect_equal(stage.driver.failure("lost").get("kind"), "lost", "kind of the failure")


@check("waiting", "CEP-FRAME-1")
def standard_error_is_read(client: Client) -> None:
    """A server that writes a megabyte to standard error is not held up by it."""
    with client.stage() as stage:
        server = stage.open()
        server.complain(b"It is fine, only talkative.\n" * 40_000)
        _expect_alive(stage, server)


def _cancelled(stage: Stage, server: PlayedServer) -> Message:
    stage.ask("slow", "engine/list")
    request = server.request("engine/list")
    stage.driver.do("cancel", "cancel", target="slow")
    expect_equal(server.notification("$/cancelRequest").at("/params/id"), request.id, "id that is cancelled")
    return request


def _expect_alive(stage: Stage, server: PlayedServer) -> None:
    stage.ask("alive", "engine/list")
    server.answer(server.request("engine/list"), {"engines": []})
    stage.driver.result("alive")
