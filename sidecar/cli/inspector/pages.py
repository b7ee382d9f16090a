"""What the pages show: conversations, contexts and charts, as values for the templates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from difflib import SequenceMatcher
from importlib import import_module
from itertools import groupby, pairwise
from typing import NamedTuple, Protocol, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from sidecar.cli.inspector.history import Costs, History, Turn
from sidecar.cli.lab.recording import Step, Tally
from sidecar.messages.contract import Reading
from sidecar.messages.fence import claimed_mark, fences
from sidecar.protocol.assemble import ContextDecision

MOST_CHARACTERS = 6_000
"""Of one text on a page; the rest is on a page of its own."""
PAGE = 100
"""Messages on one page."""
WORDS = {
    "sent": "sent in full",
    "summarised": "covered by a summary",
    "stubbed": "shortened",
    "dropped": "left out",
    "pinned": "pinned",
}
KINDS = {"summary": "Summary of earlier messages", "stub": "Shortened tool result", "memory": "Memory"}
_PALETTE = {"light": ("#4b5563", "#2563eb", "#d97706"), "dark": ("#9ca3af", "#60a5fa", "#fbbf24")}


class _Chart(Protocol):
    """What is used of leather's charts, which have no types of their own."""

    def add_line(
        self, data: Sequence[tuple[int, float]], *, name: str, stroke_color: str, width: int
    ) -> None: ...
    def add_x_scale(self, domain_min: float, domain_max: float) -> None: ...
    def add_y_scale(self, domain_min: float, domain_max: float) -> None: ...
    def to_svg(self, *, width: int, height: int) -> str: ...


class Piece(NamedTuple):
    """A text of a message; a call or a result has a title and is folded."""

    title: str
    html: Markup
    cut: int
    """Characters that are not shown."""


class Shown(NamedTuple):
    """A message of a context or a conversation."""

    position: int | None
    """From 1 in the conversation; `None` for what the sidecar wrote."""
    role: str
    tokens: int
    why: str
    pieces: Sequence[Piece]
    same: bool = True
    """False where the other context of a comparison lacks it."""


class Run(NamedTuple):
    """Neighbouring messages that are not in the context for one reason."""

    first: int
    last: int
    tokens: int
    why: str


class Pages:
    """Renders templates."""

    def __init__(self) -> None:
        self._templates = Environment(
            loader=PackageLoader("sidecar.cli.inspector"), autoescape=True, undefined=StrictUndefined
        )
        filters = cast("dict[str, object]", self._templates.filters)  # pyright: ignore[reportUnknownMemberType]
        filters["tokens"], filters["dollars"] = _grouped, _dollars
        # Nothing that a message says becomes a link, a picture or HTML of this page.
        self._markdown = (
            MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink"])
        )

    def render(self, name: str, /, **values: object) -> str:
        """The page of that template."""
        return self._templates.get_template(name).render(**values)

    def shown(
        self, reading: Reading, tokens: int, position: int | None, why: str, same: bool = True
    ) -> Shown:
        """A message as a person reads it."""
        mark = (reading.mark or claimed_mark(reading.text)) if position is None else None
        role = reading.role if mark is None else KINDS.get(mark.kind, "Written by the sidecar")
        text = "\n\n".join(part.content for part in fences(reading.text)) if mark else reading.text
        pieces = [self._text("", text, True)] if text else []
        pieces += [self._text(f"{call.name}", call.arguments, False) for call in reading.calls]
        pieces += [self._text("result", result.text, False) for result in reading.results if result.text]
        pieces += [self._text("", f"[{media.kind}]", False) for media in reading.media]
        return Shown(position, role, tokens, why, pieces, same)

    def _text(self, title: str, text: str, is_prose: bool) -> Piece:
        shown = text[:MOST_CHARACTERS]
        html = Markup(self._markdown.render(shown)) if is_prose else Markup("<pre>{}</pre>").format(shown)
        return Piece(title, html, len(text) - len(shown))


def _grouped(count: int) -> str:
    return f"{count:,}"


def _dollars(sum: float) -> str:
    return f"${sum:,.4f}" if sum < 1 else f"${sum:,.2f}"


def context_of(
    pages: Pages, history: History, tally: Tally, turn: Turn, other: Turn | None = None
) -> list[Shown]:
    """The messages of a turn's context; those that `other` lacks are marked."""
    positions: dict[bytes, list[int]] = {}
    for at, step in enumerate(history.steps[: turn.last + 1], 1):
        positions.setdefault(step.message, []).append(at)
    reasons = {decision.message_id: decision.reason for decision in turn.decisions}
    kept = set[int]()
    if other is not None:
        matcher = SequenceMatcher(None, list(other.bodies), list(turn.bodies), autojunk=False)
        kept = {at for _, start, size in matcher.get_matching_blocks() for at in range(start, start + size)}
    found: list[Shown] = []
    for at, body in enumerate(turn.bodies):
        places = positions.get(body)
        position = places.pop(0) if places else None
        step = history.steps[position - 1] if position else None
        why = reasons.get(step.message_id or "", "") if step else ""
        same = other is None or at in kept
        found.append(pages.shown(tally.read(body), tally.tokens(body), position, why, same))
    return found


def absent(history: History, turn: Turn) -> list[Run]:
    """What of the conversation is not in the context in full, in runs with one reason."""
    places = {step.message_id: at for at, step in enumerate(history.steps, 1)}
    gone = [one for one in turn.decisions if one.decision not in ("sent", "pinned")]

    def why(decision: ContextDecision) -> str:
        return f"{WORDS[decision.decision]}: {decision.reason}"

    runs: list[Run] = []
    for reason, group in groupby(gone, key=why):
        members = list(group)
        first, last = (places.get(one.message_id, 0) for one in (members[0], members[-1]))
        runs.append(Run(first, last, sum(one.tokens for one in members), reason))
    return runs


def conversation(pages: Pages, steps: Sequence[Step], tally: Tally, start: int) -> list[Shown]:
    """One page of the conversation itself."""
    return [
        pages.shown(step.reading, tally.tokens(step.message), at, "")
        for at, step in enumerate(steps[start : start + PAGE], start + 1)
    ]


def chart(turns: Sequence[Turn], costs: Sequence[Costs], budget: int, what: str, theme: str) -> str:
    """An SVG over turns: tokens (`tokens`), or dollars summed up (`cost`)."""
    dim, strong, warm = _PALETTE[theme]
    ink = "#111827" if theme == "light" else "#e5e7eb"
    picture = cast("_Chart", import_module("leather").Chart())
    numbers = [turn.number for turn in turns]
    if what == "tokens":
        series = [
            ("history", [turn.history_tokens for turn in turns], dim),
            ("sent", [turn.sent_tokens for turn in turns], strong),
            ("budget", [budget] * len(turns), warm),
        ]
    else:
        series = [
            ("everything", [cost.everything for cost in costs], dim),
            ("this engine", [cost.engine for cost in costs], strong),
            ("plain window", [cost.window for cost in costs], warm),
        ]
    most = max((max(values) for _, values, _ in series if values), default=1) or 1
    for name, values, colour in series:
        points = list(zip(numbers, values, strict=True))
        picture.add_line(points, name=name, stroke_color=colour, width=2)
    picture.add_y_scale(0, most * 1.05)
    picture.add_x_scale(min(numbers, default=0), max(*numbers, min(numbers, default=0) + 1, 1))
    svg = picture.to_svg(width=900, height=280)
    # leather draws in greys of its own, which do not show on every ground.
    for grey in ("#666", "#9c9c9c", "#a8a8a8"):
        svg = svg.replace(f'"{grey}"', f'"{ink}"')
    svg = svg.replace('"#f9f9f9"', '"none"').replace('"#eee"', '"#8884"')
    return svg.replace('font-family="Monaco"', 'font-family="sans-serif"')


def epochs(turns: Sequence[Turn]) -> list[int]:
    """Turns at which the epoch rose: earlier messages made room."""
    return [turn.number for before, turn in pairwise(turns) if turn.epoch > before.epoch]


def pager(count: int, start: int) -> list[tuple[str, int]]:
    """Pages to go to, each with its label and its first message."""
    last = max(0, math.ceil(count / PAGE) - 1) * PAGE
    wanted = {"first": 0, "earlier": start - PAGE, "later": start + PAGE, "newest": last}
    return [(name, at) for name, at in wanted.items() if 0 <= at <= last and at != start]
