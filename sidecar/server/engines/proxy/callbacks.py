"""Answers what an engine process asks back about a session, and for the tools of the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextvars import Context, copy_context
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from msgspec import Raw, json

from sidecar.engine.calls import CompactRequest, IncomingMessage
from sidecar.engine.host import HostCapabilityMissing, HostRequestFailed
from sidecar.protocol import errors as codes
from sidecar.rpc.errors import InvalidRequest, RpcError
from sidecar.rpc.router import Call, Router, serving
from sidecar.server.engines.proxy.wire import (
    Ask,
    Compacted,
    Completion,
    Entries,
    HostRequest,
    Packer,
    Pinned,
    Pins,
    Report,
    SessionFacts,
    Spawned,
    Summaries,
    Text,
    ToolAsk,
    ToolFacts,
    Value,
    Verdict,
)
from sidecar.store.search import SearchError, SearchQuery
from sidecar.tools.contract import ToolSession

if TYPE_CHECKING:
    from sidecar.engine.entry import Entry
    from sidecar.server.engines.host import HostServices
    from sidecar.server.engines.session import OutsideSession


class OfHandle(Protocol):
    """Params that name a session."""

    @property
    def handle(self) -> int:
        """What `SessionFacts` named it."""
        ...


A = TypeVar("A", bound=OfHandle)


class _Served(NamedTuple):
    session: OutsideSession
    context: Context
    """What the call that is served runs in: what is done for it is done there."""


class Answering:
    """The sessions that one process may ask about, each for as long as a call of its engine lasts."""

    def __init__(self, host: HostServices) -> None:
        self._host = host
        self._packer = Packer()
        self._served: dict[int, _Served] = {}
        self._asked: set[int] = set()
        self._handles = count(1)
        self.router = Router()
        self._register()

    def open(self, session: OutsideSession) -> SessionFacts:
        """Let the process ask about a session."""
        handle = next(self._handles)
        self._served[handle] = _Served(session, copy_context())
        history, call = session.history, serving.get()
        return SessionFacts(
            handle=handle,
            session_id=session.session_id,
            agent_id=session.agent_id,
            history_version=history.version,
            history_count=history.count,
            view=session.view,
            factor=session.own.live.factor,
            method=call.method if call else "",
            request_id=call.id if call else None,
        )

    def close(self, handle: int) -> None:
        """Let it ask no longer."""
        self._served.pop(handle, None)
        self._asked.discard(handle)

    def was_asked(self, handle: int) -> bool:
        """Whether the process has asked anything about a session that is open."""
        return handle in self._asked

    def _register(self) -> None:
        asks: dict[str, Callable[[OutsideSession, Ask], Coroutine[Any, Any, object]]] = {
            "timeline/tail": self._tail,
            "timeline/opener": self._opener,
            "timeline/system": self._system,
            "timeline/resolve": self._resolve,
            "timeline/before": self._before,
            "history/read": self._read,
            "state/get": self._state,
            "state/save": self._save_state,
            "summaries/list": self._summaries,
            "summaries/add": self._add_summary,
            "session/spawn": self._spawn,
            "session/pins": self._pins,
            "session/pinned": self._pinned,
        }
        for method, answer in asks.items():
            self.router.request(method, Ask, self._handler(answer))
        self.router.request("session/search", HostRequest, self._handler(self._search))
        self.router.notification("session/compacted", Compacted, self._compacted)
        self.router.request("session/store", HostRequest, self._handler(self._store))
        self.router.request("runtime/complete", Completion, self._handler(self._complete))
        self.router.request("runtime/compact", HostRequest, self._handler(self._compact))
        self.router.notification("session/progress", Report, self._progress)

    def _handler(
        self, answer: Callable[[OutsideSession, A], Coroutine[Any, Any, object]]
    ) -> Callable[[A, Call], Coroutine[object, object, object]]:
        async def handle(params: A, call: Call) -> object:
            del call
            served = self._served.get(params.handle)
            if served is None:
                raise InvalidRequest("the call for which this is asked is over")
            self._asked.add(params.handle)
            loop = asyncio.get_running_loop()
            return await loop.create_task(answer(served.session, params), context=served.context)

        return handle

    def _entries(
        self, session: OutsideSession, ask: Ask, entries: Iterable[Entry], *, whole: bool = False
    ) -> Entries:
        return Entries(self._packer.pack(session.session_id, entries, again=ask.again), whole)

    async def _tail(self, session: OutsideSession, ask: Ask) -> Entries:
        entries, whole = await session.timeline.tail(ask.tokens)
        return self._entries(session, ask, entries, whole=whole)

    async def _opener(self, session: OutsideSession, ask: Ask) -> Entries:
        opener = await session.timeline.opener(ask.turn)
        return self._entries(session, ask, [opener] if opener else [])

    async def _system(self, session: OutsideSession, ask: Ask) -> Entries:
        return self._entries(session, ask, await session.timeline.system())

    async def _before(self, session: OutsideSession, ask: Ask) -> Entries:
        found = await session.timeline.before(ask.message_id, ask.limit, ask.since)
        return self._entries(session, ask, found)

    async def _read(self, session: OutsideSession, ask: Ask) -> Entries:
        return self._entries(session, ask, await session.history.read(ask.first, ask.last))

    async def _resolve(self, session: OutsideSession, ask: Ask) -> Text:
        return Text(await session.timeline.resolve(ask.message_id))

    async def _state(self, session: OutsideSession, ask: Ask) -> Value:
        return Value(await session.state(ask.name))

    async def _save_state(self, session: OutsideSession, ask: Ask) -> Verdict:
        await session.save_state(ask.name, ask.value)
        return Verdict(True)

    async def _summaries(self, session: OutsideSession, ask: Ask) -> Summaries:
        del ask
        return Summaries(await session.summaries())

    async def _spawn(self, session: OutsideSession, ask: Ask) -> Spawned:
        del ask
        return Spawned(await session.spawn())

    async def _pins(self, session: OutsideSession, ask: Ask) -> Pins:
        del ask
        pins = await session.pins()
        return Pins([Pinned(pin.pin_id, len(pin.entries), pin.made) for pin in pins])

    async def _pinned(self, session: OutsideSession, ask: Ask) -> Entries:
        return self._entries(session, ask, [entry for pin in await session.pins() for entry in pin.entries])

    async def _search(self, session: OutsideSession, params: HostRequest) -> Raw:
        query = json.decode(params.request, type=SearchQuery)
        return Raw(json.encode(await session.history.search(query)))

    async def _add_summary(self, session: OutsideSession, ask: Ask) -> Verdict:
        if ask.node is None:
            raise InvalidRequest("a summary is needed")
        return Verdict(await session.add_summary(ask.node, ask.replaces))

    async def _store(self, session: OutsideSession, params: HostRequest) -> Raw:
        message = json.decode(params.request, type=IncomingMessage)
        return Raw(json.encode(await self._host.store_message(session, message)))

    async def _complete(self, session: OutsideSession, params: Completion) -> Text:
        try:
            text = await self._host.complete(
                params.purpose,
                params.messages,
                system_prompt=params.system_prompt,
                max_tokens=params.max_tokens,
                session=session,
            )
        except (HostRequestFailed, HostCapabilityMissing) as error:
            raise RpcError(codes.HOST_CAPABILITY_MISSING, str(error)) from None
        return Text(text)

    async def _compact(self, session: OutsideSession, params: HostRequest) -> Raw:
        request = json.decode(params.request, type=CompactRequest)
        return Raw(json.encode(await self._host.delegate_compaction(session, request)))

    def _compacted(self, params: Compacted) -> None:
        served = self._served.get(params.handle)
        if served is not None:
            self._host.tell_compacted(served.session)

    def _progress(self, params: Report) -> None:
        served = self._served.get(params.handle)
        if served is not None:
            served.session.progress(params.message, params.percentage)


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
