"""What a connection tells somebody who watches the requests that it serves."""

from typing import TYPE_CHECKING, Protocol

from msgspec import Raw

from sidecar.rpc.envelope import JsonId
from sidecar.rpc.errors import RpcError

if TYPE_CHECKING:
    from sidecar.rpc.call import Call


class Observer(Protocol):
    """Hears of every request once when it begins and once when it ends; must be quick, and never raise."""

    def begun(self, call: "Call", params: Raw) -> None:
        """A request was read and understood; it may still wait for others."""
        ...

    def settled(self, call: "Call", outcome: object) -> None:
        """A request is answered, with a result or an `RpcError`."""
        ...

    def refused(self, id: JsonId, method: str, error: RpcError) -> None:
        """A request was refused before it began."""
        ...
