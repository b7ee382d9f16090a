"""Tells for which turn, and for which words of the user, memory is asked."""

from __future__ import annotations

from typing import NamedTuple

from sidecar.engine.session import Timeline
from sidecar.engine.signature import digest
from sidecar.messages.appended import own_words, says
from sidecar.messages.folding import fold


class AskedTurn(NamedTuple):
    """The turn that the model is about to answer."""

    number: int
    words: str
    """What the user says in it."""

    @property
    def prompt(self) -> str:
        """Stands for the words, whatever a host puts around them."""
        return digest(fold(self.words))


async def asked_turn(timeline: Timeline, prompt: str | None) -> AskedTurn:
    """The newest turn of the timeline, or the one that `prompt` is about to open behind it."""
    newest = (await timeline.tail(0)).entries
    if not newest:
        return AskedTurn(1, own_words(prompt or ""))
    last = newest[-1]
    opener = await timeline.opener(last.turn)
    if prompt:
        answered = last.role == "assistant" and not last.reading.calls
        if opener is None or answered or not says(opener.reading.text, prompt):
            begun = last.turn > 1 or last.role != "system"
            return AskedTurn(last.turn + begun, own_words(prompt))
    return AskedTurn(last.turn, own_words(opener.reading.text) if opener else "")
