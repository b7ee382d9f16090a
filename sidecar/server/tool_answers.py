"""Tells a tool's answer from nonsense, and cuts what is too long to be sent."""

from __future__ import annotations

from typing import Any, cast

from msgspec import DecodeError, json, structs

from sidecar.server.answer_checks import NonsenseAnswer
from sidecar.tools.contract import ToolOutcome

LONGEST_TEXT = 16_000
"""Characters of an answer beyond which the rest is left out."""
CLOSING = "\n--- {count} more characters are left out: ask for less ---"


def checked_outcome(outcome: object) -> ToolOutcome:
    """The outcome, if it is one, with a text that may be sent.

    Raises:
        NonsenseAnswer: it is none, or its structured part is no JSON object.
    """
    if not isinstance(outcome, ToolOutcome) or not isinstance(cast(object, outcome.text), str):
        raise NonsenseAnswer(f"the tool answered a {type(outcome).__name__}, no ToolOutcome with a text")
    if outcome.structured is not None:
        try:
            json.decode(outcome.structured, type=dict[str, Any])
        except (DecodeError, RecursionError, TypeError):
            raise NonsenseAnswer("the structured answer of the tool is no JSON object") from None
    text = outcome.text.encode("utf-8", "replace").decode()
    return outcome if text == outcome.text and len(text) <= LONGEST_TEXT else _sendable(outcome, text)


def _sendable(outcome: ToolOutcome, text: str) -> ToolOutcome:
    if len(text) > LONGEST_TEXT:
        room = LONGEST_TEXT - len(CLOSING) - 10
        text = text[:room] + CLOSING.format(count=len(text) - room)
    return structs.replace(outcome, text=text)
