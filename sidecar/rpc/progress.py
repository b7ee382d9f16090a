"""Work-done progress: what a client shows while it waits."""

from sidecar.rpc.errors import RpcError
from sidecar.rpc.peer import Peer

ProgressToken = int | str


class Progress:
    """Reports on one piece of work under a token; a progress without one reports nothing."""

    __slots__ = ("_ended", "_peer", "_token")

    def __init__(self, peer: Peer, token: ProgressToken | None) -> None:
        self._peer = peer
        self._token = token
        self._ended = False

    def begin(self, title: str, *, cancellable: bool = False, message: str | None = None) -> None:
        """Say what the work is."""
        self._send("begin", {"title": title, "cancellable": cancellable}, message, None)

    def report(self, message: str | None = None, *, percentage: int | None = None) -> None:
        """Say how far it has come; `percentage` is 0 to 100."""
        self._send("report", {}, message, percentage)

    def end(self, message: str | None = None) -> None:
        """Say that it is over; later reports are dropped."""
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
    """A progress that this side starts by itself; silent where the client does not support it or refuses."""
    if supported:
        try:
            await peer.request("window/workDoneProgress/create", {"token": token}, type(None))
        except RpcError:
            supported = False
    return Progress(peer, token if supported else None)
