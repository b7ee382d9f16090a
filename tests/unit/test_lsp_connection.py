"""The pygls language server communicates only through our peers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from lsprotocol import types

from sidecar.lsp.front_end import serve_features
from sidecar.lsp.language_server import TranscriptServer
from sidecar.rpc.errors import RemoteError, RpcError
from sidecar.rpc.peer import Peer
from sidecar.rpc.router import Call, Outcome, Router
from sidecar.rpc.stdio import StdioTransport

LIMIT_S = 20.0

Json = dict[str, Any]


def run(work: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(work, LIMIT_S))


@asynccontextmanager
async def connected(routes: Router, client_routes: Router) -> AsyncIterator[tuple[Peer, Peer]]:
    """A server and a client over a socket."""
    ends = socket.socketpair()
    peers = [
        Peer(router, StdioTransport(end.fileno(), end.fileno()))
        for router, end in zip((routes, client_routes), ends, strict=True)
    ]
    for peer in peers:
        peer.start(newline=False)
    try:
        yield peers[0], peers[1]
    finally:
        for peer, end in zip(peers, ends, strict=True):
            peer.close()
            end.close()


def test_a_server_asks_the_client_and_gets_types() -> None:
    client = Router()

    def configuration(params: Json, call: Call) -> Outcome:
        assert params == {"items": [{"section": "contextSidecar"}]}
        call.reply([{"on": True}])
        return None

    client.request("workspace/configuration", dict[str, Any], configuration)

    async def work() -> None:
        async with connected(Router(), client) as (peer, _):
            server = TranscriptServer(peer)
            item = types.ConfigurationItem(section="contextSidecar")
            params = types.ConfigurationParams([item])
            assert list(await server.workspace_configuration_async(params)) == [{"on": True}]

    run(work())


def test_an_error_from_the_client_reaches_the_requester() -> None:
    async def work() -> None:
        async with connected(Router(), Router()) as (peer, _):
            server = TranscriptServer(peer)
            with pytest.raises(RemoteError) as caught:
                await server.workspace_code_lens_refresh_async(None)
            assert caught.value.code == -32601

    run(work())


def test_a_server_notifies_the_client() -> None:
    async def work() -> None:
        told: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        client = Router()
        client.notification("window/showMessage", dict[str, Any], told.set_result)
        async with connected(Router(), client) as (peer, _):
            message = types.ShowMessageParams(types.MessageType.Info, "你好")
            TranscriptServer(peer).window_show_message(message)
            assert await told == {"type": 3, "message": "你好"}

    run(work())


def test_a_feature_may_be_a_coroutine_and_is_cancelled_with_its_request() -> None:
    async def work() -> None:
        routes = Router()
        async with connected(routes, Router()) as (peer, client):
            server = TranscriptServer(peer)
            begun, ended = asyncio.Event(), asyncio.Event()

            @server.feature(types.TEXT_DOCUMENT_HOVER)
            async def hover(params: types.HoverParams) -> types.Hover | None:
                if params.position.line:
                    return types.Hover("text")
                begun.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.set()
                return None

            serve_features(server, routes)
            place = {"textDocument": {"uri": "file:///a"}, "position": {"line": 1, "character": 0}}
            assert await client.request("textDocument/hover", place, dict[str, Any]) == {"contents": "text"}
            place["position"] = {"line": 0, "character": 0}
            asked = asyncio.create_task(client.request("textDocument/hover", place, dict[str, Any]))
            await begun.wait()
            asked.cancel()
            await ended.wait()

    run(work())


def test_a_command_is_served_once_there_is_one() -> None:
    async def work() -> None:
        routes = Router()
        async with connected(routes, Router()) as (peer, client):
            server = TranscriptServer(peer)

            @server.command("contextSidecar.echo")
            def echo(text: str) -> str:
                return text

            serve_features(server, routes)
            params: Json = {"command": "contextSidecar.echo", "arguments": ["hi"]}
            assert await client.request("workspace/executeCommand", params, str) == "hi"
            params["command"] = "contextSidecar.nothing"
            with pytest.raises(RpcError) as caught:
                await client.request("workspace/executeCommand", params, str)
            assert caught.value.code == -32602

    run(work())
