"""Runs foreign code without letting it do harm: contains what it raises and checks what it answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Sequence
from typing import NamedTuple, TypeVar, cast

import msgspec

from sidecar.engine.calls import Assembly, Kept, Made
from sidecar.engine.entry import Entry

R = TypeVar("R")

_SPACES = re.compile(r"\s+")

T = TypeVar("T", bound=msgspec.Struct)

MOST_ITEMS = 2_000_000
LONGEST_TEXT = 64
"""Characters of text for each token of the budget beyond which a text is nonsense."""
SHORT_TEXT = 1 << 20
_LARGEST = (1 << 53) - 1
_ANY_NUMBER = ("timestamp_ms",)
"""Numbers that say no count."""
_JSON = ("details", "display_message")
"""Members that are sent to the host as they are."""


class Raised(NamedTuple):
    """What was raised."""

    error: BaseException

    def described(self) -> str:
        """Type and text, in one line of bounded length."""
        return described(self.error)


async def contained(work: Awaitable[R]) -> R | Raised:
    """The outcome of `work`, or what it raised, whatever that is; only a cancellation of ours goes on."""
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return Raised(error)
    except BaseException as error:
        return Raised(error)


def described(error: BaseException) -> str:
    """Type and text of an exception, in one line of bounded length."""
    try:
        text = _SPACES.sub(" ", str(error)[:2000]).strip()[:500]
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class NonsenseAnswer(Exception):
    """Raised when an engine answers something that it must not; the text tells what."""


def checked_assembly(assembly: object, budget: int) -> Assembly:
    """The assembly, if it is one; its texts have no halves of characters.

    Raises:
        NonsenseAnswer: it is not, or holds something else than messages and texts.
    """
    if not isinstance(assembly, Assembly):
        raise NonsenseAnswer(f"the answer is a {type(assembly).__name__}, no Assembly")
    items = cast(object, assembly.items)
    if not isinstance(items, Sequence) or isinstance(items, str | bytes):
        raise NonsenseAnswer(f"the items of the assembly are a {type(items).__name__}, no list")
    most = max(SHORT_TEXT, LONGEST_TEXT * budget)
    sound: list[Kept | Made] = []
    for item in cast("Sequence[object]", items):
        if isinstance(item, Made):
            _bounded(item.text, most)
            sound.append(checked(item, Made))
        elif isinstance(item, Kept) and isinstance(cast(object, item.entry), Entry):
            sound.append(item)
        else:
            raise NonsenseAnswer("the assembly holds items that are neither Kept nor Made")
    for text in (assembly.system_prompt_addition, assembly.user_message_append):
        if text is not None:
            _bounded(text, most)
    return Assembly(
        items=sound,
        system_prompt_addition=_sendable(assembly.system_prompt_addition),
        user_message_append=_sendable(assembly.user_message_append),
        as_came=assembly.as_came,
    )


def checked(outcome: object, kind: type[T]) -> T:
    """The outcome, if it is of that kind and all its members are of theirs; texts without half characters.

    Raises:
        NonsenseAnswer: it is not, or has numbers below zero, or JSON that is none.
    """
    if not isinstance(outcome, kind):
        raise NonsenseAnswer(f"the answer is a {type(outcome).__name__}, no {kind.__name__}")
    members = msgspec.structs.asdict(outcome)
    try:
        msgspec.convert(members, kind)
    except msgspec.ValidationError as error:
        raise NonsenseAnswer(f"the {kind.__name__} is not right: {error}") from None
    mended: dict[str, str | None] = {}
    for name, value in members.items():
        if isinstance(value, int) and not 0 <= value <= _LARGEST and name not in _ANY_NUMBER:
            raise NonsenseAnswer(f"{name} of the {kind.__name__} is {value}, which is no count")
        if name in _JSON and isinstance(value, bytes):
            _decodable(value, f"{name} of the {kind.__name__}")
        if isinstance(value, str) and (text := _sendable(value)) != value:
            mended[name] = text
    return msgspec.structs.replace(outcome, **mended) if mended else outcome


def _decodable(value: bytes, what: str) -> None:
    try:
        msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise NonsenseAnswer(f"the {what} are no JSON") from None


def _sendable(text: str | None) -> str | None:
    """The text, halves of characters replaced: no encoder takes them."""
    try:
        if text is not None:
            text.encode()
        return text
    except UnicodeEncodeError:
        return (text or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _bounded(text: object, most: int) -> None:
    if not isinstance(text, str):
        raise NonsenseAnswer(f"a text of the assembly is a {type(text).__name__}")
    if len(text) > most:
        raise NonsenseAnswer(f"a text of the assembly has {len(text)} characters, {most} is the most")
