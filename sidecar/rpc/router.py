"""Routes methods to handlers with typed params, and the `Call` that each handler receives."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import ContextVar
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from sidecar.rpc.envelope import JsonId
from sidecar.rpc.errors import InvalidParams, RpcError
from sidecar.rpc.lanes import Crossing, Lane, Place

if TYPE_CHECKING:
    from sidecar.rpc.dispatch import Dispatcher
    from sidecar.rpc.peer import Peer


P = TypeVar("P")


class Order(IntEnum):
    """How calls in one lane wait for each other."""

    FREE = 0
    """Never waits."""
    PIPELINED = 1
    """Starts while earlier pipelined calls are still outstanding."""
    EXCLUSIVE = 2
    """Starts once its lane has nothing outstanding; nothing else in the lane starts before it ends."""


class Pending:
    """Returned by a handler that will reply later."""


PENDING: Final = Pending()

Outcome = msgspec.Struct | Raw | dict[str, object] | Pending | None
Handler = Callable[[P, "Call"], Outcome | Coroutine[object, object, object]]
"""Serves a request: returns the result, `PENDING`, or a coroutine that returns the result."""
LaneOf = Callable[[P], "str | Sequence[str] | None"]
"""The key, or several keys, of the lanes that a call belongs to; `None` if it waits for nothing."""
Answer = Callable[[P], Outcome]
"""Sees the params before the handler; returns an answer, or `None` to leave the request to the handler."""
NotificationHandler = Callable[[P], None]
"""Serves a notification synchronously."""


class Route(Generic[P]):
    """One method and everything dispatch needs to know about it."""

    __slots__ = (
        "_decoder",
        "cancellable",
        "handler",
        "lane",
        "method",
        "notified",
        "order",
        "params_type",
        "urgent",
    )

    def __init__(
        self,
        method: str,
        params_type: type[P],
        *,
        handler: Handler[P] | None = None,
        notified: NotificationHandler[P] | None = None,
        order: Order = Order.FREE,
        lane: LaneOf[P] | None = None,
        cancellable: bool = True,
        urgent: bool = False,
    ) -> None:
        self.method = method
        self.params_type = params_type
        self.handler = handler
        self.notified = notified
        self.order = order
        self.lane = lane
        self.cancellable = cancellable
        self.urgent = urgent
        self._decoder: msgspec.json.Decoder[P] | None = None

    def decode(self, raw: Raw) -> P:
        """The decoded params; absent params and `null` count as an empty object.

        Raises:
            InvalidParams: the params do not match their type.
        """
        decoder = self._decoder
        if decoder is None:
            decoder = self._decoder = msgspec.json.Decoder(self.params_type)
        try:
            return decoder.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            given = bytes(raw).strip(b" \t\r\n")
            if given[:1] == b"{":
                return decode_patiently(raw, decoder)
            if given in (b"", b"null"):
                return decode_patiently(b"{}", decoder)
            raise InvalidParams("params must be an object") from None


class Router:
    """The methods served by one side of a connection."""

    def __init__(self) -> None:
        self.routes: dict[str, Route[object]] = {}
        """Routes of requests and notifications by method."""
        self._loaders: dict[str, Callable[[], None]] = {}
        self._answers: Mapping[str, Answer[Any]] = {}

    def request(
        self,
        method: str,
        params_type: type[P],
        handler: Handler[P],
        *,
        order: Order = Order.FREE,
        lane: LaneOf[P] | None = None,
        cancellable: bool = True,
        urgent: bool = False,
    ) -> None:
        """Serve a request method.

        Any order but `FREE` requires `lane`; a call with several lanes has exclusive use of all of them. An
        `urgent` method is never parked for lack of capacity.

        Raises:
            ValueError: the method is already registered, or has an order but no lane.
        """
        if order is not Order.FREE and lane is None:
            raise ValueError(f"{method} has an order but no lane")
        self._add(
            Route(
                method,
                params_type,
                handler=handler,
                order=order,
                lane=lane,
                cancellable=cancellable,
                urgent=urgent,
            )
        )

    def notification(
        self, method: str, params_type: type[P], handler: NotificationHandler[P], *, urgent: bool = False
    ) -> None:
        """Serve a notification method; an `urgent` one is never parked behind requests.

        Raises:
            ValueError: the method is already registered.
        """
        self._add(Route(method, params_type, notified=handler, urgent=urgent))

    def later(self, methods: Iterable[str], load: Callable[[], None]) -> None:
        """Serve request methods lazily: the first request for one calls `load`, which registers handlers."""
        for method in methods:
            self._loaders[method] = load

    def load(self, method: str) -> Route[object] | None:
        """The route of a lazily registered method; `None` if there is none.

        If loading fails, the next request for the method tries again.
        """
        load = self._loaders.get(method)
        if load is not None and method not in self.routes:
            load()
        self._loaders.pop(method, None)
        return self.routes.get(method)

    def is_late(self, method: str) -> bool:
        """Whether this is a request method whose handler is not loaded yet."""
        return method in self._loaders

    def answer_first(self, answers: Mapping[str, Answer[Any]]) -> None:
        """For handlers registered from now on, try the answer given here for their method first."""
        self._answers = answers

    @property
    def methods(self) -> list[str]:
        """All methods served, including those not loaded yet."""
        return sorted({*self.routes, *self._loaders})

    def _add(self, route: Route[P]) -> None:
        if route.method in self.routes:
            raise ValueError(f"{route.method} is already registered")
        if route.handler is not None and (answer := self._answers.get(route.method)) is not None:
            route.handler = _answered_first(answer, route.handler)
        self.routes[route.method] = route  # pyright: ignore[reportArgumentType]


def _answered_first(answer: Answer[P], handler: Handler[P]) -> Handler[P]:
    def serve(params: P, call: Call) -> Outcome | Coroutine[object, object, object]:
        result = answer(params)
        return handler(params, call) if result is None else result

    return serve


serving: ContextVar[Call | None] = ContextVar("serving", default=None)
"""The call that the current coroutine serves; not set while a synchronous handler runs."""


class Call:
    """Passed to a handler along with the params; use it on the loop's thread only."""

    on_cancel: Callable[[], bool] | None = None
    """Called when a running call is cancelled; returns true if the work stopped without effect, false if a
    result will still come. Without it, a coroutine's task is cancelled, and anything else runs on."""
    settled = False
    """True once the call is answered."""
    cancelled = False
    """True once cancellation of the running call was requested."""
    registered = False
    """True while the call is in the table of unanswered calls."""
    released = False
    exclusive = False
    began = 0.0
    """When it was decoded, by `time.perf_counter`; set only if an observer watches."""
    note: object = None
    """The observer's own data for this call."""
    lane: Lane | Crossing | None = None
    place: Place = Place.NONE
    task: asyncio.Task[None] | None = None
    unstarted: Coroutine[object, object, object] | None = None
    """The handler's coroutine until it starts."""

    def __init__(
        self, id: JsonId, route: Route[object], params: object, size: int, dispatcher: Dispatcher
    ) -> None:
        self.id = id
        self.route = route
        self.params = params
        self.size = size
        """Size of the request's body in bytes."""
        self._dispatcher = dispatcher

    @property
    def method(self) -> str:
        """The request's method."""
        return self.route.method

    @property
    def peer(self) -> Peer:
        """The connection on which the request came."""
        return self._dispatcher.peer

    def reply(self, result: object = None) -> None:
        """Answer with a result; no effect if already answered."""
        self._dispatcher.settle(self, result)

    def fail(self, error: RpcError) -> None:
        """Answer with an error; no effect if already answered."""
        self._dispatcher.settle(self, error)

    def release_lane(self) -> None:
        """Leave the lane: later calls in it may start before this one is answered."""
        self.released = True
        self._dispatcher.leave_lane(self)

    def keep_only_lane(self, key: str) -> None:
        """Leave all lanes but the one with this key."""
        self._dispatcher.keep_only_lane(self, key)


_T = TypeVar("_T")

_MOST_NULLS = 64
_LONGEST_REASON = 300
"""Characters; some reasons quote a value of any length."""
_MISSING = re.compile(r"^Object missing required field `([^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")

_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_encode = msgspec.json.encode


class JsonPath(NamedTuple):
    """Location of a problem in params: member names and array indexes, outermost first."""

    steps: tuple[str | int, ...]

    @property
    def pointer(self) -> str:
        """The location as a JSON Pointer."""
        return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in self.steps)

    @property
    def words(self) -> str:
        """The location as in `messages[3].role`; `params` for the params as a whole."""
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return text.removeprefix(".") or "params"


def decode_patiently(raw: bytes | Raw, decoder: msgspec.json.Decoder[_T]) -> _T:
    """Decode params that a plain decode refused, treating `null` members as absent.

    Raises:
        InvalidParams: the params do not match their type, or too many of their members are null.
    """
    for _ in range(_MOST_NULLS):
        try:
            return decoder.decode(raw)
        except RecursionError:
            raise InvalidParams("params are nested too deeply", hint="send flatter data") from None
        except msgspec.DecodeError as problem:
            reason, place = explain(problem)
            shorter = _without_null(raw, place.steps) if reason.endswith("got `null`") else None
            if shorter is None:
                from sidecar.choices import with_choices

                reason = with_choices(reason, decoder.type, place.steps)
                raise InvalidParams(f"{place.words}: {reason}", path=place.pointer) from None
            raw = shorter
    raise InvalidParams("too many members are null", hint="leave out members that have no value")


def explain(problem: msgspec.DecodeError) -> tuple[str, JsonPath]:
    """The decoder's complaint and its location."""
    reason, _, path = str(problem).partition(" - at `")
    place: list[str | int] = []
    for name, index in _STEP.findall(path.rpartition("$")[2].rstrip("`")):
        if not name and not index:
            break
        place.append(int(index) if index else name)
    missing = _MISSING.match(reason)
    if missing is not None:
        place.append(missing[1])
        reason = "required member is missing"
    return reason[:1].lower() + reason[1:_LONGEST_REASON], JsonPath(tuple(place))


def _without_null(raw: bytes | Raw, steps: tuple[str | int, ...]) -> bytes | None:
    """The same JSON without the member at `steps`; `None` if that is not an object member."""
    if not steps:
        return None
    step = steps[0]
    if isinstance(step, int):
        if len(steps) == 1:
            return None
        items = _decode_items(raw)
        inner = _without_null(items[step], steps[1:])
        if inner is None:
            return None
        items[step] = Raw(inner)
        return _encode(items)
    members = _decode_members(raw)
    if step not in members:
        return None
    if len(steps) == 1:
        del members[step]
    else:
        inner = _without_null(members[step], steps[1:])
        if inner is None:
            return None
        members[step] = Raw(inner)
    return _encode(members)
