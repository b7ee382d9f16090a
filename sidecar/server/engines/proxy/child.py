"""The process of one engine: it is spoken to as any sidecar is, and asks back about sessions.

Run as `python -P -m sidecar.server.engines.proxy.child`; its command line alone says which code it loads.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from sidecar.rpc.dispatch import PeerLimits
from sidecar.server.engines.proxy.confinement import confine
from sidecar.server.process import run

if TYPE_CHECKING:
    from sidecar.rpc.peer import Peer
    from sidecar.rpc.router import Router
    from sidecar.server.engines.proxy.child_application import EngineApplication


IN_FLIGHT = 1 << 16
"""Calls that may run at once; the sidecar bounds them already."""
YIELDS = 10
"""How much lower than the sidecar's the priority of an engine is: a busy one must not slow the others."""
_WATCH_S = 1.0


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Serve one engine until the sidecar ends the connection."""
    options = _options(arguments)
    confined = confine(options.hide, [*sys.path, *options.place])
    _limit_memory(options.memory_mb << 20)
    if hasattr(os, "nice"):
        os.nice(YIELDS)
    threading.Thread(target=_end_with, args=(os.getppid(),), name="parent", daemon=True).start()

    def make(router: Router, peer: Peer) -> EngineApplication:
        from sidecar.server.engines.proxy.child_application import EngineApplication

        return EngineApplication(router, peer, options.engine, options.target, tuple(options.place))

    if not confined:
        logging.getLogger(__name__).info("the platform does not keep this engine from opening the store")
    limits = PeerLimits(request_timeout_ms=0, max_in_flight=IN_FLIGHT)
    run(make, log_level=options.log_level, log_format=options.log_format, limits=limits)


class _Options(argparse.Namespace):
    engine: str
    target: str
    place: list[str]
    memory_mb: int
    hide: list[str]
    log_level: str
    log_format: str


def _options(arguments: Sequence[str] | None) -> _Options:
    parser = argparse.ArgumentParser(description="The process of one engine; a sidecar starts it.")
    parser.add_argument("--engine", required=True, help="id of the engine")
    parser.add_argument("--target", required=True, help="module:Class")
    parser.add_argument("--place", action="append", default=[], help="folder to import from")
    parser.add_argument("--memory-mb", type=int, default=0, help="most memory, in mebibytes")
    parser.add_argument("--hide", action="append", default=[], help="file or folder to keep out of")
    parser.add_argument("--log-level", default="warning")
    parser.add_argument("--log-format", default="text")
    return parser.parse_args(arguments, _Options())


def _limit_memory(size: int) -> None:
    """Let allocations beyond `size` bytes fail, so that an engine cannot take the machine's memory."""
    if not size or sys.platform == "win32":
        return
    import resource

    # On Linux this counts what is written to; address space alone is reserved freely by threads.
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    _, most = resource.getrlimit(kind)
    limit = size if most == resource.RLIM_INFINITY else min(size, most)
    resource.setrlimit(kind, (limit, most))


def _end_with(parent: int) -> None:
    """End when the sidecar is gone, even while the engine keeps the loop busy."""
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os._exit(1)


if __name__ == "__main__":
    main()
