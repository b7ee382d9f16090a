"""Summarises without a model, by quoting what matters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sidecar.summarize.candidates import CARRIED_LINE, Piece, pieces_of, pieces_of_earlier, shorten
from sidecar.summarize.contract import SourceMessage, Summary, SummaryRequest
from sidecar.summarize.scoring import worths
from sidecar.summarize.selection import select
from sidecar.tokens.contract import TokenCounter

LEAST_SHARE_OF_EARLIER, GREATEST_SHARE_OF_EARLIER = 0.4, 0.75
"""An earlier summary gets at least and at most these shares of the target, where it needs them."""
CHARACTERS_PER_TOKEN = 4
MOST_ON_THE_LOOP = 80_000
"""Characters that are summarised at once; more would hold up other requests."""
NOTHING_SAID = "(no text)"


class DeterministicSummariser:
    """Quotes the sentences and lines that matter most, in order, each with the turn it stands in.

    The same request gives the same summary. Nothing in the sources is ever followed: it is only quoted.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    async def summarise(self, request: SummaryRequest) -> Summary:
        """A summary of at most `target_tokens` tokens; waits for nothing, large sources go to a thread."""
        if sum(len(source.text) for source in request.sources) > MOST_ON_THE_LOOP:
            return Summary(await asyncio.to_thread(self.text_for, request), "deterministic")
        return Summary(self.text_for(request), "deterministic")

    def text_for(self, request: SummaryRequest) -> str:
        """The text of the summary: bullets, oldest first; empty only where there was nothing to cover."""
        if not request.sources and not request.earlier.strip():
            return ""
        target = max(1, request.target_tokens)
        earlier = pieces_of_earlier(request.earlier)
        recent = pieces_of(request.sources)
        for_earlier = int(target * _share_of_earlier(earlier, recent)) if recent else target
        carried = self._select(earlier, for_earlier, request.instructions)
        kept = self._select(recent, target - self._tokens(carried), request.instructions)
        if len(carried) < len(earlier):
            carried = self._select(earlier, target - self._tokens(kept), request.instructions)
        return self._fitted(carried, kept, request.sources, target)

    def _select(self, pieces: list[Piece], budget: int, instructions: str) -> list[Piece]:
        if budget <= 0:
            return []
        return select(pieces, worths(pieces, instructions), budget, self._bullet_tokens)

    def _bullet_tokens(self, piece: Piece) -> int:
        return self._counter.count(_bullet(piece) + "\n")

    def _tokens(self, pieces: Sequence[Piece]) -> int:
        return self._counter.count(_join(pieces)) + 1 if pieces else 0

    def _fitted(
        self, carried: list[Piece], kept: list[Piece], sources: Sequence[SourceMessage], target: int
    ) -> str:
        """The bullets, without the last ones where they take more than the target after all."""
        chosen = [*carried, *kept]
        while chosen:
            text = _join(chosen)
            if self._counter.count(text) <= target:
                return text
            chosen.pop(len(chosen) // 2)
        return self._one_line(sources, target)

    def _one_line(self, sources: Sequence[SourceMessage], target: int) -> str:
        """As much of the newest words as fits where not one whole piece does."""
        said = next((source for source in reversed(sources) if source.text.strip()), None)
        text = " ".join(said.text.split()) if said else NOTHING_SAID
        turn_id = said.turn_id if said else sources[-1].turn_id if sources else "earlier"
        limit = target * CHARACTERS_PER_TOKEN
        while limit > 0:
            for line in (f"- [{turn_id}] {shorten(text, limit)}", shorten(text, limit)):
                if self._counter.count(line) <= target:
                    return line
            limit //= 2
        return "…"


def _share_of_earlier(earlier: Sequence[Piece], recent: Sequence[Piece]) -> float:
    """The share of the room for an earlier summary: by the turns quoted in it and those that are new."""
    before = len({piece.turn_id for piece in earlier})
    added = len({piece.turn_id for piece in recent})
    return min(max(before / (before + added), LEAST_SHARE_OF_EARLIER), GREATEST_SHARE_OF_EARLIER)


def _bullet(piece: Piece) -> str:
    if piece.kind == "earlier":
        return (
            piece.text if CARRIED_LINE.match(piece.text) else f"- [earlier] {piece.text.removeprefix('- ')}"
        )
    return f"- [{piece.turn_id}] {piece.role}: {piece.text}"


def _join(pieces: Sequence[Piece]) -> str:
    """One bullet for each piece; sentences that follow each other in a message share one."""
    lines: list[str] = []
    before: Piece | None = None
    for piece in pieces:
        if before and before.source == piece.source >= 0 and before.place + 1 == piece.place and lines:
            lines[-1] = f"{lines[-1]} {piece.text}"
        else:
            lines.append(_bullet(piece))
        before = piece
    return "\n".join(lines)
