"""One request of the other side, from its start to its answer."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import TYPE_CHECKING

from sidecar.rpc.envelope import JsonId
from sidecar.rpc.errors import RpcError
from sidecar.rpc.lanes import Crossing, Lane, Place

if TYPE_CHECKING:
    from sidecar.rpc.dispatch import Dispatcher
    from sidecar.rpc.peer import Peer
    from sidecar.rpc.router import Route


serving: "ContextVar[Call | None]" = ContextVar("serving", default=None)
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
    task: "asyncio.Task[None] | None" = None
    unbegun: "Coroutine[object, object, object] | None" = None
    """The handler's coroutine as long as it has not begun."""

    def __init__(
        self, id: JsonId, route: "Route[object]", params: object, size: int, dispatcher: "Dispatcher"
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
    def peer(self) -> "Peer":
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
