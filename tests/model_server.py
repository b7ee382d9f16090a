"""A model server on loopback that speaks chat completions and gives scripted answers, faults included."""

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import msgspec
from aiohttp import web

LIMIT_S = 30.0

Script = Callable[[dict[str, Any], int], "str | web.Response | None"]
"""From a request and its number: the text to answer, a response, or `None` for never answering."""


class ModelServer:
    """Serves in a thread of its own; every request is remembered."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "ModelServer":
        self._thread.start()
        assert self._started.wait(LIMIT_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(LIMIT_S)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serving())
        self._loop.close()

    async def _serving(self) -> None:
        self._ended = asyncio.Event()
        application = web.Application(client_max_size=64 << 20)
        application.router.add_post("/v1/chat/completions", self._answer)
        runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        self._started.set()
        await self._ended.wait()
        await runner.cleanup()

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
