"""Decides for each incoming request when it runs, and sends its answer."""

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
    """Bounds of one connection; may be changed while it runs."""

    max_message_bytes: int = DEFAULT_LIMIT
    """Bytes of the largest body."""
    max_running_bytes: int = 32 * 1024 * 1024
    """Bytes of the bodies whose requests run at once; a larger body runs when nothing else of weight does."""
    max_in_flight: int = 256
    """Requests that run at once; further ones are parked."""
    max_parked_bytes: int = 64 * 1024 * 1024
    """Bytes of parked messages beyond which a request is refused."""
    max_unsent_bytes: int = 64 * 1024 * 1024
    """Bytes of unsent answers beyond which no request is started."""
    request_timeout_ms: float = 120_000
    """How long a request of ours waits for its answer; 0 for ever."""


class Observer(Protocol):
    """Hears of every request once when it begins and once when it ends; must be quick, and never raise."""

    def begun(self, call: Call, params: Raw) -> None:
        """A request was read and understood; it may still wait for others."""
        ...

    def settled(self, call: Call, outcome: object) -> None:
        """A request is answered, with a result or an `RpcError`."""
        ...

    def refused(self, id: JsonId, method: str, error: RpcError) -> None:
        """A request was refused before it began."""
        ...


_OVERHEAD = 512
"""Bytes that a parked message takes beside its body, roughly."""


class Parked:
    """One message, undecoded."""

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
        """The veil over its lone surrogates, if it has one."""
        self.admitted = admitted
        self.gone = False


class Parking:
    """A queue from which a message can be taken out by its id."""

    __slots__ = ("bytes", "queue", "requests")

    def __init__(self) -> None:
        self.queue: deque[Parked] = deque()
        """All messages, in order; empty where nothing is parked."""
        self.requests: dict[JsonId, Parked] = {}
        """The requests among them."""
        self.bytes = 0
        """Memory that the parked messages take, roughly."""

    @staticmethod
    def cost(size: int) -> int:
        """What a body of `size` bytes adds to `bytes`."""
        return size + _OVERHEAD

    def add(self, parked: Parked) -> None:
        """Park a message behind the others."""
        self.queue.append(parked)
        self.bytes += self.cost(parked.size)
        if parked.id is not None:
            self.requests[parked.id] = parked

    def first(self) -> Parked | None:
        """The message whose turn it is."""
        queue = self.queue
        while queue and queue[0].gone:
            queue.popleft()
        return queue[0] if queue else None

    def pop(self) -> None:
        """Take the first message out."""
        self._forget(self.queue.popleft())
        self.first()

    def take_all(self) -> list[Parked]:
        """Take out everything that is still parked."""
        parked = [parked for parked in self.queue if not parked.gone]
        self.queue.clear()
        self.requests.clear()
        self.bytes = 0
        return parked

    def withdraw(self, id: JsonId) -> bool:
        """Take out a request that will not be started: true where it was parked."""
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
"""Bytes of requests that keep no large one waiting, and that wait for none."""
_LARGE = 4096
"""Bytes of a request whose params are not kept beyond its answer."""

Restore = Callable[[object], object]
"""Takes the veil off what was decoded from a text with lone surrogates."""


class Hold:
    """What `admit` returns for a message that must wait until `resume`."""


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
        """Started or waiting in a lane, and not answered."""
        self.done = 0
        """Requests that were answered, cancelled ones left out: what tells work from waiting."""
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
        """Handle a notification, park it behind parked requests, or pass over it."""
        if method == "$/cancelRequest":
            self._take_cancel(params)
            return
        route = self._routes.get(method)
        if route is None and not self._router.is_late(method):
            return
        if route is None or route.notified is None:
            _log.warning("ignored %s: it is a request, but came without an id", method)
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
        """Start what may start now: calls whose lane is free, then parked messages."""
        self._lanes.pump()
        while self._unpark():
            self._lanes.pump()

    def settle(self, call: Call, outcome: object) -> None:
        """Answer a call, once, with a result or an `RpcError`."""
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
            # A cancelled timer keeps the context in which it was set, and with it this call, until it is due.
            call.params = _without_bulk(call.params)

    def leave_lane(self, call: Call) -> None:
        """Let later calls of the lane start before this one is answered."""
        if call.lane is not None:
            self._lanes.leave(call)
            self.peer.turn_soon()

    def keep_only_lane(self, call: Call, key: str) -> None:
        """Let later calls of the other lanes start before this one is answered."""
        self._lanes.keep_only(call, key)
        self.peer.turn_soon()

    def lane_in_use(self, key: str) -> bool:
        """Whether a request is in that lane, waiting or started."""
        return self._lanes.in_use(key)

    def refuse(self, id: JsonId | None, error: RpcError) -> None:
        """Answer with an error."""
        try:
            body = encode(Failure(id, error.body()))
        except Exception:
            _log.exception("the data of an error cannot be encoded")
            body = encode(Failure(id, RpcError(error.code, error.message).body()))
        self.peer.put(body)

    def _refuse_request(self, id: JsonId, method: str, error: RpcError) -> None:
        if (observer := self.peer.observer) is not None:
            observer.refused(id, method, error)
        self.refuse(id, error)

    def cancel(self, id: JsonId, *, even_uncancellable: bool = False) -> None:
        """Cancel a request; unknown ids and requests that cannot be cancelled are passed over."""
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
                # Refusals would only add to what the other side does not read.
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
        """Start the first parked message: false where none may start."""
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
            _log.exception("the params of %s cannot be handled", method)
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
            call.unbegun = coroutine
            call.task = self.peer.loop.create_task(self._serve(call, coroutine))
            return Place.NONE if call.released else Place.HOLDING
        self.settle(call, outcome)
        return Place.NONE

    async def _serve(self, call: Call, coroutine: Coroutine[object, object, object]) -> None:
        call.unbegun = None
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
            _log.warning("ignored $/cancelRequest: its params have no id")
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
            if call.unbegun is not None:
                # A task that is cancelled before its first step never runs, so nobody else would answer.
                call.unbegun.close()
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
                _log.exception("the fault of %s could not be told", call.method)
                error = None
            if error is not None:
                return error
        _log.error("%s failed", call.method, exc_info=problem)
        return InternalError()

    def _put_result(self, call: Call, result: object) -> None:
        try:
            body = encode(Result(call.id, result))
        except Exception:
            _log.exception("the result of %s cannot be encoded", call.method)
            self.refuse(call.id, InternalError())
            return
        self.peer.put(body)


def _without_bulk(params: object) -> object:
    """The params without the members that make requests large; the others say what the call is about."""
    if not isinstance(params, Struct):
        return None
    large = [name for name in params.__struct_fields__ if _is_large(getattr(params, name))]
    return msgspec.structs.replace(params, **dict.fromkeys(large)) if large else params


def _is_large(value: object) -> bool:
    return isinstance(value, (list, dict, Raw)) or (isinstance(value, str) and len(value) > _LARGE)
