"""Requests of ours that wait for the other side's answer."""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec import Raw

from sidecar.rpc.envelope import Envelope, JsonId, RemoteErrorBody
from sidecar.rpc.errors import ConnectionLost, RemoteError, RequestTimedOut

_log = logging.getLogger(__name__)
_decode_error = msgspec.json.Decoder(RemoteErrorBody).decode
_decode_data = msgspec.json.Decoder(dict[str, object]).decode


class Answer(NamedTuple):
    """A result, undecoded."""

    result: Raw
    restore: Callable[[object], object] | None
    """Takes the veil off whatever is decoded from it, where it has one."""


class OutgoingRequests:
    """The table of what was asked and is not answered yet."""

    __slots__ = ("_abandoned", "_last_id", "_lost", "_tell", "_waiting")

    def __init__(self, tell: Callable[[str, object], None]) -> None:
        self._tell = tell
        """Sends a notification."""
        self._waiting: dict[JsonId, asyncio.Future[Answer]] = {}
        self._last_id = 0
        self._lost = False
        self._abandoned = False

    async def ask(self, method: str, send: Callable[[int], None], timeout_ms: float) -> Answer:
        """The answer to a request that `send` sends under the id it is given; 0 ms means no limit.

        Raises:
            RemoteError: the other side answered with an error.
            RequestTimedOut: it did not answer in time.
            ConnectionLost: it is gone.
        """
        if self._abandoned:
            raise asyncio.CancelledError("the host can answer no longer")
        if self._lost:
            raise ConnectionLost
        self._last_id += 1
        id = self._last_id
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        self._waiting[id] = future
        timer = (
            loop.call_later(timeout_ms / 1000, self._expire, id, method, timeout_ms) if timeout_ms else None
        )
        try:
            send(id)
            return await future
        finally:
            if timer is not None:
                timer.cancel()
            if self._waiting.pop(id, None) is not None and not self._lost:
                self._tell("$/cancelRequest", {"id": id})

    def answer(self, envelope: Envelope, restore: Callable[[object], object] | None) -> None:
        """Take an answer of the other side; one that nobody waits for is passed over."""
        id = envelope.id
        future = self._waiting.pop(id, None) if isinstance(id, (int, str)) else None
        if future is None:
            if envelope.error and id is None:
                _log.warning("the other side could not read a message of ours")
            return
        if future.done():
            return
        if envelope.error and bytes(envelope.error) != b"null":
            future.set_exception(_remote_error(envelope.error))
        else:
            future.set_result(Answer(envelope.result, restore))

    def abandon(self) -> None:
        """Cancel whatever waits for an answer, now and later, and tell the other side."""
        self._abandoned = True
        for id, future in list(self._waiting.items()):
            future.cancel()
            del self._waiting[id]
            self._tell("$/cancelRequest", {"id": id})

    def lose(self) -> None:
        """Fail whatever waits for an answer, now and later: the other side is gone."""
        self._lost = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionLost())
        self._waiting.clear()

    def _expire(self, id: JsonId, method: str, timeout_ms: float) -> None:
        future = self._waiting.pop(id, None)
        if future is not None and not future.done():
            self._tell("$/cancelRequest", {"id": id})
            future.set_exception(RequestTimedOut(method, timeout_ms))


def _remote_error(raw: Raw) -> RemoteError:
    try:
        body = _decode_error(raw)
    except msgspec.DecodeError:
        return RemoteError(0, "the other side answered with an error of unknown shape")
    try:
        data = _decode_data(body.data) if body.data else None
    except msgspec.DecodeError:
        data = {"value": body.data}
    return RemoteError(body.code, body.message, data)
