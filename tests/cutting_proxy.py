"""A way to a PostgreSQL server that can be cut at the moment of a commit."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Literal

Cut = Literal["before", "after"]
"""`before` the server gets the commit, or `after` it has carried it out and before anyone is told."""

_CHUNK = 1 << 16


class CuttingProxy:
    """Listens on the loopback while it is entered, and hands everything on to the server's socket."""

    def __init__(self, server_socket: str) -> None:
        self._server = server_socket
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._armed: Cut | None = None
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self.cuts = 0
        """Connections that were cut so far."""
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._listener.getsockname()[1]

    def arm(self, cut: Cut) -> None:
        """Cut the next connection that commits."""
        self._armed = cut

    def __enter__(self) -> "CuttingProxy":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(30)
        for each in self._open:
            _end(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            self._open += [client, server]
            swallow = threading.Event()
            for source, target, seen in (
                (client, server, lambda data, c=client, s=server, w=swallow: self._up(data, c, s, w)),
                (server, client, lambda data, c=client, s=server, w=swallow: self._down(c, s, w)),
            ):
                threading.Thread(target=_pump, args=(source, target, seen), daemon=True).start()

    def _up(
        self, data: bytes, client: socket.socket, server: socket.socket, swallow: threading.Event
    ) -> bool:
        """Whether what the client sends is handed on."""
        with self._lock:
            armed = self._armed
            if armed is None or b"COMMIT" not in data:
                return True
            self._armed = None
            self.cuts += 1
        if armed == "before":
            _end(client)
            _end(server)
            return False
        swallow.set()
        return True

    def _down(self, client: socket.socket, server: socket.socket, swallow: threading.Event) -> bool:
        """Whether what the server answers is handed on."""
        if not swallow.is_set():
            return True
        _end(client)
        _end(server)
        return False


def _pump(source: socket.socket, target: socket.socket, seen: Callable[[bytes], bool]) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            if not seen(data):
                return
            target.sendall(data)
    _end(source)
    _end(target)


def _end(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
