"""A tiny real server for the wire tests: the real process and lifecycle around a handful of methods."""

import asyncio
import contextlib
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from msgspec import Raw, Struct

from sidecar.protocol.lifecycle import InitializeParams
from sidecar.rpc.dispatch import PeerLimits
from sidecar.rpc.errors import RpcError
from sidecar.rpc.peer import Peer
from sidecar.rpc.router import PENDING, Call, Order, Outcome, Router
from sidecar.server.process import run


class EchoMessage(Struct):
    role: str


class EchoParams(Struct, rename="camel"):
    text: str = ""
    message: Raw = Raw(b"null")
    messages: list[EchoMessage] = []
    lane: str = "a"
    wait_ms: int = 0
    size: int = 0


class EchoApplication:
    """Answers initialize at once, unless the client's locale requests delay or failure."""

    def __init__(self, router: Router, peer: Peer) -> None:
        self._peer = peer
        self._stored: list[str] = []
        router.request(
            "echo", EchoParams, lambda params, call: {"text": params.text, "message": params.message}
        )
        router.request("blob", EchoParams, lambda params, call: {"blob": "x" * params.size})
        router.request("slow", EchoParams, self._slow, order=Order.EXCLUSIVE, lane=lambda params: params.lane)
        router.request(
            "quick", EchoParams, self._quick, order=Order.PIPELINED, lane=lambda params: params.lane
        )
        router.request("stubborn", EchoParams, self._stubborn)
        router.request("askHost", EchoParams, self._ask_host)
        router.request("never", EchoParams, lambda params, call: PENDING)
        router.request("print", EchoParams, self._print)
        router.request("raise", EchoParams, self._raise)
        router.request("refuse", EchoParams, self._refuse)
        router.request("stored", EchoParams, lambda params, call: {"stored": list(self._stored)})

    async def initialize(self, params: InitializeParams) -> dict[str, object]:
        locale = params.locale or ""
        if locale.startswith("slow"):
            await asyncio.sleep(0.3)
        while locale == "stuck":
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
        if locale.endswith("fail"):
            raise RpcError(1001, "cannot start", hint="try again")
        return {"capabilities": {}, "serverInfo": {"name": "echo"}}

    async def close(self) -> None:
        logging.getLogger("echo").warning("closed")

    async def _slow(self, params: EchoParams, call: Call) -> Outcome:
        await asyncio.sleep(params.wait_ms / 1000)
        self._stored.append(params.text)
        return {"text": params.text}

    def _quick(self, params: EchoParams, call: Call) -> Outcome:
        self._stored.append(params.text)
        return {"text": params.text}

    async def _stubborn(self, params: EchoParams, call: Call) -> Outcome:
        """Finish despite being cancelled, as a commit does."""
        work = asyncio.ensure_future(asyncio.sleep(params.wait_ms / 1000))
        while not work.done():
            try:
                await asyncio.shield(work)
            except asyncio.CancelledError:
                continue
        self._stored.append(params.text)
        return {"text": params.text}

    async def _ask_host(self, params: EchoParams, call: Call) -> Outcome:
        answer = await self._peer.request(
            "host/ask", {"text": params.text}, dict[str, object], timeout_ms=params.wait_ms or None
        )
        self._stored.append(params.text)
        return {"answer": answer}

    def _print(self, params: EchoParams, call: Call) -> Outcome:
        print("Content-Length: 5\r\n\r\nstray")
        sys.stdout.flush()
        return {"text": params.text}

    def _raise(self, params: EchoParams, call: Call) -> Outcome:
        raise ZeroDivisionError("secret detail of /home/somebody")

    def _refuse(self, params: EchoParams, call: Call) -> Outcome:
        raise RpcError(1003, "no such thing", {"thing": params.text}, hint="make one")


if __name__ == "__main__":
    small = "--small" in sys.argv
    limits = PeerLimits(max_message_bytes=1000, max_in_flight=2, max_parked_bytes=4000) if small else None
    level = sys.argv[sys.argv.index("--log-level") + 1] if "--log-level" in sys.argv else "warning"
    sys.exit(run(EchoApplication, limits=limits, log_level=level))
