"""The core of the sidecar with nothing behind it: what `sidecar.rpc` and the lifecycle cost by themselves."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from msgspec import Raw, Struct

from sidecar.protocol.lifecycle import InitializeParams
from sidecar.rpc.peer import Peer
from sidecar.rpc.router import Order, Router
from sidecar.server.process import run


class EchoParams(Struct, rename="camel", gc=False):
    session_id: str
    text: str
    count: int


class Message(Struct, gc=False):
    role: str
    content: str


class TypedParams(Struct, rename="camel", gc=False):
    session_id: str
    messages: list[Message]


class RawParams(Struct, rename="camel", gc=False):
    session_id: str
    messages: list[Raw]


class CoreApplication:
    """Answers with what it was given."""

    def __init__(self, router: Router, peer: Peer) -> None:
        router.request(
            "bench/echo",
            EchoParams,
            lambda params, call: params,
            order=Order.PIPELINED,
            lane=lambda params: params.session_id,
        )
        messages = RawParams if "raw" in sys.argv else TypedParams
        router.request("bench/messages", messages, lambda params, call: params)

    async def initialize(self, params: InitializeParams) -> dict[str, object]:
        return {"capabilities": {}, "serverInfo": {"name": "core"}}

    async def close(self) -> None:
        pass


if __name__ == "__main__":
    sys.exit(run(CoreApplication))
