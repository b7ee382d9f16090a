"""The inspector's web server: one person on this machine, who has its address."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from importlib.resources import files
from typing import NamedTuple, cast
from urllib.parse import urlencode

from aiohttp import web

from sidecar.cli.inspector import pages
from sidecar.cli.inspector.history import History, Turn
from sidecar.cli.lab.recording import Recording, Step, Tally, steps_of
from sidecar.cli.options import Prices
from sidecar.client.errors import SidecarError
from sidecar.client.sidecar_client import SidecarClient
from sidecar.messages.dialects import dialect
from sidecar.messages.importers.transcript import Imported, Span
from sidecar.protocol.base import MessageFormat
from sidecar.tokens.choose import counter

TRANSCRIPT = "transcript"
"""Stands for the file in addresses; sessions have `session/` in front of their ids."""
MOST_HISTORIES = 4
PATIENCE_S = 0.7
"""How long a page waits for a conversation to be played; it then shows the turns that there are."""
WHOLE_S = 300.0
"""How long one waits that needs all of them."""
FOUND = 30
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_KINDS = {".css": "text/css", ".js": "text/javascript"}

Start = Callable[[str | None, MessageFormat], SidecarClient]
"""Starts a sidecar for an engine (as configured if `None`) and a dialect, whose store is memory."""


class Asked(NamedTuple):
    """What of which conversation is to be shown, with which engine, within which budget."""

    source: str
    engine: str
    budget: int

    def address(self, **more: object) -> str:
        """The query of a page about it."""
        return urlencode({"source": self.source, "engine": self.engine, "budget": self.budget, **more})


class _Playing(NamedTuple):
    history: History
    tally: Tally
    told: list[Step]
    """The messages that have been handed over to be played."""
    tasks: list[asyncio.Task[None]]
    """The newest is the one that plays."""
    stack: AsyncExitStack


class Inspector:
    """Serves pages on a loopback port, below a token that nobody else knows."""

    def __init__(
        self,
        store: SidecarClient,
        recording: Recording | None,
        start: Start,
        engine: str,
        budget: int,
        prices: Prices,
    ) -> None:
        self.token = secrets.token_urlsafe(24)
        self._store = store
        self._recording = recording
        self._start = start
        self._engine = engine
        self._budget = budget
        self._prices = prices
        self._pages = pages.Pages()
        self._playing: OrderedDict[Asked, _Playing] = OrderedDict()
        self._runner: web.AppRunner | None = None
        self._origin = ""

    async def open(self, port: int) -> str:
        """Listen on loopback; returns the address to open, token included.

        Raises:
            OSError: the port is taken.
        """
        app = web.Application(client_max_size=65_536, middlewares=[self._guard])
        below = f"/{self.token}"
        app.add_routes(
            [
                web.get(f"{below}/", self._front),
                web.get(f"{below}/session", self._session),
                web.get(f"{below}/turn", self._turn),
                web.get(f"{below}/compare", self._compare),
                web.get(f"{below}/messages", self._messages),
                web.get(f"{below}/message", self._message),
                web.get(f"{below}/search", self._search),
                web.get(f"{below}/chart.svg", self._chart),
                web.get(f"{below}/state", self._state),
                web.post(f"{below}/act", self._act),
                web.get(f"{below}/static/{{name}}", self._static),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        bound = cast("list[tuple[str, int]]", self._runner.addresses)[0][1]
        self._origin = f"http://127.0.0.1:{bound}"
        return f"{self._origin}{below}/"

    async def close(self) -> None:
        """Stop serving, and end the sidecars that play."""
        if self._runner is not None:
            await self._runner.cleanup()
        for playing in self._playing.values():
            await _end(playing)

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        # A page whose name resolves to this machine has another Host, and it and other users lack the token.
        if request.headers.get("Host", "") != self._origin.removeprefix("http://"):
            return web.Response(status=403, text="Open the address that the command printed.\n")
        if not secrets.compare_digest(request.path.split("/")[1], self.token):
            return web.Response(status=404, text="Not found.\n")
        if request.method == "POST" and request.headers.get("Origin") != self._origin:
            return web.Response(status=403, text="Only the inspector's own pages can do this.\n")
        try:
            answer = await handler(request)
        except web.HTTPException as ended:
            answer = web.Response(status=ended.status, text=f"{ended.reason}\n", headers=_location(ended))
        except SidecarError as problem:
            answer = self._page("problem.html", 502, problem=str(problem))
        answer.headers.update(_HEADERS)
        return answer

    # --- pages ----------------------------------------------------------------------------------------------

    async def _front(self, request: web.Request) -> web.StreamResponse:
        del request
        if self._recording is not None:
            raise web.HTTPFound(f"session?{Asked(TRANSCRIPT, self._engine, self._budget).address()}")
        sessions = [
            (entry, Asked(f"session/{entry.session_id}", self._engine, self._budget).address())
            async for entry in self._store.sessions(page_size=200)
        ]
        return self._page("sessions.html", sessions=sessions)

    async def _session(self, request: web.Request) -> web.StreamResponse:
        asked = self._asked(request)
        history, _ = await self._played(asked)
        costs = history.costs(self._prices)
        return self._about(
            "session.html",
            asked,
            turns=[(turn, asked.address(turn=turn.number)) for turn in reversed(history.turns)],
            costs=costs[-1] if costs else None,
            epochs=pages.epochs(history.turns),
            version=f"{len(history.steps)}-{len(history.turns)}",
            unplayed=len(self._playing[asked].told) - len(history.steps),
            history=history,
            is_stored=asked.source != TRANSCRIPT,
            pins=await self._pins(asked),
        )

    async def _turn(self, request: web.Request) -> web.StreamResponse:
        asked = self._asked(request)
        history, tally = await self._played(asked, whole=True)
        turn = self._chosen(history, request.query.get("turn", ""))
        shown = pages.context_of(self._pages, history, tally, turn)
        start = _start(request, len(shown))
        numbers = [one.number for one in history.turns]
        return self._about(
            "turn.html",
            asked,
            turn=turn,
            messages=shown[start : start + pages.PAGE],
            first=start + 1,
            count=len(shown),
            pages=[
                (name, asked.address(turn=turn.number, start=at))
                for name, at in pages.pager(len(shown), start)
            ],
            absent=pages.absent(history, turn),
            earlier=_beside(asked, numbers, turn.number, -1),
            later=_beside(asked, numbers, turn.number, 1),
            compare=asked.address(turn=turn.number, other=max(numbers[0], turn.number - 1)),
            is_stored=asked.source != TRANSCRIPT,
            ids={at: step.message_id for at, step in enumerate(history.steps, 1)},
        )

    async def _compare(self, request: web.Request) -> web.StreamResponse:
        asked = self._asked(request)
        beside = Asked(
            asked.source,
            request.query.get("otherEngine") or asked.engine,
            _number(request.query.get("otherBudget", ""), asked.budget),
        )
        history, tally = await self._played(asked, whole=True)
        other, other_tally = await self._played(beside, whole=True)
        turn = self._chosen(history, request.query.get("turn", ""))
        other_turn = self._chosen(other, request.query.get("other", request.query.get("turn", "")))
        here = pages.context_of(self._pages, history, tally, turn, other_turn)
        there = pages.context_of(self._pages, other, other_tally, other_turn, turn)
        return self._about(
            "compare.html",
            asked,
            beside=beside,
            sides=[
                (asked, turn, here[-pages.PAGE :], sum(not one.same for one in here)),
                (beside, other_turn, there[-pages.PAGE :], sum(not one.same for one in there)),
            ],
        )

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        asked = self._asked(request)
        history, tally = await self._played(asked, whole=True)
        count = len(history.steps)
        start = _start(request, count)
        return self._about(
            "messages.html",
            asked,
            messages=pages.conversation(self._pages, history.steps, tally, start),
            first=start + 1,
            count=count,
            pages=[(name, asked.address(start=at)) for name, at in pages.pager(count, start)],
        )

    async def _message(self, request: web.Request) -> web.StreamResponse:
        """One message of the conversation as it is stored, as plain text."""
        history, _ = await self._played(self._asked(request), whole=True)
        at = _number(request.query.get("at", ""), 0)
        if not 1 <= at <= len(history.steps):
            raise web.HTTPNotFound(reason="There is no such message.")
        return web.Response(text=history.steps[at - 1].message.decode("utf-8", "replace"))

    async def _search(self, request: web.Request) -> web.StreamResponse:
        wanted = request.query.get("q", "").strip()
        found: list[tuple[str, str, str]] = []
        if wanted:
            async for entry in self._store.sessions(page_size=200):
                if len(found) >= FOUND:
                    break
                with suppress(SidecarError):
                    arguments = {"kind": "literal", "pattern": wanted, "limit": 5}
                    answer = await self._store.call_tool(entry.session_id, "context_grep", arguments)
                    text = "\n".join(part.text for part in answer.content if part.text)
                    if "[" in text:
                        address = Asked(f"session/{entry.session_id}", self._engine, self._budget).address()
                        found.append((entry.session_id, address, text))
        return self._page("search.html", wanted=wanted, found=found)

    async def _chart(self, request: web.Request) -> web.StreamResponse:
        history, _ = await self._played(self._asked(request))
        what = "cost" if request.query.get("what") == "cost" else "tokens"
        theme = "dark" if request.query.get("theme") == "dark" else "light"
        svg = pages.chart(history.turns, history.costs(self._prices), history.budget, what, theme)
        return web.Response(text=svg, content_type="image/svg+xml")

    async def _state(self, request: web.Request) -> web.StreamResponse:
        """What changes when an open page is out of date: the conversation, or how much of it is played."""
        asked = self._asked(request)
        playing = self._playing.get(asked)
        played = len(playing.history.turns) if playing else 0
        changed = ""
        if asked.source != TRANSCRIPT:
            changed = (await self._store.session(asked.source.removeprefix("session/"))).updated_at
        return web.json_response({"changed": f"{changed} {played}"})

    async def _act(self, request: web.Request) -> web.StreamResponse:
        asked = self._asked(request)
        form = await request.post()
        if asked.source == TRANSCRIPT:
            raise web.HTTPBadRequest(reason="A transcript is not stored.")
        session, action = asked.source.removeprefix("session/"), str(form.get("action", ""))
        given = str(form.get("value", ""))
        if action == "pin" and given:
            await self._store.pin(session, message_id=given)
        elif action == "unpin" and given:
            await self._store.unpin(session, given)
        elif action == "compact":
            await self._store.compact(session, asked.budget, force=True)
        elif action == "fork" and given:
            await self._store.fork(session, given)
        else:
            raise web.HTTPBadRequest(reason="There is no such action.")
        raise web.HTTPSeeOther(f"session?{asked.address()}")

    async def _static(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        kind = _KINDS.get(name[name.rfind(".") :])
        file = files("sidecar.cli.inspector").joinpath("static", name)
        if kind is None or not file.is_file():
            raise web.HTTPNotFound
        return web.Response(body=file.read_bytes(), content_type=kind)

    # --- what they need -------------------------------------------------------------------------------------

    def _page(self, template: str, status: int = 200, /, **values: object) -> web.Response:
        html = self._pages.render(template, has_sessions=self._recording is None, **values)
        return web.Response(text=html, content_type="text/html", status=status)

    def _about(self, template: str, asked: Asked, /, **values: object) -> web.Response:
        name = self._recording.name if self._recording else asked.source.removeprefix("session/")
        return self._page(template, 200, asked=asked, name=name, query=asked.address(), **values)

    def _asked(self, request: web.Request) -> Asked:
        source = request.query.get("source", TRANSCRIPT)
        if source == TRANSCRIPT and self._recording is None:
            raise web.HTTPNotFound(reason="There is no transcript.")
        budget = _number(request.query.get("budget", ""), self._budget)
        return Asked(source, request.query.get("engine") or self._engine, budget)

    def _chosen(self, history: History, number: str) -> Turn:
        if not history.turns:
            raise web.HTTPNotFound(reason="The conversation has no turns yet.")
        wanted = _number(number, history.turns[-1].number)
        return next((turn for turn in history.turns if turn.number >= wanted), history.turns[-1])

    async def _pins(self, asked: Asked) -> list[tuple[str, str]]:
        if asked.source == TRANSCRIPT:
            return []
        pins = await self._store.pins(asked.source.removeprefix("session/"))
        return [(pin.pin_id, pin.note or pin.text or pin.message_id or "") for pin in pins]

    async def _played(self, asked: Asked, *, whole: bool = False) -> tuple[History, Tally]:
        """The conversation with what the engine makes of it: as far as it is played by now, or all of it."""
        steps, message_format = await self._steps(asked.source)
        playing = self._playing.get(asked)
        if playing is None:
            stack = AsyncExitStack()
            client = await stack.enter_async_context(self._start(asked.engine or None, message_format))
            tally = Tally(dialect(message_format), counter("auto"))
            playing = _Playing(History(client, tally, asked.budget), tally, [], [], stack)
            self._playing[asked] = playing
            while len(self._playing) > MOST_HISTORIES:
                _, oldest = self._playing.popitem(last=False)
                await _end(oldest)
        self._playing.move_to_end(asked)
        told = playing.told
        if [step.message for step in told] != [step.message for step in steps[: len(told)]]:
            # Earlier messages have changed: begin again.
            del self._playing[asked]
            await _end(playing)
            return await self._played(asked, whole=whole)
        if len(steps) > len(told):
            new, before = steps[len(told) :], playing.tasks[-1:]
            told += new
            playing.tasks[:] = [asyncio.create_task(_play(playing.history, new, before))]
        await asyncio.wait(playing.tasks, timeout=WHOLE_S if whole else PATIENCE_S)
        for task in playing.tasks:
            if task.done():
                task.result()
        return playing.history, playing.tally

    async def _steps(self, source: str) -> tuple[list[Step], MessageFormat]:
        if source == TRANSCRIPT and self._recording is not None:
            return self._recording.steps, self._recording.message_format
        session = source.removeprefix("session/")
        entry = await self._store.session(session)
        items = [
            Imported(message.body, message.message_id, None, Span(0, 0))
            async for page in self._store.export(session)
            for message in page.messages
        ]
        return steps_of(items, dialect(entry.message_format)), cast("MessageFormat", entry.message_format)


async def _play(history: History, steps: list[Step], before: Sequence[asyncio.Task[None]]) -> None:
    if before:
        await asyncio.wait(before)
    await history.extend(steps)


async def _end(playing: _Playing) -> None:
    for task in playing.tasks:
        task.cancel()
    await asyncio.gather(*playing.tasks, return_exceptions=True)
    await playing.stack.aclose()


def _location(ended: web.HTTPException) -> dict[str, str]:
    return {"Location": ended.headers["Location"]} if "Location" in ended.headers else {}


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 10 else otherwise


def _start(request: web.Request, count: int) -> int:
    newest = max(0, (count - 1) // pages.PAGE * pages.PAGE)
    return min(_number(request.query.get("start", ""), newest), newest)


def _beside(asked: Asked, numbers: list[int], number: int, step: int) -> str | None:
    at = numbers.index(number) + step
    return asked.address(turn=numbers[at]) if 0 <= at < len(numbers) else None
