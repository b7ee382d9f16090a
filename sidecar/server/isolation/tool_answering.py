"""Answers what a tool in an engine's process asks about the session that it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any

from msgspec import Raw, json

from sidecar.protocol import errors as codes
from sidecar.rpc.call import Call
from sidecar.rpc.errors import InvalidRequest, RpcError
from sidecar.rpc.router import Router
from sidecar.server.isolation.wire import Completion, HostRequest, Text, ToolAsk, ToolFacts
from sidecar.store.search import SearchError, SearchQuery
from sidecar.tools.contract import ToolSession


class ToolAnswering:
    """The sessions that tools of one process may read, each for as long as a call lasts."""

    def __init__(self, router: Router) -> None:
        self._served: dict[int, ToolSession] = {}
        self._handles = count(1)
        asks: dict[str, Callable[[ToolSession, ToolAsk], Coroutine[Any, Any, object]]] = {
            "tool/messages": _messages,
            "tool/message": _message,
            "tool/turnStart": _turn_start,
            "tool/summaries": _summaries,
            "tool/summaryNodes": _summary_nodes,
        }
        for method, answer in asks.items():
            router.request(method, ToolAsk, self._handler(answer))
        router.request("tool/search", HostRequest, self._search)
        router.request("tool/find", HostRequest, self._find)
        router.request("tool/complete", Completion, self._complete)

    def open(self, session: ToolSession) -> ToolFacts:
        """Let a tool read a session."""
        handle = next(self._handles)
        self._served[handle] = session
        return ToolFacts(handle, session.head, session.model is not None)

    def close(self, handle: int) -> None:
        """Let it read no longer."""
        self._served.pop(handle, None)

    def _of(self, handle: int) -> ToolSession:
        session = self._served.get(handle)
        if session is None:
            raise InvalidRequest("the call for which this is asked is over")
        return session

    def _handler(
        self, answer: Callable[[ToolSession, ToolAsk], Coroutine[Any, Any, object]]
    ) -> Callable[[ToolAsk, Call], Coroutine[object, object, Raw]]:
        async def handle(params: ToolAsk, call: Call) -> Raw:
            del call
            return Raw(json.encode(await answer(self._of(params.handle), params)))

        return handle

    async def _search(self, params: HostRequest, call: Call) -> Raw:
        del call
        session = self._of(params.handle)
        query = json.decode(params.request, type=SearchQuery)
        return await _found(session.store.search(session.head.ref, query))

    async def _find(self, params: HostRequest, call: Call) -> Raw:
        del call
        return await _found(self._of(params.handle).find(json.decode(params.request, type=SearchQuery)))

    async def _complete(self, params: Completion, call: Call) -> Text:
        del call
        model = self._of(params.handle).model
        if model is None:
            raise RpcError(codes.HOST_CAPABILITY_MISSING, "there is no model")
        try:
            text = await model.ask(params.messages, params.system_prompt or "", params.max_tokens or 0)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            raise RpcError(codes.HOST_CAPABILITY_MISSING, str(error)[:500]) from error
        return Text(text)


async def _found(searching: Coroutine[Any, Any, object]) -> Raw:
    try:
        return Raw(json.encode(await searching))
    except SearchError as error:
        raise RpcError(codes.INVALID_PARAMS, str(error)) from None


async def _messages(session: ToolSession, ask: ToolAsk) -> object:
    return await session.store.messages(session.head.ref, ask.first, ask.last)


async def _message(session: ToolSession, ask: ToolAsk) -> object:
    return await session.store.message(session.head.ref, ask.message_id)


async def _turn_start(session: ToolSession, ask: ToolAsk) -> object:
    return await session.store.turn_start(session.head.ref, ask.turn)


async def _summaries(session: ToolSession, ask: ToolAsk) -> object:
    return await session.store.summaries(session.head.ref, texts=ask.texts)


async def _summary_nodes(session: ToolSession, ask: ToolAsk) -> object:
    return await session.store.summary_nodes(session.head.ref, ask.node_ids)
