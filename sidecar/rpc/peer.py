"""One side of a connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import Enum
from typing import TypeVar, cast

import msgspec
from msgspec import UNSET

from sidecar.rpc.dispatch import Dispatcher, Hold, Observer, PeerLimits, Restore
from sidecar.rpc.envelope import (
    Envelope,
    Notification,
    Refusal,
    Request,
    decode,
    diagnose,
    encode,
    is_utf8,
    missing_method,
    null_id,
    raw_id,
)
from sidecar.rpc.errors import InvalidRequest, InvalidResult, ParseError, RpcError
from sidecar.rpc.framing import FrameFault, FrameReader, Outbox, Transport
from sidecar.rpc.outgoing import OutgoingRequests
from sidecar.rpc.router import Call, Router

T = TypeVar("T")

_log = logging.getLogger(__name__)
_EMPTY: dict[str, object] = {}

_FLOOD = 2
"""At this many times the limit of unsent bytes, reading stops altogether, even for answers: unread refusals
would otherwise fill memory."""


class End(Enum):
    """Why no more messages come."""

    CLEAN = "the input ended between messages"
    INSIDE = "the input ended inside a message"
    FATAL = "a frame is unreadable"
    FAILED = "reading or writing failed on this side"
    BROKEN = "the other side stopped reading"
    STOPPED = "this side stopped reading"


class Peer:
    """Serves the methods of a router and calls those of the other side. Use it on the loop's thread only."""

    admit: Callable[[str, bool], RpcError | Hold | None] | None = None
    """Called first for each message, with its method and whether it is a request; may hold or refuse it."""
    on_fault: Callable[[Call, Exception], RpcError | None] | None = None
    """Converts a handler's exception into an error; `None` means an internal error, logged here."""
    on_end: Callable[[End], None] | None = None
    """Called once when no more messages will come; without it, pending requests fail with ConnectionLost."""

    observer: Observer | None = None
    """Observes the requests that this side serves."""

    def __init__(self, router: Router, transport: Transport, limits: PeerLimits | None = None) -> None:
        self.limits = limits or PeerLimits()
        self.loop: asyncio.AbstractEventLoop
        self._transport = transport
        self._reader = FrameReader(self.limits.max_message_bytes)
        self._outbox = Outbox(transport)
        self._outgoing = OutgoingRequests(self.notify)
        self._dispatcher = Dispatcher(router, self.limits, self, self._outbox)
        self._corks = 0
        self._turn_is_due = False
        self._paused = False
        self._end: End | None = None
        self._settled: tuple[Call | None, asyncio.Future[None]] | None = None

    def start(self, *, newline: bool | None = None) -> None:
        """Start reading. `newline` fixes the framing; by default the other side's first byte decides."""
        self.loop = asyncio.get_running_loop()
        self._reader = FrameReader(self.limits.max_message_bytes, newline=newline)
        self._outbox.newline = bool(newline)
        self._transport.start(self)

    async def request(
        self, method: str, params: object, result_type: type[T], *, timeout_ms: float | None = None
    ) -> T:
        """Send a request and return its result. `timeout_ms` defaults to that of the limits; 0 waits forever.

        Raises:
            RemoteError: the other side answered with an error.
            RequestTimedOut: no answer came in time.
            InvalidResult: the result does not match the type.
            ConnectionLost: the other side is gone.
        """
        limit = self.limits.request_timeout_ms if timeout_ms is None else timeout_ms
        shown = _EMPTY if params is None else params
        raw, restore = await self._outgoing.ask(
            method, lambda id: self.put(encode(Request(id, method, shown))), limit
        )
        try:
            result = msgspec.json.decode(raw or b"null", type=result_type)
        except (msgspec.DecodeError, RecursionError) as problem:
            raise InvalidResult(method, str(problem)[:300]) from None
        return result if restore is None else cast(T, restore(result))

    def notify(self, method: str, params: object = None) -> None:
        """Send a notification."""
        self.put(encode(Notification(method, _EMPTY if params is None else params)))

    @contextmanager
    def cork(self) -> Generator[None]:
        """Batch everything sent inside the block into one write at its end."""
        self._corks += 1
        try:
            yield
        finally:
            self._uncork()

    def resume(self) -> None:
        """Call `admit` again for messages on hold."""
        self.turn_soon()

    @property
    def in_flight(self) -> int:
        """Number of unanswered requests, running or waiting in a lane."""
        return len(self._dispatcher.calls)

    def lane_in_use(self, key: str) -> bool:
        """Whether the lane with that key has an unanswered request."""
        return self._dispatcher.lane_in_use(key)

    @property
    def unsent(self) -> int:
        """Bytes of messages waiting to be sent."""
        return self._outbox.unsent

    @property
    def inside_message(self) -> bool:
        """Whether a message has been read only in part."""
        return self._reader.inside

    async def settled(self, limit_s: float, *, besides: Call | None = None) -> bool:
        """Wait until all requests but `besides` are answered. Returns false after `limit_s` seconds."""
        if self._is_settled(besides):
            return True
        future: asyncio.Future[None] = self.loop.create_future()
        self._settled = besides, future
        try:
            await asyncio.wait_for(future, limit_s)
        except TimeoutError:
            return False
        finally:
            self._settled = None
        return True

    async def settled_at_last(self, idle_s: float, limit_s: float, *, besides: Call | None = None) -> bool:
        """Wait as `settled` does. Returns false after `idle_s` s without progress or `limit_s` s overall."""
        deadline = self.loop.time() + limit_s
        while True:
            done = self._dispatcher.done
            if await self.settled(max(0.0, min(idle_s, deadline - self.loop.time())), besides=besides):
                return True
            if self._dispatcher.done == done or self.loop.time() >= deadline:
                return False

    def cancel_all(self, *, besides: Call | None = None) -> None:
        """Cancel every request but `besides`, even uncancellable ones."""
        dispatcher = self._dispatcher
        with self.cork():
            for id in [*dispatcher.parking.requests, *dispatcher.calls]:
                if besides is None or id != besides.id:
                    dispatcher.cancel(id, even_uncancellable=True)

    def fail_all(self, error: RpcError, *, besides: Call | None = None) -> None:
        """Answer every request but `besides` with an error, even if its handler is still running."""
        dispatcher = self._dispatcher
        with self.cork():
            for parked in dispatcher.parking.take_all():
                if parked.id is not None:
                    dispatcher.refuse(parked.id, error)
            for call in list(dispatcher.calls.values()):
                if call is not besides:
                    call.fail(error)

    def abandon_requests(self) -> None:
        """Cancel our pending requests; a task that sends another is cancelled too."""
        self._outgoing.abandon()

    def stop_reading(self, end: End = End.STOPPED) -> None:
        """Accept no more messages."""
        if self._end is None:
            self._end = end
            self._transport.pause_reading()
            if self.on_end is not None:
                self.on_end(end)
            else:
                self._outgoing.lose()

    async def flush(self, limit_s: float) -> bool:
        """Wait until everything is sent. Returns false if nothing moved for `limit_s` seconds."""
        self._turn()
        return await self._transport.flush(limit_s)

    def close(self) -> None:
        """Stop immediately; nothing more is read or sent."""
        self.stop_reading()
        self._transport.close()

    # For the dispatcher

    def put(self, body: bytes) -> None:
        """Send an encoded message, batched with others from the same callback."""
        self._outbox.put(body)
        if not self._corks:
            self.turn_soon()

    def turn_soon(self) -> None:
        """Schedule, after this callback, starting whatever can start and sending whatever was put."""
        if not self._turn_is_due and not self._corks:
            self.loop.call_soon(self._turn)
            # Only now: on a full stack the line above raises, and no turn is due.
            self._turn_is_due = True

    def pause_reading(self) -> None:
        """Stop reading until there is room again."""
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()

    # For the transport

    def received(self, chunk: bytes) -> None:
        """Handle every message that the chunk completes, and batch the answers into one write."""
        self._corks += 1
        try:
            self._reader.limit = self.limits.max_message_bytes
            items = self._reader.feed(chunk)
            if self._reader.newline:
                self._outbox.newline = True
            for item in items:
                if self._end is not None:
                    break
                if type(item) is bytes:
                    self._take_body(item)
                else:
                    self._take_fault(cast(FrameFault, item))
        except Exception as problem:
            self._fail(problem)
        finally:
            self._uncork()

    def ended(self) -> None:
        """Handle an unterminated last line, then end the input."""
        if self._end is not None:
            return
        with self.cork():
            items, inside = self._reader.finish()
            for item in items:
                inside = not self._take_body(cast(bytes, item)) or inside
            self.stop_reading(End.INSIDE if inside else End.CLEAN)

    def drained(self) -> None:
        """Resume parked messages if there is room now."""
        self._outbox.count()
        if self._paused or self._dispatcher.parking.queue:
            self.turn_soon()

    def broken(self) -> None:
        """End the input: no answer can be sent any more."""
        self.stop_reading(End.BROKEN)

    def _take_body(self, body: bytes) -> bool:
        """Handle one body. Returns false if it is not JSON text."""
        if not body.isascii() and not is_utf8(body):
            self._refuse(Refusal(ParseError("the body is not UTF-8")))
            return False
        try:
            envelope = decode(body)
        except (msgspec.DecodeError, RecursionError):
            return self._take_odd_body(body)
        id, method = envelope.id, envelope.method
        if method is None or id is UNSET or id is None:
            self._take(envelope, len(body), None)
        else:
            self._dispatcher.take_request(id, method, envelope.params, len(body), None)
        return True

    def _take_odd_body(self, body: bytes) -> bool:
        # Imported here because it is rarely needed, and start-up must not pay for it.
        from sidecar.surrogates import conceal

        veil = conceal(body)
        text = body if veil is None else veil.text
        try:
            envelope = decode(text)
        except (msgspec.DecodeError, RecursionError):
            refusal = diagnose(text)
            self._refuse(refusal)
            return not isinstance(refusal.error, ParseError)
        if veil is None:
            self._take(envelope, len(body), None)
        elif (id := raw_id(text)) != veil.restore_bytes(id):
            self._refuse(Refusal(InvalidRequest("the id contains half of a surrogate pair")))
        else:
            self._take(envelope, len(body), veil.restore)
        return True

    def _take(self, envelope: Envelope, size: int, restore: Restore | None) -> None:
        method, id = envelope.method, envelope.id
        if method is None:
            if envelope.result or envelope.error:
                self._outgoing.answer(envelope, restore)
            else:
                self._refuse(missing_method(envelope))
        elif id is UNSET:
            self._dispatcher.take_notification(method, envelope.params, size, restore)
        elif id is None:
            self._refuse(null_id())
        else:
            self._dispatcher.take_request(id, method, envelope.params, size, restore)

    def _take_fault(self, fault: FrameFault) -> None:
        self._refuse(Refusal(fault.error))
        if fault.fatal:
            _log.error("%s", fault.error.message)
            self.stop_reading(End.FATAL)

    def _fail(self, problem: Exception) -> None:
        """End the connection: bytes of the stream are lost, so nothing after them can be trusted."""
        self._reader = FrameReader()
        if isinstance(problem, MemoryError):
            _log.critical("the connection ends: out of memory while reading or writing")
        else:
            _log.critical("the connection ends: reading or writing failed", exc_info=problem)
        self.stop_reading(End.FAILED)

    def _refuse(self, refusal: Refusal) -> None:
        self._dispatcher.refuse(refusal.id, refusal.error)

    def _is_settled(self, besides: Call | None) -> bool:
        dispatcher = self._dispatcher
        calls = dispatcher.calls
        rest = len(calls) - (besides is not None and calls.get(besides.id) is besides)
        return not rest and not dispatcher.parking.queue

    def _uncork(self) -> None:
        self._corks -= 1
        if not self._corks:
            self._turn()

    def _turn(self) -> None:
        if self._corks:
            return
        self._turn_is_due = False
        self._corks = 1
        try:
            self._dispatcher.turn()
        finally:
            self._corks = 0
        try:
            self._outbox.flush()
        except Exception as problem:
            self._fail(problem)
        if self._has_room():
            if self._paused:
                self._paused = False
                if self._end is None:
                    self._transport.resume_reading()
        elif self.unsent > _FLOOD * self.limits.max_unsent_bytes:
            self.pause_reading()
        if self._settled is not None and self._is_settled(self._settled[0]) and not self._settled[1].done():
            self._settled[1].set_result(None)

    def _has_room(self) -> bool:
        limits, unsent = self.limits, self.unsent
        return unsent <= limits.max_unsent_bytes or (
            unsent <= _FLOOD * limits.max_unsent_bytes
            and self._dispatcher.parking.bytes <= limits.max_parked_bytes
        )


ProgressToken = int | str


class Progress:
    """Reports progress under a token; without a token it reports nothing."""

    __slots__ = ("_ended", "_peer", "_token")

    def __init__(self, peer: Peer, token: ProgressToken | None) -> None:
        self._peer = peer
        self._token = token
        self._ended = False

    def begin(self, title: str, *, cancellable: bool = False, message: str | None = None) -> None:
        """Announce the work."""
        self._send("begin", {"title": title, "cancellable": cancellable}, message, None)

    def report(self, message: str | None = None, *, percentage: int | None = None) -> None:
        """Report how far the work is; `percentage` is 0 to 100."""
        self._send("report", {}, message, percentage)

    def end(self, message: str | None = None) -> None:
        """Report the end of the work; later reports are dropped."""
        self._send("end", {}, message, None)
        self._ended = True

    def _send(self, kind: str, value: dict[str, object], message: str | None, percentage: int | None) -> None:
        if self._token is None or self._ended:
            return
        value["kind"] = kind
        if message is not None:
            value["message"] = message
        if percentage is not None:
            value["percentage"] = percentage
        self._peer.notify("$/progress", {"token": self._token, "value": value})


async def create_progress(peer: Peer, token: ProgressToken, *, supported: bool) -> Progress:
    """Progress that this side initiates; reports nothing if the client does not support it or refuses."""
    if supported:
        try:
            await peer.request("window/workDoneProgress/create", {"token": token}, type(None))
        except RpcError:
            supported = False
    return Progress(peer, token if supported else None)
