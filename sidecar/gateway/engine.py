"""Asks the sidecar what the model should see, and gives up early enough for nobody to notice."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from sidecar.client import (
    AssembledContext,
    ContextOverflow,
    RequestFailed,
    SessionNotFound,
    SidecarClient,
    SidecarError,
)
from sidecar.client.requests import AboutSession
from sidecar.gateway.request import Handle, ModelRequest, Rewrite
from sidecar.messages.dialects import dialect
from sidecar.protocol.base import MessageFormat
from sidecar.protocol.lifecycle import HostInfo

NAMESPACE = "gateway"
ANSWER_S = 5.0
"""Seconds that a request waits for the sidecar before it goes upstream as it came; `--wait` overrides it."""
START_S = 15.0
"""Seconds that a sidecar may take to start."""
EXAMINED_S = 20.0
"""Seconds that a sidecar which let a request wait may be busy before it counts as hanging."""
COMPACTION_S = 30.0
REST_S = (1.0, 30.0)
"""Pause before a sidecar that failed is started again: at first, and at the most."""
SUMMARY_TOKENS = 8_000
"""Most tokens of a summary that a program keeps in its own history."""
REMEMBERED_SESSIONS = 64
"""Sessions of which only new messages are sent; the histories of others are sent whole."""

_FENCE = re.compile(r"^\[/?ctx\b[^\]\n]*\]$", re.MULTILINE)

_log = logging.getLogger(__name__)


class Unavailable(Exception):
    """Raised where no engine can be asked now; the request goes upstream as it came."""


class Choice(Struct, frozen=True, kw_only=True):
    """What an engine chose for one request."""

    rewrite: Rewrite | None
    """`None` where the history goes upstream as it came."""
    estimated: int
    """Tokens of the messages that go upstream, by the sidecar's count."""
    epoch: int


class _Stored(NamedTuple):
    """A history that a sidecar has stored message for message, at the end of its session."""

    client: SidecarClient
    handle: Handle | None
    before: int
    """Messages of the session in front of the history."""
    history: list[bytes]


class EngineLink:
    """One sidecar for each message format, started when it is first needed."""

    def __init__(
        self,
        command: Sequence[str],
        engine: str,
        folder: str,
        warn: Callable[[str], None],
        state_dir: Path | None = None,
        wait_s: float = ANSWER_S,
    ) -> None:
        self._command = list(command)
        self._engine = engine
        self._folder = folder
        self._warn = warn
        self._state_dir = state_dir
        self._answer_s = wait_s
        self._start_s, self._compaction_s = max(START_S, wait_s), max(COMPACTION_S, wait_s)
        self._clients: dict[MessageFormat, SidecarClient] = {}
        self._starting: dict[MessageFormat, asyncio.Task[SidecarClient | None]] = {}
        self._resting_until = 0.0
        self._pause_s = REST_S[0]
        self._forked: set[str] = set()
        self._stored: OrderedDict[str, _Stored] = OrderedDict()
        self._examined: set[SidecarClient] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def choose(self, message_format: MessageFormat, request: ModelRequest, budget: int) -> Choice:
        """What the model should see within `budget` tokens.

        Raises:
            Unavailable: the sidecar is down, hangs, or not even the newest messages fit.
        """
        async with self._client(message_format, self._answer_s) as client:
            answer = await self._extended(client, request, budget)
            if answer is None:
                answer = await self._whole(client, request, budget)
        bodies = answer.bodies
        same = request.handle is None and bodies == request.history
        same = same and not answer.system_prompt_addition and not answer.user_message_append
        rewrite = Rewrite(
            messages=bodies,
            stable=answer.stable_prefix.message_count,
            system_addition=answer.system_prompt_addition or "",
            user_addition=answer.user_message_append or "",
        )
        return Choice(
            rewrite=None if same else rewrite, estimated=answer.estimated_tokens, epoch=answer.context_epoch
        )

    async def keep(self, message_format: MessageFormat, request: ModelRequest, budget: int) -> None:
        """Store the history that a request came with; engines summarise behind it.

        Raises:
            Unavailable: the sidecar is down.
        """
        async with self._client(message_format, self._compaction_s) as client:
            stored = self._stored.get(request.session)
            about = self._about(request)
            if stored is not None and _begins_with(stored, client, request):
                await client.after_turn(request.session, token_budget=budget, **about)
                return
            before = None if request.handle is not None else max(0, len(request.history) - 1)
            await self._take_back(client, request)
            await client.after_turn(
                request.session,
                request.history,
                pre_prompt_message_count=before,
                token_budget=budget,
                **about,
            )
            if request.handle is None and await self._count(client, request) == len(request.history):
                self._remember(request, _Stored(client, None, 0, request.history))

    async def compact(self, message_format: MessageFormat, request: ModelRequest, budget: int) -> Handle:
        """Compact the session to half of what it may take; returns what stands for it from now on.

        Raises:
            Unavailable: the sidecar is down.
        """
        target = max(1, budget // 2)
        await self.keep(message_format, request, budget)
        async with self._client(message_format, self._compaction_s) as client:
            await client.compact(request.session, target, force=True, compaction_target="budget")
            answer = await client.assemble(request.session, min(SUMMARY_TOKENS, target))
        return Handle(request.session, _in_words(message_format, answer.bodies))

    async def shrink(self, message_format: MessageFormat, request: ModelRequest, budget: int) -> Choice:
        """What the model should see after the provider said that the prompt was too long.

        Raises:
            Unavailable: the sidecar is down, or there is nothing to take away.
        """
        await self.keep(message_format, request, budget)
        async with self._client(message_format, self._compaction_s) as client:
            await client.compact(request.session, budget, force=True, force_reason="overflow")
        return await self.choose(message_format, request, budget)

    async def close(self) -> None:
        """End the sidecars."""
        starting = list(self._starting.values())
        for task in starting:
            task.cancel()
        await asyncio.gather(*starting, return_exceptions=True)
        clients, self._clients = self._clients, {}
        for client in clients.values():
            with suppress(SidecarError, TimeoutError):
                await asyncio.wait_for(client.close(), 3)

    async def _extended(
        self, client: SidecarClient, request: ModelRequest, budget: int
    ) -> AssembledContext | None:
        """The answer to a history that goes on from a stored one, for which only new messages are sent.

        `None` where it does not, or where something else has been stored in the session meanwhile.
        """
        # Until the answer is there, nothing proves that what is sent now is stored.
        stored = self._stored.pop(request.session, None)
        if stored is None or not _begins_with(stored, client, request, extended=True):
            return None
        if await self._count(client, request) != stored.before + len(stored.history):
            return None
        new, session, about = request.history[len(stored.history) :], request.session, self._about(request)
        asked = client.assemble(session, budget, model=request.model or None, **about)
        if new:
            # Sent at once: the sidecar takes the requests of a session in their order.
            _, answer = await asyncio.gather(client.ingest_batch(session, new, **about), asked)
        else:
            answer = await asked
        self._remember(request, stored._replace(history=request.history))
        return answer

    async def _whole(self, client: SidecarClient, request: ModelRequest, budget: int) -> AssembledContext:
        """The answer to a history that is sent whole, and aligned with what is stored."""
        session, about = request.session, self._about(request)
        model = request.model or None
        await self._take_back(client, request)
        if request.handle is None:
            return await client.assemble(session, budget, request.history, model=model, **about)
        # The store has what the handle stands for; the rest of the list is a piece behind it.
        await self._fork(client, request)
        before = await self._count(client, request)
        if before == 0:
            return await client.assemble(session, budget, request.in_full, model=model, **about)
        await client.after_turn(session, request.history, **about)
        if await self._count(client, request) == before + len(request.history):
            self._remember(request, _Stored(client, request.handle, before, request.history))
        return await client.assemble(session, budget, model=model, **about)

    async def _take_back(self, client: SidecarClient, request: ModelRequest) -> None:
        """Remove what is stored behind the place from which the history goes on in another way.

        The program's user went back to an earlier message: nothing said after it, and no summary of that, is
        to reach the model. Whatever stands in front of a message that both have was only edited, and stays.
        """
        places: dict[bytes, list[int]] = {}
        for place, message in enumerate(request.history):
            places.setdefault(message, []).append(place)
        reached, last, differs = -1, "", False
        try:
            async for stored in client.stored_messages(request.session):
                alike = places.get(bytes(stored.body), [])
                at = bisect_right(alike, reached)
                if at == len(alike):
                    differs = differs or bool(last)
                elif differs:
                    return
                else:
                    reached, last = alike[at], stored.message_id
            if differs:
                await client.truncate(request.session, last)
        except SessionNotFound:
            return

    async def _count(self, client: SidecarClient, request: ModelRequest) -> int:
        """How many messages of the session are stored."""
        try:
            return (await client.session(request.session)).message_count
        except SessionNotFound:
            return 0

    def _remember(self, request: ModelRequest, stored: _Stored) -> None:
        self._stored[request.session] = stored
        self._stored.move_to_end(request.session)
        if len(self._stored) > REMEMBERED_SESSIONS:
            self._stored.popitem(last=False)

    def _about(self, request: ModelRequest) -> AboutSession:
        """An alias for the newest session of a program in a folder, which the recall tools look for."""
        return {"session_key": f"{request.session.partition(':')[0]}:{self._folder}"}

    async def _fork(self, client: SidecarClient, request: ModelRequest) -> None:
        """A handle that came from another session: this one begins as its copy."""
        handle = request.handle
        if handle is None or handle.session in ("", request.session) or request.session in self._forked:
            return
        with suppress(SessionNotFound, RequestFailed):
            await client.fork(handle.session, request.session)
        self._forked.add(request.session)

    @asynccontextmanager
    async def _client(self, message_format: MessageFormat, limit_s: float) -> AsyncGenerator[SidecarClient]:
        """A client for one piece of work; whatever keeps it from succeeding in time is `Unavailable`."""
        client: SidecarClient | None = None
        try:
            async with asyncio.timeout(limit_s):
                client = await self._open(message_format)
                yield client
        except ContextOverflow as problem:
            raise Unavailable("not even the newest messages fit") from problem
        except RequestFailed as problem:
            self._warn(f"The sidecar refused a request: {problem.message}")
            raise Unavailable(problem.message) from problem
        except TimeoutError as problem:
            if client is not None and client not in self._examined:
                self._examined.add(client)
                self._warn("The sidecar does not answer. Requests go upstream unchanged until it does.")
                self._behind(self._examine(message_format, client))
            raise Unavailable(f"no answer in {limit_s:.0f} s") from problem
        except (SidecarError, OSError) as problem:
            if client is not None:
                self._give_up(message_format, client, str(problem))
            raise Unavailable(str(problem)) from problem
        except Unavailable:
            raise
        except Exception as problem:
            # Nothing that a program sends may keep its request from going upstream.
            _log.exception("a request could not be handed to the sidecar")
            raise Unavailable(str(problem)) from problem
        self._pause_s = REST_S[0]

    async def _examine(self, message_format: MessageFormat, client: SidecarClient) -> None:
        """Give a sidecar up that hangs; one that is merely busy answers a small question."""
        try:
            async with asyncio.timeout(EXAMINED_S):
                await client.session(NAMESPACE)
        except RequestFailed:
            return
        except (SidecarError, TimeoutError):
            if self._clients.get(message_format) is client:
                del self._clients[message_format]
            await client.close()
        finally:
            self._examined.discard(client)

    def _give_up(self, message_format: MessageFormat, client: SidecarClient, reason: str) -> None:
        """End a sidecar, once however many requests it has failed."""
        if self._clients.get(message_format) is client:
            del self._clients[message_format]
            self._rest(reason)
            self._behind(client.close())

    async def _open(self, message_format: MessageFormat) -> SidecarClient:
        """The client of a sidecar that runs; the start of another goes on behind a request that gives up."""
        client = self._clients.get(message_format)
        if client in self._examined:
            raise Unavailable("the sidecar does not answer")
        if client is not None and client.alive:
            return client
        starting = self._starting.get(message_format)
        if starting is None:
            if time.monotonic() < self._resting_until:
                raise Unavailable("the sidecar failed a moment ago")
            starting = asyncio.create_task(self._start(message_format))
            self._starting[message_format] = starting
        started = await asyncio.shield(starting)
        if started is None:
            raise Unavailable("the sidecar did not start")
        return started

    async def _start(self, message_format: MessageFormat) -> SidecarClient | None:
        client = SidecarClient.start(
            self._command,
            engine=self._engine,
            message_format=message_format,
            host=HostInfo(id="gateway"),
            namespace=NAMESPACE,
            state_dir=self._state_dir,
            deltas=True,
            on_stderr=lambda line: _log.info("%s", line),
        )
        try:
            async with asyncio.timeout(self._start_s):
                await client.open()
        except (SidecarError, TimeoutError, OSError) as problem:
            self._rest(str(problem) or f"not started in {self._start_s:.0f} s")
            self._behind(client.close())
            return None
        finally:
            del self._starting[message_format]
        self._clients[message_format] = client
        return client

    def _rest(self, reason: str) -> None:
        """Leave the sidecar alone for a while."""
        self._resting_until = time.monotonic() + self._pause_s
        self._pause_s = min(REST_S[1], self._pause_s * 2)
        self._warn(f"The sidecar failed ({reason}). Requests go upstream unchanged until it is back.")

    def _behind(self, work: Coroutine[object, object, None]) -> None:
        """Do something that no request waits for."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _begins_with(
    stored: _Stored, client: SidecarClient, request: ModelRequest, *, extended: bool = False
) -> bool:
    """Whether the history is the beginning of the stored one, or with `extended` the other way round."""
    if stored.client is not client or stored.handle != request.handle:
        return False
    longer, shorter = stored.history, request.history
    if extended:
        longer, shorter = shorter, longer
    return longer[: len(shorter)] == shorter


def _in_words(message_format: MessageFormat, bodies: Sequence[bytes]) -> str:
    """An answer of the engine as one text: its summaries, and what was said last."""
    reader = dialect(message_format)
    lines: list[str] = []
    for body in bodies:
        reading = reader.read(body)
        if reading.role == "system":
            continue
        text = _FENCE.sub("", reading.text).strip()
        if text:
            lines.append(text if text != reading.text.strip() else f"{reading.role}: {text}")
        lines += [f"{reading.role} called {call.name}({call.arguments[:200]})" for call in reading.calls]
        lines += [f"tool answered: {result.text[:400]}" for result in reading.results]
    return "\n\n".join(lines)
