"""Which handler serves which method, with the type of its params, and what a handler is given: the call."""

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
    """How the calls of one lane wait for each other."""

    FREE = 0
    """Not at all."""
    PIPELINED = 1
    """Starts while earlier pipelined calls are still outstanding."""
    EXCLUSIVE = 2
    """Starts when nothing of its lane is outstanding; nothing of its lane starts before it ends."""


class Pending:
    """What a handler returns when it will reply later."""


PENDING: Final = Pending()

Outcome = msgspec.Struct | Raw | dict[str, object] | Pending | None
Handler = Callable[[P, "Call"], Outcome | Coroutine[object, object, object]]
"""Serves a request: returns the result, `PENDING`, or a coroutine that ends in the result."""
LaneOf = Callable[[P], "str | Sequence[str] | None"]
"""The key of the queue that a call belongs to, the keys where there are several, `None` where it waits for
nothing."""
Answer = Callable[[P], Outcome]
"""Looks at the params before a handler does; `None` leaves the request to the handler."""
NotificationHandler = Callable[[P], None]
"""Serves a notification, at once."""


class Route(Generic[P]):
    """One method with all that dispatch needs to know of it."""

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
        """The params as their type; absent ones and `null` as an empty object.

        Raises:
            InvalidParams: they do not fit.
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
    """The methods that one side of a connection serves."""

    def __init__(self) -> None:
        self.routes: dict[str, Route[object]] = {}
        """Requests and notifications by method."""
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

        `lane` is needed for any order but `FREE`; a call with several lanes is alone in all of them. An
        `urgent` method is never parked for want of room.

        Raises:
            ValueError: the method is served already, or has an order without a lane.
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
            ValueError: the method is served already.
        """
        self._add(Route(method, params_type, notified=handler, urgent=urgent))

    def later(self, methods: Iterable[str], load: Callable[[], None]) -> None:
        """Serve request methods whose handlers `load` registers when the first of them is asked for."""
        for method in methods:
            self._loaders[method] = load

    def load(self, method: str) -> Route[object] | None:
        """The route of a method that is registered late; `None` where there is none.

        Where loading fails, the next request of the method tries again.
        """
        load = self._loaders.get(method)
        if load is not None and method not in self.routes:
            load()
        self._loaders.pop(method, None)
        return self.routes.get(method)

    def is_late(self, method: str) -> bool:
        """Whether the handler of the request method is not loaded yet."""
        return method in self._loaders

    def answer_first(self, answers: Mapping[str, Answer[Any]]) -> None:
        """Ask these, by method, before the handlers that are registered from now on."""
        self._answers = answers

    @property
    def methods(self) -> list[str]:
        """Every method that is served, registered late or not."""
        return sorted({*self.routes, *self._loaders})

    def _add(self, route: Route[P]) -> None:
        if route.method in self.routes:
            raise ValueError(f"{route.method} is served already")
        if route.handler is not None and (answer := self._answers.get(route.method)) is not None:
            route.handler = _answered_first(answer, route.handler)
        self.routes[route.method] = route  # pyright: ignore[reportArgumentType]


def _answered_first(answer: Answer[P], handler: Handler[P]) -> Handler[P]:
    def serve(params: P, call: Call) -> Outcome | Coroutine[object, object, object]:
        result = answer(params)
        return handler(params, call) if result is None else result

    return serve


serving: ContextVar[Call | None] = ContextVar("serving", default=None)
"""The request for which a coroutine works; handlers that are no coroutines run without it."""


class Call:
    """What a handler is given beside the params; all of it is used on the loop's thread."""

    on_cancel: Callable[[], bool] | None = None
    """Called when a running call is cancelled: true if the work was stopped without effect, false if its
    result will come. Without it, a coroutine is cancelled as a task is, and anything else runs on."""
    settled = False
    """True once the call is answered."""
    cancelled = False
    """True once a running call was asked to stop."""
    registered = False
    """True while the call is in the table of those that are not answered."""
    released = False
    exclusive = False
    began = 0.0
    """When it was read, by `time.perf_counter`, where somebody watches."""
    note: object = None
    """What somebody who watches keeps with it."""
    lane: Lane | Crossing | None = None
    place: Place = Place.NONE
    task: asyncio.Task[None] | None = None
    unbegun: Coroutine[object, object, object] | None = None
    """The handler's coroutine as long as it has not begun."""

    def __init__(
        self, id: JsonId, route: Route[object], params: object, size: int, dispatcher: Dispatcher
    ) -> None:
        self.id = id
        self.route = route
        self.params = params
        self.size = size
        """Bytes of the request's body."""
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
        """Answer with a result; nothing happens where the call is answered already."""
        self._dispatcher.settle(self, result)

    def fail(self, error: RpcError) -> None:
        """Answer with an error; nothing happens where the call is answered already."""
        self._dispatcher.settle(self, error)

    def release_lane(self) -> None:
        """Give up the place in the lane: later calls of the lane may start before this one is answered."""
        self.released = True
        self._dispatcher.leave_lane(self)

    def keep_only_lane(self, key: str) -> None:
        """Give up the places in all lanes but the one of this key."""
        self._dispatcher.keep_only_lane(self, key)


_T = TypeVar("_T")

_MOST_NULLS = 64
_LONGEST_REASON = 300
"""Characters; some reasons quote the value, however long it is."""
_MISSING = re.compile(r"^Object missing required field `([^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")

_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_encode = msgspec.json.encode


class JsonPath(NamedTuple):
    """Where in params something is wrong: names of members and numbers of items, from the outside in."""

    steps: tuple[str | int, ...]

    @property
    def pointer(self) -> str:
        """As a JSON Pointer."""
        return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in self.steps)

    @property
    def words(self) -> str:
        """As in `messages[3].role`; `params` for params as a whole."""
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return text.removeprefix(".") or "params"


def decode_patiently(raw: bytes | Raw, decoder: msgspec.json.Decoder[_T]) -> _T:
    """The params that a plain decode has refused, read once more with `null` members taken as absent.

    Raises:
        InvalidParams: the params do not fit their type.
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
    """What the decoder found wrong, and where."""
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
    """The same JSON without the member at `steps`; `None` where that is no member of an object."""
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
