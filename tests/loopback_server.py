"""An HTTP server on loopback that runs in a thread of its own while it is entered."""

import asyncio
import threading
from types import TracebackType
from typing import Self

from aiohttp import web

LIMIT_S = 30.0


class LoopbackServer:
    """Serves the routes of its subclass at a port that is free."""

    path = ""
    """What `url` ends in."""

    def __init__(self) -> None:
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(LIMIT_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(LIMIT_S)

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Name what answers to which path."""
        raise NotImplementedError

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serving())
        self._loop.close()

    async def _serving(self) -> None:
        self._ended = asyncio.Event()
        application = web.Application(client_max_size=64 << 20)
        self.add_routes(application.router)
        runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}{self.path}"
        self._started.set()
        await self._ended.wait()
        await runner.cleanup()
