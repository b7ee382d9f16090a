"""Tells an engine's answer from nonsense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

import msgspec

from sidecar.engine.contract import Assembly, Kept, Made
from sidecar.engine.entry import Entry

T = TypeVar("T", bound=msgspec.Struct)

MOST_ITEMS = 2_000_000
LONGEST_TEXT = 64
"""Characters of text for each token of the budget beyond which a text is nonsense."""
SHORT_TEXT = 1 << 20


class NonsenseAnswer(Exception):
    """Raised when an engine answers something that it must not; the text tells what."""


def checked_assembly(assembly: object, budget: int) -> Assembly:
    """The assembly, if it is one.

    Raises:
        NonsenseAnswer: it is not, or holds something else than messages and texts.
    """
    if not isinstance(assembly, Assembly):
        raise NonsenseAnswer(f"the answer is a {type(assembly).__name__}, no Assembly")
    items = cast(object, assembly.items)
    if not isinstance(items, Sequence) or isinstance(items, str | bytes):
        raise NonsenseAnswer(f"the items of the assembly are a {type(items).__name__}, no list")
    most = max(SHORT_TEXT, LONGEST_TEXT * budget)
    for item in cast("Sequence[object]", items):
        if isinstance(item, Made):
            checked(item, Made)
            _bounded(item.text, most)
        elif not (isinstance(item, Kept) and isinstance(cast(object, item.entry), Entry)):
            raise NonsenseAnswer("the assembly holds items that are neither Kept nor Made")
    for text in (assembly.system_prompt_addition, assembly.user_message_append):
        if text is not None:
            _bounded(text, most)
    return assembly


def checked(outcome: object, kind: type[T]) -> T:
    """The outcome, if it is of that kind and all its members are of theirs.

    Raises:
        NonsenseAnswer: it is not.
    """
    if not isinstance(outcome, kind):
        raise NonsenseAnswer(f"the answer is a {type(outcome).__name__}, no {kind.__name__}")
    try:
        msgspec.convert(msgspec.structs.asdict(outcome), kind)
    except msgspec.ValidationError as error:
        raise NonsenseAnswer(f"the {kind.__name__} is not right: {error}") from None
    return outcome


def _bounded(text: object, most: int) -> None:
    if not isinstance(text, str):
        raise NonsenseAnswer(f"a text of the assembly is a {type(text).__name__}")
    if len(text) > most:
        raise NonsenseAnswer(f"a text of the assembly has {len(text)} characters, {most} is the most")
