"""Runs code of others so that nothing it raises reaches further than its caller."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_SPACES = re.compile(r"\s+")


class Raised(NamedTuple):
    """What was raised."""

    error: BaseException

    def described(self) -> str:
        """Type and text, in one line of bounded length."""
        return described(self.error)


async def contained(work: Awaitable[T]) -> T | Raised:
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
