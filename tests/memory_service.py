"""A memory service on loopback that answers as it is told to, faults included."""

import asyncio
import struct
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, Literal

import msgspec

from tests.loopback_server import ServerThread

Mode = Literal["good", "error", "reset", "hang", "slow", "garbage"]


class MemoryService(ServerThread):
    """Serves in a thread of its own; every request is remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.mode: Mode = "good"
        self.fragments: list[Any] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """See `ServerThread`."""

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._tasks.add(asyncio.ensure_future(self._answer(reader, writer)))

        self._server = await asyncio.start_server(connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/memory"

    async def shut(self) -> None:
        """See `ServerThread`."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            fields = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head)
            }
            body = await reader.readexactly(int(fields["content-length"]))
            self.requests.append(msgspec.json.decode(body))
            self.keys.append(fields.get("authorization", ""))
            await self._respond(writer)
        finally:
            writer.close()

    async def _respond(self, writer: asyncio.StreamWriter) -> None:
        answer = msgspec.json.encode({"fragments": self.fragments})
        status = "200 OK"
        if self.mode == "hang":
            await self._ended.wait()
        elif self.mode == "reset":
            writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return
        elif self.mode == "error":
            status = "500 Internal Server Error"
        elif self.mode == "garbage":
            answer = b"<html>"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(answer)}\r\n\r\n".encode())
        if self.mode == "slow":
            writer.write(answer[:1])
            await writer.drain()
            await self._ended.wait()
        writer.write(answer)
        await writer.drain()
