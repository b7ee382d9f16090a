"""Our own requests awaiting the other side's answer."""

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
    """An undecoded result."""

    result: Raw
    restore: Callable[[object], object] | None
    """Restores lone surrogates in values decoded from it, if it had any."""


class OutgoingRequests:
    """The table of unanswered outgoing requests."""

    __slots__ = ("_abandoned", "_last_id", "_lost", "_notify", "_waiting")

    def __init__(self, notify: Callable[[str, object], None]) -> None:
        self._notify = notify
        """Sends a notification."""
        self._waiting: dict[JsonId, asyncio.Future[Answer]] = {}
        self._last_id = 0
        self._lost = False
        self._abandoned = False

    async def ask(self, method: str, send: Callable[[int], None], timeout_ms: float) -> Answer:
        """Call `send` with a new request id and return the answer to that request; 0 ms means no limit.

        Raises:
            RequestTimedOut: no answer came in time.
            ConnectionLost: the other side is gone.
            RemoteError: the other side answered with an error.
        """
        if self._abandoned:
            raise asyncio.CancelledError("the host can no longer answer")
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
                self._notify("$/cancelRequest", {"id": id})

    def answer(self, envelope: Envelope, restore: Callable[[object], object] | None) -> None:
        """Deliver an answer from the other side; an answer nobody awaits is ignored."""
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
        """Cancel all requests, pending and future, and notify the other side of pending ones."""
        self._abandoned = True
        for id, future in list(self._waiting.items()):
            future.cancel()
            del self._waiting[id]
            self._notify("$/cancelRequest", {"id": id})

    def lose(self) -> None:
        """Fail all requests, pending and future: the other side is gone."""
        self._lost = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionLost())
        self._waiting.clear()

    def _expire(self, id: JsonId, method: str, timeout_ms: float) -> None:
        future = self._waiting.pop(id, None)
        if future is not None and not future.done():
            self._notify("$/cancelRequest", {"id": id})
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
