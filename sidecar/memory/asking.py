"""Asks memory sources side by side under one time limit: one that fails or hangs costs its own fragments."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from msgspec import structs

from sidecar.memory.contract import Fragment, MemoryRequest, MemorySource

MOST_FRAGMENTS = 200
"""Fragments of one answer that are looked at."""

_log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """What came of asking one source."""

    source: str
    fragments: list[Fragment]
    milliseconds: int
    problem: str = ""
    """Why there are no fragments, or not all of them; empty where all went well."""


async def ask(sources: Sequence[MemorySource], request: MemoryRequest, limit_ms: int) -> list[Answer]:
    """An answer for each source, in their order, after `limit_ms` milliseconds at the latest."""
    if not sources:
        return []
    begin = time.monotonic()
    tasks = [asyncio.ensure_future(_asked(source, request)) for source in sources]
    try:
        await asyncio.wait(tasks, timeout=limit_ms / 1000)
    finally:
        # Whoever does not heed the cancellation is not waited for either.
        for task in tasks:
            if not task.done():
                task.cancel()
    return [_answer(source, task, begin, limit_ms) for source, task in zip(sources, tasks, strict=True)]


class _Told(NamedTuple):
    fragments: list[Fragment]
    problem: str
    end: float


async def _asked(source: MemorySource, request: MemoryRequest) -> _Told:
    try:
        said = await source.get_context(request)
        fragments, problem = _checked(said)
    except (Exception, SystemExit) as error:
        _log.warning("memory source %s failed: %s: %s", source.name, type(error).__name__, error)
        fragments, problem = [], f"failed: {type(error).__name__}"
    return _Told(fragments, problem, time.monotonic())


def _answer(source: MemorySource, task: asyncio.Task[_Told], begin: float, limit_ms: int) -> Answer:
    if not task.done():
        _log.warning("memory source %s gave no answer within %d ms", source.name, limit_ms)
        return Answer(source.name, [], limit_ms, f"no answer within {limit_ms} ms")
    if task.cancelled():
        return Answer(source.name, [], limit_ms, "was cancelled")
    told = task.result()
    return Answer(source.name, told.fragments, round((told.end - begin) * 1000), told.problem)


def _checked(said: object) -> tuple[list[Fragment], str]:
    """The fragments of an answer, and what is wrong with the rest of it."""
    if not isinstance(said, Iterable) or isinstance(said, str | bytes | Mapping):
        return [], "answered with something else than a list of fragments"
    fragments: list[Fragment] = []
    wrong = 0
    for given in cast("Iterable[object]", said):
        if len(fragments) + wrong == MOST_FRAGMENTS:
            return fragments, f"gave more than {MOST_FRAGMENTS} fragments"
        if isinstance(given, Fragment) and _is_sound(given):
            fragments.append(_encodable(given))
        else:
            wrong += 1
    return fragments, f"gave {wrong} things that are no fragments" if wrong else ""


def _is_sound(given: Fragment) -> bool:
    """Python holds nobody to the types of a fragment's members."""
    texts = cast("tuple[object, ...]", (given.content, given.id or "", given.label or ""))
    numbers = cast("tuple[object, ...]", (given.priority, given.tokens or 0))
    return all(isinstance(text, str) for text in texts) and all(
        isinstance(number, int | float) for number in numbers
    )


def _encodable(given: Fragment) -> Fragment:
    """The fragment without halves of surrogate pairs, as a name of a file may have: no UTF-8 holds them."""
    texts = (given.content, given.id or "", given.label or "")
    if all(text.isascii() for text in texts):
        return given
    content, fragment_id, label = (text.encode("utf-8", "replace").decode() for text in texts)
    return structs.replace(given, content=content, id=fragment_id or None, label=label or None)
