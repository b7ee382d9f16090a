"""The tool `context_ask`: an answer of a model, each claim with the messages that it rests on."""

from __future__ import annotations

from typing import ClassVar

from msgspec import UNSET, Struct, UnsetType, json

from sidecar.messages.terse_tags import one_line
from sidecar.store.search.excerpt import cut
from sidecar.tools.arguments import Number, read_arguments, whole
from sidecar.tools.asking.evidence import Bounds, Evidence, Piece
from sidecar.tools.asking.planning import Asked, Bound, Inquiry
from sidecar.tools.bounding import CLOSING, LIMIT
from sidecar.tools.context_ask_schema import (
    DESCRIPTION,
    INPUT_SCHEMA,
    LEAST_TOKENS,
    MOST_STEPS,
    MOST_TOKENS,
    STEPS,
    TOKENS,
)
from sidecar.tools.context_expand import Named
from sidecar.tools.contract import ToolFailed, ToolOutcome, ToolSession
from sidecar.tools.times import read_time, show_time

SECONDS = 90.0
"""For all steps of one question together; less than a tool's own limit."""
LONGEST_QUESTION = 4000
SHOWN = 300
"""Characters of a message that are shown beside a claim, or in place of an answer."""
MOST_SHOWN = 10
"""Messages that are shown in place of an answer."""


class AskArguments(Struct, rename="camel"):
    """Arguments of the tool."""

    question: Named
    first: Number | None = None
    last: Number | None = None
    since: Named | None = None
    until: Named | None = None
    tokens: Number | None = None
    steps: Number | None = None


class Source(Struct, frozen=True, kw_only=True, rename="camel"):
    """A message that was read."""

    position: int
    message_id: str
    turn_id: str
    role: str
    text: str


class Statement(Struct, frozen=True, kw_only=True, rename="camel"):
    """One claim of the answer."""

    text: str
    messages: list[Source]


class Search(Struct, frozen=True, kw_only=True, rename="camel"):
    """One search that was done."""

    kind: str
    text: str
    found: int | None


class Answer(Struct, frozen=True, kw_only=True, rename="camel"):
    """What came of a question, for programs."""

    answered: bool
    claims: list[Statement]
    left_out: int
    """Claims of the model that no message bears out; they are not shown."""
    evidence: list[Source]
    """Messages that fit the question, where there is no answer."""
    searches: list[Search]
    steps: int
    tokens: int
    """Read and written, about."""
    failure: str | UnsetType = UNSET
    """Why the model gave no answer."""


class ContextAsk:
    """Lets a model look for the answer to a question."""

    name: ClassVar[str] = "context_ask"
    description: ClassVar[str] = DESCRIPTION
    input_schema: ClassVar[bytes] = json.encode(INPUT_SCHEMA)
    needs_model: ClassVar[bool] = True

    async def call(self, session: ToolSession, arguments: bytes) -> ToolOutcome:
        """As `AgentTool.call`."""
        given = read_arguments(arguments, AskArguments)
        model, count = session.model, session.head.message_count
        if model is None:
            raise ToolFailed("There is no model to ask here. context_search and context_grep find messages.")
        bounds = Bounds(
            max(whole(given.first, 1), 1),
            min(whole(given.last, count), count),
            read_time(given.since, "since"),
            read_time(given.until, "until"),
        )
        question = given.question[:LONGEST_QUESTION]
        evidence = Evidence(session, bounds, question)
        bound = Bound(
            min(max(whole(given.tokens, TOKENS), LEAST_TOKENS), MOST_TOKENS),
            min(whole(given.steps, STEPS), MOST_STEPS),
            SECONDS,
        )
        asked = await Inquiry(model, evidence, question, _overview(session, bounds), bound).answer()
        return _outcome(asked, evidence)


def _overview(session: ToolSession, bounds: Bounds) -> str:
    since = f", from {show_time(bounds.since_ms)}" if bounds.since_ms is not None else ""
    until = f", until {show_time(bounds.until_ms)}" if bounds.until_ms is not None else ""
    return (
        f"The conversation has {session.head.message_count} messages in {session.head.turn_count} turns; "
        f"messages {bounds.first} to {bounds.last}{since}{until} are searched."
    )


def _outcome(asked: Asked, evidence: Evidence) -> ToolOutcome:
    pieces = evidence.pieces
    answered = bool(asked.claims)
    told = Answer(
        answered=answered,
        claims=[
            Statement(text=claim.text, messages=[_source(pieces[position]) for position in claim.positions])
            for claim in asked.claims or ()
        ],
        left_out=asked.left_out,
        evidence=[] if answered else [_source(piece) for piece in list(pieces.values())[:MOST_SHOWN]],
        searches=[
            Search(
                kind=tried.wanted.kind,
                text=tried.wanted.text or f"{tried.wanted.first}-{tried.wanted.last}",
                found=tried.found,
            )
            for tried in asked.tried
        ],
        steps=asked.steps,
        tokens=asked.tokens,
        failure=asked.failure or UNSET,
    )
    return ToolOutcome(_text(told, len(pieces)), json.encode(told))


def _source(piece: Piece) -> Source:
    return Source(
        position=piece.position,
        message_id=piece.message_id,
        turn_id=piece.turn_id,
        role=piece.role,
        text=cut(piece.text, 0, SHOWN),
    )


def _text(told: Answer, looked_at: int) -> str:
    lines: list[str] = []
    if told.answered:
        lines.append("A model's answer from this conversation, each point with the messages it rests on:")
        for claim in told.claims:
            where = ", ".join(
                f"{source.position} ({one_line(source.turn_id)[:60]})" for source in claim.messages
            )
            lines.append(f"- {one_line(claim.text)} [messages {where}]")
    else:
        lines.append(_no_answer(told, looked_at))
        for source in told.evidence:
            whose = f"[{one_line(source.role)} {one_line(source.turn_id)[:60]}]"
            lines.append(f"{source.position} {whose} {one_line(source.text)}")
    notes = (
        [f"{told.left_out} claims were left out: no message that was read bears them out"]
        if told.left_out
        else []
    )
    notes.append(f"{looked_at} messages were found by {len(told.searches)} searches")
    notes.append("context_expand shows messages word for word")
    closing = f"--- {'; '.join(notes)}. ---"
    text = "\n".join(lines)
    if len(text) > LIMIT - CLOSING:
        text = cut(text, 0, LIMIT - CLOSING) + "\n--- the rest of the answer is left out ---"
    return f"{text}\n{closing}"


def _no_answer(told: Answer, looked_at: int) -> str:
    if told.failure is not UNSET:
        first = f"The model gave no answer: {one_line(told.failure)[:300]}."
    else:
        first = "The model found no answer that the messages bear out."
    return f"{first} These fit the question best:" if looked_at else f"{first} Nothing fits the question."
