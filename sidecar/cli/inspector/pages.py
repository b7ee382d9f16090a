"""What the pages show: conversations, contexts and comparisons, as values for the templates."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from sidecar.cli.inspector.history import Costs, History, Run, Turn
from sidecar.cli.lab.recording import Step, Tally
from sidecar.messages.contract import Mark, Reading
from sidecar.messages.fence import fences

MOST_CHARACTERS = 6_000
"""Of one text on a page; the rest is on a page of its own."""
MOST_PIECES = 40
"""Texts, calls and results of one message on a page."""
PAGE = 100
"""Messages, or turns, on one page."""
LISTED = 20
"""Of a list of turns or messages inside a sentence, at most."""
WORDS = {
    "sent": "sent in full",
    "summarised": "not sent",
    "stubbed": "shortened",
    "dropped": "left out",
    "pinned": "pinned",
}
KINDS = {
    "summary": "Summary of earlier messages",
    "activityLog": "Activity log of earlier turns",
    "memory": "Memory",
    "recall": "Recalled from earlier turns",
    "stub": "Shortened tool result",
    "noResult": "Stand-in for a missing tool result",
    "note": "Note of the sidecar",
}
"""What a text of the sidecar is called."""


# What is not to be seen, or makes a text look like another one.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


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
    """Why it is there, in words."""
    pieces: Sequence[Piece]
    ref: str = ""
    """Of the summary or the recalled text that it is, where it opens to messages."""


class Block(NamedTuple):
    """A part of a comparison: messages that both contexts have, or those of each that the other lacks."""

    is_same: bool
    here: Sequence[Shown]
    there: Sequence[Shown]
    """Empty where they are the same."""
    tokens: int
    left_out: int
    """Messages that are not listed."""


class Reported(NamedTuple):
    """What the provider reported for the calls of the recorded runtime."""

    calls: int
    prompt: int
    read: int
    written: int
    output: int


class Pages:
    """Renders templates."""

    def __init__(self) -> None:
        self._templates = Environment(
            loader=PackageLoader("sidecar.cli.inspector"), autoescape=True, undefined=StrictUndefined
        )
        filters = cast("dict[str, object]", self._templates.filters)  # pyright: ignore[reportUnknownMemberType]
        filters |= {"tokens": _grouped, "dollars": _dollars, "places": places, "said": said}
        # Nothing that a message says becomes a link, a picture or HTML of this page.
        self._markdown = (
            MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink"])
        )

    def render(self, name: str, /, **values: object) -> str:
        """The page of that template."""
        return self._templates.get_template(name).render(**values)

    def shown(
        self, reading: Reading, tokens: int, position: int | None, why: str, mark: Mark | None = None
    ) -> Shown:
        """A message as a person reads it; with a mark it is one that the sidecar wrote."""
        text = "\n\n".join(part.content for part in fences(reading.text)) if mark else reading.text
        texts = [("", text)] if text else []
        texts += [(call.name or "call", call.arguments) for call in reading.calls]
        texts += [("result", result.text) for result in reading.results if result.text]
        texts += [("", f"[{media.kind}, {media.size:,} bytes]") for media in reading.media]
        pieces = [
            self._text(title, said, at == 0 and bool(text))
            for at, (title, said) in enumerate(texts[:MOST_PIECES])
        ]
        if left_out := sum(len(said) for _, said in texts[MOST_PIECES:]):
            pieces.append(Piece("", Markup(), left_out))
        role = reading.role if mark is None else KINDS.get(mark.kind, "Written by the sidecar")
        opens = mark is not None and mark.kind in ("summary", "recall")
        return Shown(position, role, tokens, why, pieces, mark.ref if mark and opens else "")

    def _text(self, title: str, text: str, is_prose: bool) -> Piece:
        shown = _CONTROLS.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text[:MOST_CHARACTERS])
        html = Markup(self._markdown.render(shown)) if is_prose else Markup("<pre>{}</pre>").format(shown)
        return Piece(title, html, max(0, len(text) - MOST_CHARACTERS))


def _grouped(count: int) -> str:
    return f"{count:,}"


def _dollars(sum: float) -> str:
    return f"${sum:,.4f}" if sum < 1 else f"${sum:,.2f}"


def places(runs: Sequence[Run]) -> str:
    """Which messages runs are, in words."""
    joined: list[tuple[int, int]] = []
    for run in runs:
        if joined and joined[-1][1] + 1 == run.first:
            joined[-1] = joined[-1][0], run.last
        else:
            joined.append((run.first, run.last))
    said = [f"{first}" if first == last else f"{first} to {last}" for first, last in joined]
    if len(said) > LISTED:
        said = [*said[:LISTED], f"{len(said) - LISTED} more"]
    many = len(said) > 1 or "to" in said[0] if said else False
    return f"message{'s' if many else ''} {', '.join(said)}"


def context_of(pages: Pages, history: History, tally: Tally, turn: Turn) -> list[Shown]:
    """The messages of a turn's context, each with why it is there."""
    positions: dict[bytes, list[int]] = {}
    for at, step in enumerate(history.steps[: turn.last + 1], 1):
        positions.setdefault(step.message, []).append(at)
    found: list[Shown] = []
    for body in turn.bodies:
        known = positions.get(body)
        position = known.pop(0) if known else None
        mark = None if position else history.mark_of(body)
        why = _why(turn, position) if position else _why_made(turn, mark)
        found.append(pages.shown(tally.read(body), tally.tokens(body), position, why, mark))
    return found


def _why(turn: Turn, position: int) -> str:
    run = next((run for run in turn.runs if run.first <= position <= run.last), None)
    return said(run) if run else ""


def said(run: Run) -> str:
    """What became of messages, and why."""
    return f"{WORDS[run.decision]}: {run.reason}"


def _why_made(turn: Turn, mark: Mark | None) -> str:
    """Why a message that is none of the conversation is in the context."""
    if mark is None:
        return "changed by the engine, such as a result that is shortened"
    runs = stands_for(turn, mark)
    if runs and mark.kind == "summary":
        return f"stands for {places(runs)}: {sum(run.tokens for run in runs):,} tokens in full"
    if runs and mark.kind == "recall":
        return f"quotes {places(runs)}, which the newest message calls for"
    return "what the newest message calls for" if mark.kind == "recall" else ""


def stands_for(turn: Turn, mark: Mark) -> list[Run]:
    """The messages in whose place a summary, or a recalled text, is in a context."""
    own = [run for run in turn.runs if run.by == mark.ref and run.decision == "summarised"]
    if mark.kind != "summary" or not own:
        return own
    # What a recalled text quotes of them is told of that text alone.
    first, last = own[0].first, own[-1].last
    return [run for run in turn.runs if run.decision == "summarised" and first <= run.first <= last]


def absent(turn: Turn) -> list[Run]:
    """What of the conversation is not in the context in full."""
    return [run for run in turn.runs if run.decision not in ("sent", "pinned")]


def compared(
    pages: Pages, one: tuple[History, Turn], other: tuple[History, Turn], tally: Tally
) -> list[Block]:
    """Two contexts as a diff."""
    (history, turn), (other_history, other_turn) = one, other
    here = context_of(pages, history, tally, turn)
    there = context_of(pages, other_history, tally, other_turn)
    blocks: list[Block] = []
    matcher = SequenceMatcher(None, turn.bodies, other_turn.bodies, autojunk=False)
    for tag, start, stop, other_start, other_stop in matcher.get_opcodes():
        left = here[start:stop]
        right = [] if tag == "equal" else there[other_start:other_stop]
        left_out = max(0, len(left) - PAGE) + max(0, len(right) - PAGE)
        tokens = sum(message.tokens for message in left)
        blocks.append(Block(tag == "equal", left[:PAGE], right[:PAGE], tokens, left_out))
    return blocks


def conversation(
    pages: Pages, steps: Sequence[Step], tally: Tally, start: int, stop: int | None = None
) -> list[Shown]:
    """One page of the conversation itself, up to message `stop` at most."""
    end = min(start + PAGE, len(steps) if stop is None else stop)
    return [
        pages.shown(step.reading, tally.tokens(step.message), at, "")
        for at, step in enumerate(steps[start:end], start + 1)
    ]


def reported(steps: Sequence[Step]) -> Reported | None:
    """The sum of what the provider reported, if it did."""
    usages = [step.usage for step in steps if step.usage and step.usage.input_tokens]
    if not usages:
        return None
    return Reported(
        len(usages),
        sum(usage.input_tokens for usage in usages),
        sum(usage.read_tokens for usage in usages),
        sum(usage.written_tokens for usage in usages),
        sum(usage.output_tokens for usage in usages),
    )


def savings(costs: Costs) -> list[tuple[str, float, str]]:
    """What each way costs, and what the engine saves against it."""
    ways = (("sending everything", costs.everything), ("a sliding window", costs.window))
    rows: list[tuple[str, float, str]] = [("this engine", costs.engine, "")]
    for name, cost in ways:
        less = cost - costs.engine
        share = f" ({abs(less) / cost:.0%})" if cost else ""
        verb = "the engine saves" if less >= 0 else "the engine costs more by"
        rows.append((name, cost, f"{verb} {_dollars(abs(less))}{share}"))
    return rows


def epochs(turns: Sequence[Turn]) -> list[int]:
    """Turns at which the epoch rose: earlier messages made room."""
    return [turn.number for before, turn in pairwise(turns) if turn.epoch > before.epoch]


def pager(count: int, start: int) -> list[tuple[str, int]]:
    """Pages to go to, each with its label and its first message."""
    last = max(0, math.ceil(count / PAGE) - 1) * PAGE
    wanted = {"first": 0, "earlier": start - PAGE, "later": start + PAGE, "newest": last}
    return [(name, at) for name, at in wanted.items() if 0 <= at <= last and at != start]
