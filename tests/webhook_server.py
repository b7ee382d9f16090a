"""A receiver of webhooks on loopback that follows a script of answers, faults included."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

LIMIT_S = 30.0

RESET = -1
"""The connection is cut without an answer."""
HANG = 0
"""No answer comes."""


class Posted(NamedTuple):
    """One request that came in."""

    headers: Mapping[str, str]
    body: bytes
    answer: int
    """The status it was answered with, `RESET` or `HANG`."""

    @property
    def key(self) -> str:
        """What tells repetitions."""
        return self.headers["Idempotency-Key"]

    @property
    def episode(self) -> dict[str, Any]:
        """The body."""
        return msgspec.json.decode(self.body)


Script = Callable[[dict[str, Any], int], "int | web.Response"]
"""From a body and how often its key has come by now to a status, `RESET`, `HANG` or a response."""


def _always(body: dict[str, Any], times: int) -> int:
    return 200


class WebhookServer:
    """Serves in a thread of its own; every request is remembered as soon as its body was read."""

    def __init__(self, script: Script = _always) -> None:
        self.script = script
        self.posted: list[Posted] = []
        self.searches: list[dict[str, Any]] = []
        self.hits: list[dict[str, Any]] = []
        self.url = ""
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "WebhookServer":
        self._thread.start()
        assert self._started.wait(LIMIT_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(LIMIT_S)

    @property
    def keys(self) -> Counter[str]:
        """How often each key has come."""
        with self._changed:
            return Counter(posted.key for posted in self.posted)

    @property
    def texts(self) -> list[str]:
        """The texts of the messages of every episode that was answered with 200, repetitions left out."""
        with self._changed:
            taken = {p.key: p.episode for p in self.posted if p.answer == 200}
        return [message["text"] for episode in taken.values() for message in episode["messages"]]

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds; it is looked at whenever a request has come."""
        with self._changed:
            assert self._changed.wait_for(condition, LIMIT_S), [p.answer for p in self.posted]

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serving())
        self._loop.close()

    async def _serving(self) -> None:
        self._ended = asyncio.Event()
        application = web.Application(client_max_size=64 << 20)
        application.router.add_post("/episodes", self._answer)
        application.router.add_post("/search", self._found)
        runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/episodes"
        self._started.set()
        await self._ended.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = dict(request.headers)
        answer = self.script(msgspec.json.decode(body), 1 + self.keys[headers["Idempotency-Key"]])
        status = answer if isinstance(answer, int) else answer.status
        with self._changed:
            self.posted.append(Posted(headers, body, status))
            self._changed.notify_all()
        if status == RESET and request.transport is not None:
            request.transport.abort()
        if status == HANG:
            await self._ended.wait()
        if isinstance(answer, web.Response):
            return answer
        return web.Response(status=status if status > 0 else 500)

    async def _found(self, request: web.Request) -> web.StreamResponse:
        self.searches.append(msgspec.json.decode(await request.read()))
        return web.json_response({"results": self.hits})
