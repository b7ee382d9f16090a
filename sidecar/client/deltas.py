"""Applies the edits of an assemble result to the list of messages that they refer to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Raw

from sidecar.client.errors import UnexpectedAnswer
from sidecar.protocol.assemble import MessageEdit

REMEMBERED_SESSIONS = 64
"""Sessions whose newest answer is kept; others are asked for whole lists."""


def apply_edits(previous: Sequence[Raw], edits: Sequence[MessageEdit]) -> list[Raw]:
    """The new list of messages.

    Raises:
        UnexpectedAnswer: the edits are not ascending, or reach outside of the previous list.
    """
    current: list[Raw] = []
    position = 0
    for edit in edits:
        end = edit.start + edit.delete_count
        if edit.start < position or end > len(previous):
            raise UnexpectedAnswer(
                f"an edit of messages {edit.start} to {end} does not fit a list of {len(previous)}"
            )
        current += previous[position : edit.start]
        current += edit.messages
        position = end
    current += previous[position:]
    return current


class Basis(NamedTuple):
    """An answer that the next one can be told as edits against."""

    result_id: str
    messages: list[Raw]


class AnswerMemory:
    """The newest answer of each session."""

    def __init__(self) -> None:
        self._newest: OrderedDict[str, Basis] = OrderedDict()

    def basis(self, session_id: str) -> Basis | None:
        """The answer to ask edits against."""
        return self._newest.get(session_id)

    def keep(self, session_id: str, basis: Basis) -> None:
        """Remember the newest answer of a session; those of sessions not asked for lately are forgotten."""
        self._newest[session_id] = basis
        self._newest.move_to_end(session_id)
        if len(self._newest) > REMEMBERED_SESSIONS:
            self._newest.popitem(last=False)

    def forget(self, session_id: str) -> None:
        """Ask for a whole list next time."""
        self._newest.pop(session_id, None)
