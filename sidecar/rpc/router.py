"""Which handler serves which method, with the type of its params."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw

from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.params import decode_patiently

if TYPE_CHECKING:
    from sidecar.rpc.call import Call

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

    def load(self, method: str) -> "Route[object] | None":
        """The route of a method that is registered late; `None` where there is none."""
        load = self._loaders.pop(method, None)
        if load is not None and method not in self.routes:
            load()
        return self.routes.get(method)

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
    def serve(params: P, call: "Call") -> Outcome | Coroutine[object, object, object]:
        result = answer(params)
        return handler(params, call) if result is None else result

    return serve
