"""Schedules each incoming request and sends its answer."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import TYPE_CHECKING, Final, Protocol, cast

import msgspec
from msgspec import Raw, Struct

from sidecar.rpc.envelope import Failure, JsonId, Result, encode
from sidecar.rpc.errors import Busy, InternalError, InvalidRequest, MethodNotFound, RequestCancelled, RpcError
from sidecar.rpc.framing import DEFAULT_LIMIT, Outbox
from sidecar.rpc.lanes import Lanes, Place
from sidecar.rpc.router import PENDING, Call, Order, Route, Router, serving

if TYPE_CHECKING:
    from sidecar.rpc.peer import Peer


class PeerLimits(Struct):
    """Limits of one connection; may change while it is open."""

    max_message_bytes: int = DEFAULT_LIMIT
    """Largest body accepted, in bytes."""
    max_running_bytes: int = 32 * 1024 * 1024
    """Total body bytes of requests that run at once; a larger body runs once only small ones are running."""
    max_in_flight: int = 256
    """Maximum concurrent requests; further ones are parked."""
    max_parked_bytes: int = 64 * 1024 * 1024
    """Bytes of parked messages beyond which requests are refused."""
    max_unsent_bytes: int = 64 * 1024 * 1024
    """Bytes of unsent answers beyond which no request starts."""
    request_timeout_ms: float = 120_000
    """How long our own requests wait for an answer; 0 means forever."""


class Observer(Protocol):
    """Notified once when a request begins and once when it ends; must be quick and never raise."""

    def begun(self, call: Call, params: Raw) -> None:
        """A request was decoded; it may still wait in its lane."""
        ...

    def settled(self, call: Call, outcome: object) -> None:
        """A request was answered with a result or an `RpcError`."""
        ...

    def refused(self, id: JsonId, method: str, error: RpcError) -> None:
        """A request was refused before it began."""
        ...


_OVERHEAD = 512
"""Approximate memory of a parked message on top of its body, in bytes."""


class Parked:
    """One undecoded message."""

    __slots__ = ("admitted", "gone", "id", "method", "params", "restore", "size")

    def __init__(
        self, id: JsonId | None, method: str, params: Raw, size: int, restore: object, *, admitted: bool
    ) -> None:
        self.id = id
        """`None` for a notification."""
        self.method = method
        self.params = params
        self.size = size
        self.restore = restore
        """Restores lone surrogates in the decoded params, if the body had any."""
        self.admitted = admitted
        self.gone = False


class Parking:
    """A queue whose requests can be withdrawn by id."""

    __slots__ = ("bytes", "queue", "requests")

    def __init__(self) -> None:
        self.queue: deque[Parked] = deque()
        """All messages in order; empty if nothing is parked."""
        self.requests: dict[JsonId, Parked] = {}
        """The requests among them."""
        self.bytes = 0
        """Approximate memory of the parked messages."""

    @staticmethod
    def cost(size: int) -> int:
        """How much a body of `size` bytes adds to `bytes`."""
        return size + _OVERHEAD

    def add(self, parked: Parked) -> None:
        """Append a message."""
        self.queue.append(parked)
        self.bytes += self.cost(parked.size)
        if parked.id is not None:
            self.requests[parked.id] = parked

    def first(self) -> Parked | None:
        """The next message, or `None`."""
        queue = self.queue
        while queue and queue[0].gone:
            queue.popleft()
        return queue[0] if queue else None

    def pop(self) -> None:
        """Remove the first message."""
        self._forget(self.queue.popleft())
        self.first()

    def take_all(self) -> list[Parked]:
        """Remove and return everything still parked."""
        parked = [parked for parked in self.queue if not parked.gone]
        self.queue.clear()
        self.requests.clear()
        self.bytes = 0
        return parked

    def withdraw(self, id: JsonId) -> bool:
        """Remove a request so that it never starts. Returns whether it was parked."""
        parked = self.requests.get(id)
        if parked is None:
            return False
        parked.gone = True
        parked.params = Raw()
        self._forget(parked)
        self.first()
        return True

    def _forget(self, parked: Parked) -> None:
        self.bytes -= self.cost(parked.size)
        if parked.id is not None:
            del self.requests[parked.id]


_log = logging.getLogger(__name__)

_LIGHT = 65_536
"""Requests totalling up to this many bytes neither delay a large one nor wait for it."""
_LARGE = 4096
"""Requests larger than this, in bytes, drop their bulky params once answered."""

Restore = Callable[[object], object]
"""Restores what was decoded from JSON text with lone surrogates."""


class Hold:
    """Returned by `admit` for a message that must wait until `resume`."""


HOLD: Final = Hold()


class _CancelParams(Struct):
    id: JsonId


_decode_cancel = msgspec.json.Decoder(_CancelParams).decode


class Dispatcher:
    """The requests of one connection that are parked, waiting or running."""

    def __init__(self, router: Router, limits: PeerLimits, peer: Peer, outbox: Outbox) -> None:
        self.peer = peer
        self._outbox = outbox
        self.calls: dict[JsonId, Call] = {}
        """Unanswered calls, running or waiting in a lane."""
        self.done = 0
        """Requests answered so far, not counting cancelled ones; distinguishes progress from waiting."""
        self.parking = Parking()
        self._router = router
        self._routes = router.routes
        self._limits = limits
        self._lanes: Lanes[Call] = Lanes(self._run)
        self._held_bytes = 0

    def take_request(self, id: JsonId, method: str, params: Raw, size: int, restore: Restore | None) -> None:
        """Start a request, park it, or refuse it."""
        if id in self.calls or id in self.parking.requests:
            error = InvalidRequest("a request with this id is in flight", hint="use an id once")
            self._refuse_request(id, method, error)
            return
        admit = self.peer.admit
        if admit is not None:
            verdict = admit(method, True)
            if verdict is not None:
                if isinstance(verdict, RpcError):
                    self._refuse_request(id, method, verdict)
                else:
                    self._park(Parked(id, method, params, size, restore, admitted=False))
                return
        if self.parking.queue or self._is_full(size):
            route = self._routes.get(method)
            if route is None or not route.urgent:
                self._park(Parked(id, method, params, size, restore, admitted=True))
                return
        self._start(id, method, params, size, restore)

    def take_notification(self, method: str, params: Raw, size: int, restore: Restore | None) -> None:
        """Handle a notification, park it behind parked requests, or ignore it."""
        if method == "$/cancelRequest":
            self._take_cancel(params)
            return
        route = self._routes.get(method)
        if route is None and not self._router.is_late(method):
            return
        if route is None or route.notified is None:
            _log.warning("ignored %s: a request needs an id", method)
            return
        admit = self.peer.admit
        verdict = None if admit is None else admit(method, False)
        if isinstance(verdict, RpcError):
            return
        if verdict is not None:
            self._park(Parked(None, method, params, size, restore, admitted=False))
        elif self.parking.queue and not route.urgent:
            self._park(Parked(None, method, params, size, restore, admitted=True))
        else:
            self._notify(route, params, restore)

    def turn(self) -> None:
        """Start whatever can start now: calls whose lane is free, then parked messages."""
        self._lanes.pump()
        while self._unpark():
            self._lanes.pump()

    def settle(self, call: Call, outcome: object) -> None:
        """Answer a call with a result or an `RpcError`; no effect if already answered."""
        if call.settled:
            return
        call.settled = True
        self.done += not isinstance(outcome, RequestCancelled)
        if call.registered:
            call.registered = False
            del self.calls[call.id]
            self._held_bytes -= call.size
            if call.lane is not None:
                self._lanes.leave(call)
        if (observer := self.peer.observer) is not None:
            observer.settled(call, outcome)
        if isinstance(outcome, RpcError):
            self.refuse(call.id, outcome)
        else:
            self._put_result(call, outcome)
        call.on_cancel = None
        if call.size > _LARGE:
            # A cancelled timer keeps its context alive until it is due, and with it this call.
            call.params = _without_bulk(call.params)

    def leave_lane(self, call: Call) -> None:
        """Let later calls in the lane start before this one is answered."""
        if call.lane is not None:
            self._lanes.leave(call)
            self.peer.turn_soon()

    def keep_only_lane(self, call: Call, key: str) -> None:
        """Leave all lanes but one: later calls there may start before this one is answered."""
        self._lanes.keep_only(call, key)
        self.peer.turn_soon()

    def lane_in_use(self, key: str) -> bool:
        """Whether a request is waiting or running in that lane."""
        return self._lanes.in_use(key)

    def refuse(self, id: JsonId | None, error: RpcError) -> None:
        """Answer with an error."""
        try:
            body = encode(Failure(id, error.body()))
        except Exception:
            _log.exception("cannot encode the data of an error")
            body = encode(Failure(id, RpcError(error.code, error.message).body()))
        self.peer.put(body)

    def _refuse_request(self, id: JsonId, method: str, error: RpcError) -> None:
        if (observer := self.peer.observer) is not None:
            observer.refused(id, method, error)
        self.refuse(id, error)

    def cancel(self, id: JsonId, *, even_uncancellable: bool = False) -> None:
        """Cancel a request; unknown ids and uncancellable requests are ignored."""
        call = self.calls.get(id)
        if call is None:
            if self.parking.withdraw(id):
                self.refuse(id, RequestCancelled())
        elif call.place is Place.WAITING:
            call.fail(RequestCancelled())
        elif not call.cancelled and (call.route.cancellable or even_uncancellable):
            call.cancelled = True
            self._cancel_running(call)

    def _park(self, parked: Parked) -> None:
        limits, parking = self._limits, self.parking
        if parking.bytes + Parking.cost(parked.size) > limits.max_parked_bytes:
            if self._outbox.unsent > limits.max_unsent_bytes:
                # The peer is not reading; refusals would only add to the backlog.
                self.peer.pause_reading()
            elif parked.id is None:
                _log.warning("dropped the notification %s: too much is parked", parked.method)
                return
            else:
                error = Busy(
                    f"more than {limits.max_parked_bytes} bytes of requests are parked",
                    limit=limits.max_parked_bytes,
                )
                self._refuse_request(parked.id, parked.method, error)
                return
        parking.add(parked)

    def _unpark(self) -> bool:
        """Start or refuse the first parked message. Returns false if there is none or it must wait."""
        parked = self.parking.first()
        if parked is None:
            return False
        is_request = parked.id is not None
        if not parked.admitted:
            admit = self.peer.admit
            verdict = None if admit is None else admit(parked.method, is_request)
            if isinstance(verdict, Hold):
                return False
            if isinstance(verdict, RpcError):
                self.parking.pop()
                if parked.id is not None:
                    self._refuse_request(parked.id, parked.method, verdict)
                return True
            parked.admitted = True
        route = self._routes.get(parked.method)
        if is_request and self._is_full(parked.size) and not (route is not None and route.urgent):
            return False
        self.parking.pop()
        restore = cast("Restore | None", parked.restore)
        if parked.id is not None:
            self._start(parked.id, parked.method, parked.params, parked.size, restore)
        elif route is not None:
            self._notify(route, parked.params, restore)
        return True

    def _is_full(self, size: int) -> bool:
        limits, held = self._limits, self._held_bytes
        if len(self.calls) >= limits.max_in_flight:
            return True
        if held + size > limits.max_running_bytes and min(held, size) > _LIGHT:
            return True
        return self._outbox.unsent > limits.max_unsent_bytes

    def _start(self, id: JsonId, method: str, params: Raw, size: int, restore: Restore | None) -> None:
        try:
            route = self._routes.get(method) or self._router.load(method)
        except (OSError, ImportError) as problem:
            unloaded: Route[object] = Route(method, object)
            fault = self._fault(Call(id, unloaded, None, size, self), problem)
            self._refuse_request(id, method, fault)
            return
        if route is None or route.handler is None:
            self._refuse_request(id, method, MethodNotFound(method))
            return
        try:
            decoded = route.decode(params)
            if restore is not None:
                decoded = restore(decoded)
            call = Call(id, route, decoded, size, self)
            key = None if route.order is Order.FREE or route.lane is None else route.lane(decoded)
        except RpcError as error:
            self._refuse_request(id, method, error)
            return
        except Exception:
            _log.exception("cannot process the params of %s", method)
            self._refuse_request(id, method, InternalError())
            return
        if (observer := self.peer.observer) is not None:
            observer.begun(call, params)
        if key is None:
            self._run(call)
        else:
            call.exclusive = route.order is Order.EXCLUSIVE
            lanes = self._lanes
            if lanes.submit(key, call) if type(key) is str else lanes.submit_to_all(key, call):
                self._register(call)

    def _run(self, call: Call) -> Place:
        handler = call.route.handler
        assert handler is not None
        try:
            outcome = handler(call.params, call)
        except (Exception, asyncio.CancelledError, SystemExit) as problem:
            call.fail(self._fault(call, problem))
            return Place.NONE
        if outcome is PENDING:
            if call.settled:
                return Place.NONE
            self._register(call)
            if call.released:
                return Place.NONE
            return Place.HOLDING if call.exclusive else Place.OUTSTANDING
        if type(outcome) is CoroutineType:
            self._register(call)
            coroutine = cast("Coroutine[object, object, object]", outcome)
            call.unstarted = coroutine
            call.task = self.peer.loop.create_task(self._serve(call, coroutine))
            return Place.NONE if call.released else Place.HOLDING
        self.settle(call, outcome)
        return Place.NONE

    async def _serve(self, call: Call, coroutine: Coroutine[object, object, object]) -> None:
        call.unstarted = None
        serving.set(call)
        try:
            outcome = await coroutine
        except asyncio.CancelledError:
            outcome = RequestCancelled()
        except (Exception, SystemExit) as problem:
            outcome = self._fault(call, problem)
        call.task = None
        self.settle(call, outcome)

    def _register(self, call: Call) -> None:
        if not call.registered:
            call.registered = True
            self.calls[call.id] = call
            self._held_bytes += call.size

    def _notify(self, route: Route[object], params: Raw, restore: Restore | None) -> None:
        assert route.notified is not None
        try:
            decoded = route.decode(params)
            route.notified(decoded if restore is None else restore(decoded))
        except RpcError as error:
            _log.warning("ignored %s: %s", route.method, error.message)
        except Exception:
            _log.exception("the handler of %s failed", route.method)

    def _take_cancel(self, params: Raw) -> None:
        try:
            id = _decode_cancel(params).id
        except msgspec.DecodeError:
            _log.warning("ignored $/cancelRequest: its params have no valid id")
            return
        self.cancel(id)

    def _cancel_running(self, call: Call) -> None:
        if call.on_cancel is not None:
            try:
                stopped = call.on_cancel()
            except Exception:
                _log.exception("%s could not be cancelled", call.method)
                return
            if stopped:
                call.fail(RequestCancelled())
        elif call.task is not None:
            call.task.cancel()
            if call.unstarted is not None:
                # A task cancelled before its first step never runs, so nothing else would answer.
                call.unstarted.close()
                call.fail(RequestCancelled())

    def _fault(self, call: Call, problem: BaseException) -> RpcError:
        if isinstance(problem, RpcError):
            return problem
        if isinstance(problem, asyncio.CancelledError):
            return RequestCancelled()
        hook = self.peer.on_fault
        if hook is not None and isinstance(problem, Exception):
            try:
                error = hook(call, problem)
            except Exception:
                _log.exception("cannot convert the failure of %s into an error", call.method)
                error = None
            if error is not None:
                return error
        _log.error("%s failed", call.method, exc_info=problem)
        return InternalError()

    def _put_result(self, call: Call, result: object) -> None:
        try:
            body = encode(Result(call.id, result))
        except Exception:
            _log.exception("cannot encode the result of %s", call.method)
            self.refuse(call.id, InternalError())
            return
        self.peer.put(body)


def _without_bulk(params: object) -> object:
    """The params with bulky members set to `None`; the rest still identifies the call."""
    if not isinstance(params, Struct):
        return None
    large = [name for name in params.__struct_fields__ if _is_large(getattr(params, name))]
    return msgspec.structs.replace(params, **dict.fromkeys(large)) if large else params


def _is_large(value: object) -> bool:
    return isinstance(value, (list, dict, Raw)) or (isinstance(value, str) and len(value) > _LARGE)
