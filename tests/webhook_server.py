"""A receiver of webhooks on loopback that follows a script of answers, faults included."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from tests.loopback_server import LIMIT_S, LoopbackServer

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


class WebhookServer(LoopbackServer):
    """Serves in a thread of its own; every request is remembered as soon as its body was read."""

    path = "/episodes"

    def __init__(self, script: Script = _always) -> None:
        super().__init__()
        self.script = script
        self.posted: list[Posted] = []
        self.searches: list[dict[str, Any]] = []
        self.hits: list[dict[str, Any]] = []
        self._changed = threading.Condition()

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

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Name what answers to which path."""
        router.add_post("/episodes", self._answer)
        router.add_post("/search", self._found)

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
