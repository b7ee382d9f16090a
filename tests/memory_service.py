"""A memory service on loopback that answers as it is told to, faults included."""

import asyncio
import struct
import threading
from socket import SO_LINGER, SOL_SOCKET
from types import TracebackType
from typing import Any, Literal

import msgspec

LIMIT_S = 30.0

Mode = Literal["good", "error", "reset", "hang", "slow", "garbage"]


class MemoryService:
    """Serves in a thread of its own; every request is remembered."""

    def __init__(self) -> None:
        self.mode: Mode = "good"
        self.fragments: list[Any] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(
            target=self._loop.run_until_complete, args=(self._serve(),), daemon=True
        )

    def __enter__(self) -> "MemoryService":
        self._thread.start()
        assert self._started.wait(LIMIT_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(LIMIT_S)
        self._loop.close()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self._ended = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(asyncio.ensure_future(self._answer(reader, writer)))

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/memory"
        self._started.set()
        await self._ended.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

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
