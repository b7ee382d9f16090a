"""Servers on loopback that run in a thread of their own while they are entered."""

import asyncio
import threading
from types import TracebackType
from typing import Self

from aiohttp import web

LIMIT_S = 30.0


class ServerThread:
    """Serves as its subclass does, at a port that is free."""

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

    async def open(self) -> None:
        """Listen, and set `url`."""
        raise NotImplementedError

    async def shut(self) -> None:
        """Listen no more."""
        raise NotImplementedError

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serving())
        self._loop.close()

    async def _serving(self) -> None:
        self._ended = asyncio.Event()
        await self.open()
        self._started.set()
        await self._ended.wait()
        await self.shut()


class LoopbackServer(ServerThread):
    """An HTTP server for the routes of its subclass."""

    path = ""
    """What `url` ends in."""

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Name what answers to which path."""
        raise NotImplementedError

    async def open(self) -> None:
        """See `ServerThread`."""
        application = web.Application(client_max_size=64 << 20)
        self.add_routes(application.router)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}{self.path}"

    async def shut(self) -> None:
        """See `ServerThread`."""
        await self._runner.cleanup()
