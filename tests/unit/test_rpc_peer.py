"""Two peers over real sockets: calls both ways, cancellation, lanes, backpressure, lost connections."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import pytest
from msgspec import Raw, Struct

from sidecar.rpc.dispatch import HOLD, Hold, PeerLimits
from sidecar.rpc.errors import ConnectionLost, InvalidResult, RemoteError, RequestTimedOut, RpcError
from sidecar.rpc.framing import FrameReader
from sidecar.rpc.peer import End, Peer, Progress, create_progress
from sidecar.rpc.router import PENDING, Call, Order, Router
from sidecar.rpc.stdio import StdioTransport

LIMIT_S = 20.0


class Text(Struct):
    text: str = ""


class Pair(Struct):
    """A server, a client, and what the client's socket can do to the connection."""

    server: Peer
    client: Peer
    client_socket: socket.socket


def run(work: Coroutine[object, object, None]) -> None:
    """Run one test within the time limit."""
    asyncio.run(asyncio.wait_for(work, LIMIT_S))


@asynccontextmanager
async def connected(
    server_router: Router, client_router: Router | None = None, limits: PeerLimits | None = None
) -> AsyncIterator[Pair]:
    ends = socket.socketpair()
    server, client = (
        Peer(router, StdioTransport(end.fileno(), end.fileno()), bounds)
        for router, end, bounds in (
            (server_router, ends[0], limits),
            (client_router or Router(), ends[1], None),
        )
    )
    server.start()
    client.start(newline=False)
    yield Pair(server, client, ends[1])
    for peer, end in zip((server, client), ends, strict=True):
        peer.close()
        end.close()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  what is waited for has no event of its own
        await asyncio.sleep(0.001)


def echoing() -> Router:
    router = Router()
    router.request("echo", Text, lambda params, call: params)
    return router


def test_a_request_is_answered_and_typed() -> None:
    async def work() -> None:
        async with connected(echoing()) as pair:
            assert await pair.client.request("echo", Text("hi"), Text) == Text("hi")
            assert bytes(await pair.client.request("echo", Text("hi"), Raw)) == b'{"text":"hi"}'
            with pytest.raises(InvalidResult):
                await pair.client.request("echo", Text("hi"), list[int])
            with pytest.raises(RemoteError) as caught:
                await pair.client.request("nothing", None, Text)
            assert caught.value.code == -32601
            assert caught.value.data["hint"]

    run(work())


def test_both_sides_ask_at_once() -> None:
    async def work() -> None:
        async with connected(echoing(), echoing()) as pair:
            asked = [
                peer.request("echo", Text(str(number)), Text)
                for number in range(300)
                for peer in (pair.server, pair.client)
            ]
            answers = await asyncio.gather(*asked)
            assert [answer.text for answer in answers] == [str(number // 2) for number in range(600)]

    run(work())


def test_a_pending_call_is_answered_later_and_once() -> None:
    async def work() -> None:
        calls: list[Call] = []
        router = Router()

        def later(params: Text, call: Call) -> object:
            calls.append(call)
            return PENDING

        router.request("later", Text, later)  # pyright: ignore[reportArgumentType]
        async with connected(router) as pair:
            asked = asyncio.ensure_future(pair.client.request("later", None, Text))
            await until(lambda: bool(calls))
            assert pair.server.in_flight == 1
            calls[0].reply(Text("first"))
            calls[0].reply(Text("second"))
            calls[0].fail(RpcError(1, "third"))
            assert await asked == Text("first")
            assert pair.server.in_flight == 0

    run(work())


@pytest.mark.parametrize("stopped", [True, False])
def test_a_handler_decides_whether_it_could_be_cancelled(stopped: bool) -> None:
    async def work() -> None:
        calls: list[Call] = []
        router = Router()

        def later(params: Text, call: Call) -> object:
            call.on_cancel = lambda: stopped
            calls.append(call)
            return PENDING

        router.request("later", Text, later)  # pyright: ignore[reportArgumentType]
        async with connected(router) as pair:
            asked = asyncio.ensure_future(pair.client.request("later", None, Text))
            await until(lambda: bool(calls))
            pair.client.notify("$/cancelRequest", {"id": calls[0].id})
            await until(lambda: calls[0].cancelled)
            calls[0].reply(Text("done"))
            if stopped:
                with pytest.raises(RemoteError, match="cancelled"):
                    await asked
            else:
                assert await asked == Text("done")

    run(work())


def test_cancelling_the_waiting_task_cancels_the_request() -> None:
    async def work() -> None:
        ended = asyncio.Event()
        started = asyncio.Event()
        router = Router()

        async def forever(params: Text, call: Call) -> None:
            try:
                started.set()
                await asyncio.Event().wait()
            finally:
                ended.set()

        router.request("forever", Text, forever)
        async with connected(router) as pair:
            asked = asyncio.ensure_future(pair.client.request("forever", None, Text))
            await started.wait()
            asked.cancel()
            await ended.wait()
            assert asked.cancelled()

    run(work())


def test_a_late_answer_is_passed_over() -> None:
    async def work() -> None:
        calls: list[Call] = []
        router = echoing()

        def later(params: Text, call: Call) -> object:
            call.on_cancel = lambda: False
            calls.append(call)
            return PENDING

        router.request("later", Text, later)  # pyright: ignore[reportArgumentType]
        async with connected(router) as pair:
            with pytest.raises(RequestTimedOut):
                await pair.client.request("later", None, Text, timeout_ms=10)
            await until(lambda: bool(calls) and calls[0].cancelled)
            calls[0].reply(Text("too late"))
            assert await pair.client.request("echo", Text("next"), Text) == Text("next")

    run(work())


def test_a_released_lane_lets_the_next_call_overtake() -> None:
    async def work() -> None:
        gate = asyncio.Event()
        router = Router()

        async def first(params: Text, call: Call) -> Text:
            call.release_lane()
            await gate.wait()
            return Text("first")

        def second(params: Text, call: Call) -> Text:
            gate.set()
            return Text("second")

        router.request("first", Text, first, order=Order.EXCLUSIVE, lane=lambda params: "lane")
        router.request("second", Text, second, order=Order.EXCLUSIVE, lane=lambda params: "lane")
        async with connected(router) as pair:
            answers = await asyncio.gather(
                pair.client.request("first", None, Text), pair.client.request("second", None, Text)
            )
            assert answers == [Text("first"), Text("second")]

    run(work())


def test_held_messages_pass_in_order_once_they_may() -> None:
    async def work() -> None:
        verdict: list[RpcError | Hold | None] = [HOLD]
        seen: list[str] = []
        router = Router()
        router.request("ask", Text, lambda params, call: seen.append(params.text))
        router.notification("tell", Text, lambda params: seen.append(params.text))
        async with connected(router) as pair:
            pair.server.admit = lambda method, is_request: verdict[0]
            asked = asyncio.ensure_future(pair.client.request("ask", Text("1"), Raw))
            await asyncio.sleep(0)
            pair.client.notify("tell", Text("2"))
            last = asyncio.ensure_future(pair.client.request("ask", Text("3"), Raw))
            await until(lambda: len(pair.server._dispatcher.parking.queue) == 3)
            assert seen == []
            verdict[0] = None
            pair.server.resume()
            await asyncio.gather(asked, last)
            assert seen == ["1", "2", "3"]

    run(work())


def test_a_lost_peer_fails_pending_requests() -> None:
    async def work() -> None:
        async with connected(echoing()) as pair:
            asked = asyncio.ensure_future(pair.server.request("echo", None, Text))
            await asyncio.sleep(0)
            pair.client_socket.shutdown(socket.SHUT_RDWR)
            with pytest.raises(ConnectionLost):
                await asked
            with pytest.raises(ConnectionLost):
                await pair.server.request("echo", None, Text)

    run(work())


def test_abandoned_requests_cancel_their_tasks_now_and_later() -> None:
    async def work() -> None:
        async with connected(echoing()) as pair:
            asked = asyncio.ensure_future(pair.server.request("echo", None, Text))
            await asyncio.sleep(0)
            pair.server.abandon_requests()
            with pytest.raises(asyncio.CancelledError):
                await asked
            with pytest.raises(asyncio.CancelledError):
                await pair.server.request("echo", None, Text)

    run(work())


def test_nothing_starts_while_too_much_is_unsent_and_all_is_answered_in_the_end() -> None:
    async def work() -> None:
        started = 0
        router = Router()

        def blob(params: Text, call: Call) -> Text:
            nonlocal started
            started += 1
            return Text("x" * 100_000)

        router.request("blob", Text, blob)
        limits = PeerLimits(max_unsent_bytes=1_000_000, max_parked_bytes=200_000)
        async with connected(router, limits=limits) as pair:
            body = b'{"jsonrpc":"2.0","id":%d,"method":"blob","params":{"text":"%b"}}'
            frames = [body % (id, b"y" * 1000) for id in range(2000)]
            data = b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(frame), frame) for frame in frames)
            pair.client.close()
            pair.client_socket.setblocking(False)
            loop = asyncio.get_running_loop()
            sent = asyncio.ensure_future(loop.sock_sendall(pair.client_socket, data))
            await until(lambda: pair.server._paused)
            assert started < 40
            assert not sent.done()
            reader, answers = FrameReader(newline=False), 0
            while answers < 2000:
                answers += len(reader.feed(await loop.sock_recv(pair.client_socket, 1 << 20)))
            await sent
            assert started == 2000

    run(work())


def test_large_requests_run_one_after_the_other_and_small_ones_pass() -> None:
    async def work() -> None:
        running: list[int] = []
        most = 0
        go = asyncio.Event()
        router = Router()

        async def hold(params: Text, call: Call) -> None:
            nonlocal most
            running.append(len(params.text))
            most = max(most, sum(running))
            await go.wait()
            running.remove(len(params.text))

        router.request("hold", Text, hold)
        async with connected(router, limits=PeerLimits(max_running_bytes=250_000)) as pair:
            sizes = [10, 600_000, 100_000, 100_000, 100_000, 10]
            asked = [asyncio.ensure_future(pair.client.request("hold", Text("x" * n), Raw)) for n in sizes]
            await until(lambda: pair.server.in_flight == 2)
            assert running == [10, 600_000]
            go.set()
            await asyncio.gather(*asked)
        assert most < 620_000

    run(work())


def test_an_answered_request_is_not_kept_alive_by_its_timer() -> None:
    async def work() -> None:
        handles: list[object] = []
        served: list[Call] = []
        router = Router()

        async def slow(params: Text, call: Call) -> Text:
            handle = asyncio.get_running_loop().call_later(600, print)
            handle.cancel()
            handles.append(handle)
            served.append(call)
            return Text("done")

        router.request("slow", Text, slow)
        async with connected(router) as pair:
            await pair.client.request("slow", Text("x" * 10_000), Text)
            await until(lambda: pair.server.in_flight == 0)
        assert "x" * 10_000 not in repr(served[0].params)

    run(work())


def test_a_request_without_an_id_is_logged_before_its_handler_is_loaded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work() -> None:
        router = echoing()
        router.later(["later/method"], lambda: None)
        async with connected(router) as pair:
            pair.client.notify("later/method", Text("hi"))
            pair.client.notify("never/known", Text("hi"))
            await pair.client.request("echo", Text("hi"), Text)
        assert [r.message for r in caplog.records] == ["ignored later/method: a request needs an id"]

    run(work())


def test_progress_is_reported_under_its_token() -> None:
    async def work() -> None:
        class Told(Struct):
            token: str
            value: dict[str, object]

        told: list[Told] = []
        client = Router()
        client.notification("$/progress", Told, told.append)
        client.request("window/workDoneProgress/create", Text, lambda params, call: None)
        async with connected(echoing(), client) as pair:
            progress = await create_progress(pair.server, "t", supported=True)
            progress.begin("Working")
            progress.report("half", percentage=50)
            progress.end()
            progress.report("after the end")
            Progress(pair.server, None).begin("silent")
            await pair.server.request("window/workDoneProgress/create", None, Raw)
        assert [item.value["kind"] for item in told] == ["begin", "report", "end"]
        assert told[1].value == {"kind": "report", "message": "half", "percentage": 50}

    run(work())


def test_the_end_of_input_is_reported_once() -> None:
    async def work() -> None:
        ends: list[End] = []
        async with connected(echoing()) as pair:
            pair.server.on_end = ends.append
            pair.client_socket.sendall(b"Content-Length: 10\r\n\r\n{")
            pair.client_socket.shutdown(socket.SHUT_WR)
            await until(lambda: bool(ends))
            pair.server.stop_reading()
        assert ends == [End.INSIDE]

    run(work())


def test_refusals_that_nobody_reads_do_not_fill_the_memory() -> None:
    async def work() -> None:
        limits = PeerLimits(max_unsent_bytes=1_000_000)
        async with connected(Router(), limits=limits) as pair:
            pair.client.close()
            pair.client_socket.setblocking(False)
            loop = asyncio.get_running_loop()
            data = b"Content-Length: 2\r\n\r\n{}" * 100_000
            sent = asyncio.ensure_future(loop.sock_sendall(pair.client_socket, data))
            await until(lambda: pair.server._paused)
            assert pair.server.unsent < 4_000_000
            reader, answers = FrameReader(newline=False), 0
            while answers < 100_000:
                answers += len(reader.feed(await loop.sock_recv(pair.client_socket, 1 << 20)))
            await sent

    run(work())
