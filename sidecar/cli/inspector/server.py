"""The inspector's web server: one person on this machine, who has its address."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import NamedTuple, cast

import msgspec
from aiohttp import web
from markupsafe import Markup, escape
from msgspec import Struct

from sidecar.cli.inspector import charts, pages
from sidecar.cli.inspector.history import History, Turn
from sidecar.cli.inspector.players import TRANSCRIPT, Asked, Conversation, Players, Start
from sidecar.cli.lab.recording import Recording
from sidecar.cli.options import Prices, prices_of
from sidecar.client.errors import SidecarError
from sidecar.client.sidecar_client import SidecarClient

FOUND = 30
"""Sessions that a search shows."""
OF_EACH = 5
"""Messages of each of them."""
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer`, browsers hide the origin of forms, also from their own server.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class _Match(Struct):
    position: int
    role: str
    text: str


class _Group(Struct):
    matches: list[_Match]


class _Matches(Struct):
    """What is used of the result of `context_grep`."""

    groups: list[_Group]


class Found(NamedTuple):
    """A message that matches a search."""

    position: int
    role: str
    html: Markup
    """The part that matches, with the match marked."""
    address: str


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
        self._name = recording.name if recording else None
        """Of the transcript."""
        self._engine = engine
        self._budget = budget
        self._prices = prices
        self._pages = pages.Pages()
        self._players = Players(store, recording, start)
        self._engines: list[str] = []
        self._warming: asyncio.Task[None] | None = None
        self._runner: web.AppRunner | None = None
        self._origin = ""

    async def open(self, port: int) -> str:
        """Listen on loopback; returns the address to open, token included.

        Raises:
            OSError: the port is taken.
        """
        self._engines = [one.id for one in await self._store.engines() if one.available]
        app = web.Application(client_max_size=65_536, middlewares=[self._guard])
        below = f"/{self.token}"
        app.add_routes(
            [
                web.get(f"{below}/", self._front),
                web.get(f"{below}/session", self._session),
                web.get(f"{below}/turn", self._turn),
                web.get(f"{below}/summary", self._summary),
                web.get(f"{below}/compare", self._compare),
                web.get(f"{below}/messages", self._messages),
                web.get(f"{below}/message", self._message),
                web.get(f"{below}/search", self._search),
                web.get(f"{below}/chart.svg", self._chart),
                web.get(f"{below}/state", self._state),
                web.post(f"{below}/act", self._act),
                web.post(f"{below}/prices", self._set_prices),
                web.get(f"{below}/static/{{name}}", self._static),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        bound = cast("list[tuple[str, int]]", self._runner.addresses)[0][1]
        self._origin = f"http://127.0.0.1:{bound}"
        if self._name is not None:
            self._warming = asyncio.create_task(self._warm())
        return f"{self._origin}{below}/"

    async def _warm(self) -> None:
        """Begin to play the transcript; a page that cannot have it played says why."""
        with suppress(SidecarError):
            await self._players.played(Asked(TRANSCRIPT, self._engine, self._budget))

    async def close(self) -> None:
        """Stop serving, and end the sidecars that play."""
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.gather(self._warming, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()
        await self._players.close()

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        # A page whose name resolves to this machine has another Host, and it and other users lack the token.
        if request.headers.get("Host", "") != self._origin.removeprefix("http://"):
            return web.Response(status=403, text="Open the address that the command printed.\n")
        if not secrets.compare_digest(_first_part(request.path), self.token.encode()):
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
        if self._name is not None:
            raise web.HTTPFound(f"session?{Asked(TRANSCRIPT, self._engine, self._budget).address()}")
        sessions = [
            (entry, Asked(f"session/{entry.session_id}", self._engine, self._budget).address())
            async for entry in self._store.sessions(page_size=200)
        ]
        return self._page("sessions.html", sessions=sessions)

    async def _session(self, request: web.Request) -> web.StreamResponse:
        asked = self._asked(request)
        history, conversation, unplayed = await self._players.played(asked)
        costs = history.costs(self._prices)
        reported = pages.reported(history.steps)
        newest = history.turns[::-1]
        start = min(_number(request.query.get("start", ""), 0), max(0, len(newest) - 1))
        return self._about(
            "session.html",
            asked,
            turns=[
                (turn, _reported(history, turn), asked.address(turn=turn.number))
                for turn in newest[start : start + pages.PAGE]
            ],
            count=len(newest),
            pages=[(name, asked.address(start=at)) for name, at in pages.pager(len(newest), start)],
            costs=pages.savings(costs[-1]) if costs else [],
            reported=reported,
            reported_cost=sum(self._prices.reported(step.usage) for step in history.steps if step.usage),
            prices=self._prices,
            epochs=pages.epochs(history.turns),
            version=await self._players.version(asked),
            unplayed=unplayed,
            messages=len(conversation.steps),
            history=history,
            is_stored=asked.source != TRANSCRIPT,
            pins=await self._pins(asked),
        )

    async def _turn(self, request: web.Request) -> web.StreamResponse:
        asked, (history, conversation, turn) = await self._turn_asked(request)
        shown = pages.context_of(self._pages, history, conversation.tally, turn)
        start = _start(request, len(shown))
        numbers = [one.number for one in history.turns]
        return self._about(
            "turn.html",
            asked,
            turn=turn,
            history=history,
            messages=shown[start : start + pages.PAGE],
            first=start + 1,
            count=len(shown),
            pages=[
                (name, asked.address(turn=turn.number, start=at))
                for name, at in pages.pager(len(shown), start)
            ],
            absent=pages.absent(turn),
            earlier=_beside(asked, numbers, turn.number, -1),
            later=_beside(asked, numbers, turn.number, 1),
            here=asked.address(turn=turn.number),
            compare=asked.address(turn=turn.number, other=max(numbers[0], turn.number - 1)),
            is_stored=asked.source != TRANSCRIPT,
            ids={at: step.message_id for at, step in enumerate(history.steps, 1)},
        )

    async def _summary(self, request: web.Request) -> web.StreamResponse:
        """What a summary or a recalled text of a turn stands for: other summaries, and messages."""
        asked, (history, conversation, turn) = await self._turn_asked(request)
        ref = request.query.get("ref", "")
        node = history.summaries.get(ref)
        mark = next((mark for mark in map(history.mark_of, turn.bodies) if mark and mark.ref == ref), None)
        if node is not None:
            first, last = (history.place(id) for id in (node.first_message_id, node.last_message_id))
            spans = [(first, last)] if first and last else []
        else:
            spans = [(run.first, run.last) for run in pages.stands_for(turn, mark)] if mark else []
        if not spans:
            raise web.HTTPNotFound(reason="There is no such summary.")
        positions = [at for first, last in spans for at in range(first, last + 1)]
        start = min(_number(request.query.get("start", ""), 0), len(positions) - 1)
        steps = history.steps
        return self._about(
            "summary.html",
            asked,
            turn=turn,
            here=asked.address(turn=turn.number),
            node=node,
            sources=[history.summaries[id] for id in node.sources if id in history.summaries] if node else [],
            messages=[
                message
                for at in positions[start : start + pages.PAGE]
                for message in pages.conversation(self._pages, steps, conversation.tally, at - 1, at)
            ],
            first=start + 1,
            count=len(positions),
            pages=[
                (name, asked.address(turn=turn.number, ref=ref, start=at))
                for name, at in pages.pager(len(positions), start)
            ],
        )

    async def _compare(self, request: web.Request) -> web.StreamResponse:
        asked, (history, conversation, turn) = await self._turn_asked(request)
        beside = Asked(
            asked.source,
            request.query.get("otherEngine") or asked.engine,
            _number(request.query.get("otherBudget", ""), asked.budget),
        )
        number = request.query.get("other", request.query.get("turn", ""))
        other, _, other_turn = await self._at_turn(beside, number)
        return self._about(
            "compare.html",
            asked,
            beside=beside,
            sides=[
                (asked, turn, history, asked.address(turn=turn.number)),
                (beside, other_turn, other, beside.address(turn=other_turn.number)),
            ],
            blocks=pages.compared(self._pages, (history, turn), (other, other_turn), conversation.tally),
        )

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        asked = self._asked(request)
        steps, tally = (await self._players.conversation(asked.source))[2:]
        start = _start(request, len(steps))
        return self._about(
            "messages.html",
            asked,
            messages=pages.conversation(self._pages, steps, tally, start),
            first=start + 1,
            count=len(steps),
            pages=[(name, asked.address(start=at)) for name, at in pages.pager(len(steps), start)],
        )

    async def _message(self, request: web.Request) -> web.StreamResponse:
        """One message of the conversation as it is stored, as plain text."""
        steps = (await self._players.conversation(self._asked(request).source)).steps
        at = _number(request.query.get("at", ""), 0)
        if not 1 <= at <= len(steps):
            raise web.HTTPNotFound(reason="There is no such message.")
        return web.Response(text=steps[at - 1].message.decode("utf-8", "replace"))

    async def _search(self, request: web.Request) -> web.StreamResponse:
        wanted = request.query.get("q", "").strip()
        found: list[tuple[str, str, list[Found]]] = []
        if wanted:
            async for entry in self._store.sessions(page_size=200):
                if len(found) >= FOUND:
                    break
                asked = Asked(f"session/{entry.session_id}", self._engine, self._budget)
                with suppress(SidecarError):
                    if matches := await self._matches(asked, wanted):
                        found.append((entry.session_id, asked.address(), matches))
        return self._page("search.html", wanted=wanted, found=found)

    async def _matches(self, asked: Asked, wanted: str) -> list[Found]:
        arguments = {"kind": "literal", "pattern": wanted, "limit": OF_EACH}
        answer = await self._store.call_tool(asked.session, "context_grep", arguments)
        groups = msgspec.json.decode(bytes(answer.structured_content), type=_Matches).groups
        return [
            Found(
                match.position,
                match.role,
                _marked(match.text, wanted),
                asked.address(start=(match.position - 1) // pages.PAGE * pages.PAGE),
            )
            for group in groups
            for match in group.matches
        ]

    async def _chart(self, request: web.Request) -> web.StreamResponse:
        history, _, _ = await self._players.played(self._asked(request), until=1)
        theme: charts.Theme = "dark" if request.query.get("theme") == "dark" else "light"
        narrow = "narrow" in request.query
        turns = history.turns
        if not turns:
            raise web.HTTPNotFound(reason="The conversation has no turns yet.")
        if request.query.get("what") == "cost":
            svg = charts.costs(turns, history.costs(self._prices), theme, narrow)
        else:
            svg = charts.tokens(turns, history.steps, history.budget, pages.epochs(turns), theme, narrow)
        return web.Response(text=svg, content_type="image/svg+xml")

    async def _state(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"version": await self._players.version(self._asked(request))})

    async def _act(self, request: web.Request) -> web.StreamResponse:
        asked = self._asked(request)
        form = await request.post()
        if asked.source == TRANSCRIPT:
            raise web.HTTPBadRequest(reason="A transcript is not stored.")
        action, given = str(form.get("action", "")), str(form.get("value", ""))
        if action == "pin" and given:
            await self._store.pin(asked.session, message_id=given)
        elif action == "unpin" and given:
            await self._store.unpin(asked.session, given)
        elif action == "compact":
            await self._store.compact(asked.session, asked.budget, force=True)
        elif action == "fork" and given:
            await self._store.fork(asked.session, given)
        else:
            raise web.HTTPBadRequest(reason="There is no such action.")
        raise web.HTTPSeeOther(f"session?{asked.address()}")

    async def _set_prices(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        try:
            self._prices = prices_of([str(form.get(name, "")) for name in Prices.__struct_fields__])
        except ValueError:
            raise web.HTTPBadRequest(reason="A price is a number of dollars such as 3.75.") from None
        raise web.HTTPSeeOther(f"session?{self._asked(request).address()}")

    async def _static(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        kind = _KINDS.get(name[name.rfind(".") :])
        file = files("sidecar.cli.inspector").joinpath("static", name)
        if kind is None or not file.is_file():
            raise web.HTTPNotFound
        return web.Response(body=file.read_bytes(), content_type=kind)

    # --- what they need -------------------------------------------------------------------------------------

    def _page(self, template: str, status: int = 200, /, **values: object) -> web.Response:
        html = self._pages.render(template, has_sessions=self._name is None, **values)
        return web.Response(text=html, content_type="text/html", status=status)

    def _about(self, template: str, asked: Asked, /, **values: object) -> web.Response:
        about = {"asked": asked, "name": self._name or asked.session, "query": asked.address()}
        return self._page(template, 200, engines=self._engines, **about, **values)

    def _asked(self, request: web.Request) -> Asked:
        source = request.query.get("source", TRANSCRIPT)
        if source == TRANSCRIPT and self._name is None:
            raise web.HTTPNotFound(reason="There is no transcript.")
        budget = _number(request.query.get("budget", ""), self._budget)
        return Asked(source, request.query.get("engine") or self._engine, max(budget, 1))

    async def _turn_asked(self, request: web.Request) -> tuple[Asked, tuple[History, Conversation, Turn]]:
        asked = self._asked(request)
        return asked, await self._at_turn(asked, request.query.get("turn", ""))

    async def _at_turn(self, asked: Asked, number: str) -> tuple[History, Conversation, Turn]:
        """The turn of that number, or the nearest one; the newest where none is named."""
        wanted = _number(number, 0)
        history, conversation, _ = await self._players.played(asked, until=wanted or None)
        if not history.turns:
            raise web.HTTPNotFound(reason="The conversation has no turns yet.")
        newest = history.turns[-1]
        turn = next((turn for turn in history.turns if turn.number >= wanted), newest) if wanted else newest
        return history, conversation, turn

    async def _pins(self, asked: Asked) -> list[tuple[str, str]]:
        if asked.source == TRANSCRIPT:
            return []
        pins = await self._store.pins(asked.session)
        return [(pin.pin_id, pin.note or pin.text or pin.message_id or "") for pin in pins]


def _reported(history: History, turn: Turn) -> pages.Reported | None:
    return pages.reported(history.steps[turn.first : turn.last + 1])


def _marked(text: str, wanted: str) -> Markup:
    """A text in which what is wanted is marked."""
    parts = re.split(f"({re.escape(wanted)})", text, flags=re.IGNORECASE)
    return Markup("").join(
        Markup("<mark>{}</mark>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts)
    )


def _location(ended: web.HTTPException) -> dict[str, str]:
    return {"Location": ended.headers["Location"]} if "Location" in ended.headers else {}


def _first_part(path: str) -> bytes:
    return path.removeprefix("/").partition("/")[0].encode(errors="replace")


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 10 else otherwise


def _start(request: web.Request, count: int) -> int:
    newest = max(0, (count - 1) // pages.PAGE * pages.PAGE)
    return min(_number(request.query.get("start", ""), newest), newest)


def _beside(asked: Asked, numbers: Sequence[int], number: int, step: int) -> str | None:
    at = numbers.index(number) + step
    return asked.address(turn=numbers[at]) if 0 <= at < len(numbers) else None
