"""The gateway's face to programs: HTTP on loopback, in front of the real API."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import cast

import aiohttp
from aiohttp import web
from msgspec import Struct
from multidict import CIMultiDict, CIMultiDictProxy

from sidecar.gateway.budget import Budgets
from sidecar.gateway.chat_api import ChatApi
from sidecar.gateway.content import KINDS, MOST_BYTES, UsageCopy, plain_body, says_too_long, start_of
from sidecar.gateway.engine import Choice, EngineLink, Unavailable
from sidecar.gateway.messages_api import MessagesApi
from sidecar.gateway.request import ModelApi, ModelRequest, Rewrite, Usage, error_body
from sidecar.gateway.responses_api import CompactApi, ResponsesApi
from sidecar.gateway.savings import SavingsFile, spent_now
from sidecar.secrecy import masked_text

APIS: dict[str, type[ModelApi]] = {
    "/v1/messages": MessagesApi,
    "/v1/responses": ResponsesApi,
    "/v1/responses/compact": CompactApi,
    "/v1/chat/completions": ChatApi,
}
"""Everything else is passed through unread."""

OPT_OUT = "x-context-sidecar"
"""A request with this header set to `off` is passed through unread."""
CONNECT_S = 30.0

_HOP_BY_HOP = frozenset(
    (
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        OPT_OUT,
    )
)
_FOREIGN = re.compile(r"null$|https?://(?!(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$)", re.IGNORECASE)
"""Origins of web pages; those of editors have schemes of their own."""
_NO_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")

_log = logging.getLogger(__name__)


class Upstreams(Struct, frozen=True):
    """Where requests go."""

    anthropic: str = "https://api.anthropic.com"
    """Without a path."""
    openai: str = "https://api.openai.com/v1"
    """With the path that stands for `/v1`."""


class Gateway:
    """Serves programs on one loopback port."""

    def __init__(
        self,
        link: EngineLink,
        budgets: Budgets,
        upstreams: Upstreams,
        key: bytes,
        *,
        answers_compaction: bool = True,
        savings: SavingsFile | None = None,
    ) -> None:
        self._link = link
        self._budgets = budgets
        self._upstreams = upstreams
        self._apis = {path: api(key) for path, api in APIS.items()}
        self._answers_compaction = answers_compaction
        self._savings = savings
        self._locks: dict[str, asyncio.Lock] = {}
        self._behind: set[asyncio.Task[None]] = set()
        self._http: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None
        self._hosts: frozenset[str] = frozenset()

    async def open(self, host: str, port: int) -> int:
        """Listen; returns the port, which the system chooses where `port` is 0.

        Raises:
            OSError: the port is taken.
        """
        self._http = aiohttp.ClientSession(
            auto_decompress=False,
            trust_env=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            connector=aiohttp.TCPConnector(limit=0),
            skip_auto_headers=_NO_HEADERS,
        )
        app = web.Application(client_max_size=MOST_BYTES)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, auto_decompress=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        bound = cast("list[tuple[str, int]]", self._runner.addresses)[0][1]
        self._hosts = frozenset(f"{name}:{bound}" for name in ("127.0.0.1", "localhost", "[::1]"))
        return bound

    async def close(self) -> None:
        """Stop listening; what is stored behind answers is finished first."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self._behind:
            await asyncio.wait(self._behind, timeout=5)
        if self._http is not None:
            await self._http.close()
        await self._link.close()

    async def _serve(self, incoming: web.Request) -> web.StreamResponse:
        if incoming.headers.get("Host", "") not in self._hosts:
            # A page in a browser that has its own name resolve to this machine gets nothing.
            return web.Response(status=403, text="The gateway serves programs of this machine only.\n")
        if _FOREIGN.match(incoming.headers.get("Origin", "")):
            # A page needs no answer to store something here, and can send a request without asking first.
            return web.Response(status=403, text="The gateway does not serve web pages.\n")
        if not incoming.raw_path.startswith("/"):
            # Put behind the upstream's address, it could name another host.
            return web.Response(status=400, text="The target of a request begins with a slash.\n")
        if "upgrade" in incoming.headers.get("Connection", "").lower():
            return web.Response(status=501, text="The gateway does not upgrade connections.\n")
        try:
            body = await incoming.read()
        except web.HTTPRequestEntityTooLarge:
            return web.Response(status=413, text=f"A request has at most {MOST_BYTES} bytes.\n")
        api = self._apis.get(incoming.path) if incoming.method == "POST" else None
        if api is None or incoming.headers.get(OPT_OUT, "").lower() == "off":
            return await _Exchange(self, incoming, None, body).forward(body)
        return await self._answer(incoming, api, body)

    async def _answer(self, incoming: web.Request, api: ModelApi, body: bytes) -> web.StreamResponse:
        plain = plain_body(body, incoming.headers.get("Content-Encoding", ""))
        try:
            request = None if plain is None else api.read(incoming.headers, plain)
        except Exception:
            # A request of a form that we did not foresee is the provider's to judge.
            _log.exception("a request to %s could not be read", incoming.path)
            request = None
        if request is None:
            return await _Exchange(self, incoming, None, body).forward(body)
        budget = self._budgets.history(request)
        if request.kind == "compaction" and self._answers_compaction:
            try:
                handle = await self._link.compact(api.message_format, request, budget)
            except Unavailable:
                return await _Exchange(self, incoming, api, body).forward(_fallback(api, request, body))
            kind, answer = api.compacted(request, handle)
            return web.Response(body=answer, headers={"Content-Type": kind})
        choice: Choice | None = None
        if budget > 0 and request.kind == "turn":
            async with self._lock(request.session):
                with suppress(Unavailable):
                    choice = await self._link.choose(api.message_format, request, budget)
        if choice is None:
            sent = _fallback(api, request, body)
        else:
            sent = body if choice.rewrite is None else _written(api, request, choice.rewrite, body)
        exchange = _Exchange(self, incoming, api, body, request, choice)
        return await exchange.forward(sent)

    async def shrink(
        self, api: ModelApi, request: ModelRequest, refused: Choice | None
    ) -> tuple[Choice, bytes] | None:
        """A smaller choice and its body after an overflow; `None` where there is none."""
        if request.kind != "turn" or refused is None:
            return None
        self._budgets.overflowed(request, refused.estimated + self._budgets.fixed(request))
        budget = self._budgets.history(request)
        if budget <= 0:
            return None
        try:
            async with self._lock(request.session):
                choice = await self._link.shrink(api.message_format, request, budget)
        except Unavailable:
            return None
        return None if choice.rewrite is None else (choice, api.write(request, choice.rewrite))

    def answered(
        self,
        api: ModelApi,
        request: ModelRequest,
        choice: Choice | None,
        usage: Usage | None,
        sizes: tuple[int, int],
    ) -> None:
        """Take in what an answer cost, and store the history behind it; `sizes` are bytes wanted and sent."""
        if usage is not None:
            if choice is not None:
                self._budgets.learn(request, choice.estimated + self._budgets.fixed(request), usage.prompt)
            if self._savings is not None:
                epoch = choice.epoch if choice is not None else 0
                with suppress(OSError):
                    self._savings.add(spent_now(request.session, request.model, sizes, usage, epoch))
        if choice is not None:
            task = asyncio.create_task(self._keep(api, request))
            self._behind.add(task)
            task.add_done_callback(self._behind.discard)

    async def _keep(self, api: ModelApi, request: ModelRequest) -> None:
        with suppress(Unavailable):
            async with self._lock(request.session):
                await self._link.keep(api.message_format, request, self._budgets.history(request))

    def _lock(self, session: str) -> asyncio.Lock:
        """One request of a session at a time: each one sends the whole history."""
        if len(self._locks) > 1000:
            self._locks = {name: lock for name, lock in self._locks.items() if lock.locked()}
        return self._locks.setdefault(session, asyncio.Lock())

    def upstream(self, incoming: web.Request) -> str:
        """The whole URL that a request goes to."""
        if incoming.path.startswith("/v1/messages") or "anthropic-version" in incoming.headers:
            return self._upstreams.anthropic.rstrip("/") + incoming.raw_path
        target = incoming.raw_path
        # Only a whole step is taken off: what is left goes behind an address, and must not change its host.
        if re.match(r"/v1(?![^/?#])", target):
            target = target.removeprefix("/v1")
        return self._upstreams.openai.rstrip("/") + target

    @property
    def http(self) -> aiohttp.ClientSession:
        """The client for upstream."""
        assert self._http is not None
        return self._http


class _Exchange:
    """One request on its way upstream, and its answer on the way back."""

    def __init__(
        self,
        gateway: Gateway,
        incoming: web.Request,
        api: ModelApi | None,
        body: bytes,
        request: ModelRequest | None = None,
        choice: Choice | None = None,
    ) -> None:
        self._gateway = gateway
        self._incoming = incoming
        self._api = api
        self._body = body
        self._request = request
        self._choice = choice
        self._sent = body

    async def forward(self, sent: bytes, *, again: bool = True) -> web.StreamResponse:
        """Send a body upstream and pass the answer on as it arrives."""
        self._sent = sent
        headers = _forwarded(self._incoming.headers)
        if sent is not self._body:
            headers.popall("Content-Encoding", None)
        if self._request is not None and (accepted := headers.get("Accept-Encoding")) is not None:
            # Of an answer in another encoding, neither usage nor what is wrong with the prompt could be read.
            headers["Accept-Encoding"] = _readable_of(accepted)
        url = self._gateway.upstream(self._incoming)
        method = self._incoming.method
        data = sent if sent or method not in ("GET", "HEAD") else None
        try:
            async with self._gateway.http.request(
                method, url, headers=headers, data=data, allow_redirects=False
            ) as upstream:
                if again and self._request is not None:
                    start = await start_of(upstream, peeks=isinstance(self._api, ResponsesApi))
                    if says_too_long(start, upstream):
                        retry = await self._shrunk()
                        if retry is not None:
                            return await self.forward(retry, again=False)
                    return await self._pass_on(upstream, start)
                return await self._pass_on(upstream, b"")
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            _log.info("upstream failed: %s", problem)
            return self._error(502, f"The model's API cannot be reached: {masked_text(str(problem))}")

    async def _shrunk(self) -> bytes | None:
        assert self._api is not None
        assert self._request is not None
        smaller = await self._gateway.shrink(self._api, self._request, self._choice)
        if smaller is None:
            return None
        self._choice, body = smaller
        return body

    async def _pass_on(self, upstream: aiohttp.ClientResponse, start: bytes) -> web.StreamResponse:
        answer = web.StreamResponse(status=upstream.status, reason=upstream.reason)
        for name, value in upstream.headers.items():
            if name.lower() not in _HOP_BY_HOP:
                answer.headers.add(name, value)
        length = upstream.headers.get("Content-Length")
        if length is not None and length.isdigit():
            answer.content_length = int(length)
        await answer.prepare(self._incoming)
        copy = UsageCopy(upstream) if self._request is not None else None
        ended = False
        try:
            async for chunk in _from(start, upstream):
                if copy is not None:
                    copy.feed(chunk)
                await answer.write(chunk)
            ended = True
            await answer.write_eof()
        except (aiohttp.ClientError, OSError):
            # The program would take a clean end for the whole answer. It may have gone itself, as some do
            # as soon as they have read the last event.
            if self._incoming.transport is not None:
                self._incoming.transport.abort()
        if copy is not None and self._request is not None and self._api is not None:
            usage = copy.usage()
            if upstream.status < 300 and (ended or usage is not None):
                # A handle is short, but what it stands for is what the program wants the model to see.
                has_handle = self._request.handle is not None
                wanted = max(len(self._body), len(self._sent) if has_handle else 0)
                sizes = (wanted, len(self._sent))
                self._gateway.answered(self._api, self._request, self._choice, usage, sizes)
        return answer

    def _error(self, status: int, message: str) -> web.StreamResponse:
        if self._api is None:
            return web.Response(status=status, text=message)
        return web.Response(
            status=status, body=error_body(status, message), headers={"Content-Type": "application/json"}
        )


async def _from(start: bytes, upstream: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    """The whole answer as it arrives, of which `start` has been read."""
    if start:
        yield start
    async for chunk in upstream.content.iter_any():
        yield chunk


def _forwarded(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """The headers that are meant for the provider; a sender may name more that are not."""
    named = (name.strip().lower() for value in headers.getall("Connection", ()) for name in value.split(","))
    own = _HOP_BY_HOP.union(named)
    kept = CIMultiDict[str]()
    for name, value in headers.items():
        if name.lower() not in own:
            kept.add(name, value)
    return kept


def _readable_of(accepted: str) -> str:
    """What a program accepts of the encodings that can be undone here."""
    each = (part.strip() for part in accepted.split(","))
    return ", ".join(part for part in each if part.partition(";")[0].lower() in KINDS) or "identity"


def _written(api: ModelApi, request: ModelRequest, rewrite: Rewrite, body: bytes) -> bytes:
    try:
        return api.write(request, rewrite)
    except Exception:
        _log.exception("an answer of the engine could not be written; the request goes upstream as it came")
        return _fallback(api, request, body)


def _fallback(api: ModelApi, request: ModelRequest, body: bytes) -> bytes:
    changed = api.without_sidecar(request)
    return body if changed is None else changed
