"""Messages that wait until there is room for them, or until the lifecycle lets them pass."""

from collections import deque

from msgspec import Raw

from sidecar.rpc.envelope import JsonId

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
