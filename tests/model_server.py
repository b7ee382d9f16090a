"""A model server on loopback that speaks chat completions and gives scripted answers, faults included."""

from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from tests.loopback_server import LoopbackServer

Script = Callable[[dict[str, Any], int], "str | web.Response | None"]
"""From a request and its number: the text to answer, a response, or `None` for never answering."""


class ModelServer(LoopbackServer):
    """Serves in a thread of its own; every request is remembered."""

    path = "/v1"

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Name what answers to which path."""
        router.add_post("/v1/chat/completions", self._answer)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = msgspec.json.decode(await request.read())
        self.requests.append(body)
        self.keys.append(request.headers.get("Authorization", ""))
        answer = self.script(body, len(self.requests))
        if answer is None:
            await self._ended.wait()
            return web.Response(status=500)
        return completion(answer) if isinstance(answer, str) else answer


def completion(text: str) -> web.Response:
    """A chat completion that says this."""
    return web.json_response({"choices": [{"message": {"role": "assistant", "content": text}}]})
