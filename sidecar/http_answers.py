"""Reads what HTTP services answer: bodies up to a bound, pauses that are asked for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import ClientResponse

WORTH_ANOTHER_TRY = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))
"""Statuses of failures that may pass by themselves."""
LONGEST_PAUSE_S = 1e6
CHUNK = 1 << 16


class BodyTooLarge(OSError):
    """Raised for an answer of more bytes than its reader takes; none of it is quoted."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the answer has more than {most} bytes")


async def bounded_body(response: ClientResponse, most: int) -> bytes:
    """The body of an answer, whole.

    Raises:
        BodyTooLarge: it has more than `most` bytes; no more than that is read.
        aiohttp.ClientError: it broke off.
    """
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_chunked(CHUNK):
        size += len(part)
        if size > most:
            raise BodyTooLarge(most)
        parts.append(part)
    return b"".join(parts)


def pause_asked_for(headers: Mapping[str, str]) -> float:
    """Seconds that the service wants to be left alone, 0 where it says nothing of it.

    `Retry-After` is a number of seconds or a date (RFC 9110, 10.2.3); some services send fractions.
    """
    asked = headers.get("Retry-After", "")
    if not asked:
        return 0.0
    try:
        seconds = float(asked)
    except ValueError:
        seconds = _until(asked)
    return min(max(0.0, seconds), LONGEST_PAUSE_S)


def _until(date: str) -> float:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return 0.0
