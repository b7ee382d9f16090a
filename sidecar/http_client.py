"""The HTTP client for all external services: bounded answers, pauses, no redirects or cookies."""

from __future__ import annotations

import time
from collections.abc import Mapping
from random import random
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, Self

from sidecar.origin import install_command

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

WORTH_ANOTHER_TRY = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))
"""Statuses of transient failures."""
LONGEST_PAUSE_S = 1e6
_CHUNK = 1 << 16


class HttpMissing(Exception):
    """Raised if the extra `http` is not installed; the text says how to install it."""


class Unreachable(OSError):
    """Raised if a service cannot be reached or breaks off; the text names only the kind of error."""


class BodyTooLarge(OSError):
    """Raised for an answer that exceeds the size limit; the text quotes none of it."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the answer has more than {most} bytes")


class Answer(NamedTuple):
    """A service's answer."""

    status: int
    body: bytes
    pause_s: float
    """Pause that the service requests, in seconds; 0 if it requests none."""


class HttpClient:
    """Posts JSON over connections that stay open until `close`."""

    def __init__(self, user: str) -> None:
        """`user` names the feature that needs the client, for the error if the extra is missing."""
        self._user = user
        self._session: ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_problem: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        most_bytes: int = 0,
        timeout_s: float | None = None,
    ) -> Answer:
        """Post a body and return the answer with at most `most_bytes` of body; 0 means not to read the body.

        Raises:
            HttpMissing: the extra is not installed.
            TimeoutError: no answer came within `timeout_s` seconds.
            BodyTooLarge: the answer's body is larger.
            Unreachable: the service cannot be reached or breaks off.
        """
        aiohttp = self.library()
        session = self._session
        if session is None:
            session = self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        limit = aiohttp.ClientTimeout(total=timeout_s)
        headers = {"Content-Type": "application/json", **headers}
        try:
            async with session.post(
                url, data=body, headers=headers, allow_redirects=False, timeout=limit
            ) as response:
                taken = await _bounded_body(response, most_bytes) if most_bytes else b""
                return Answer(response.status, taken, _requested_pause(response.headers))
        except (BodyTooLarge, TimeoutError):
            raise
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"cannot be reached: {type(error).__name__}") from None

    def library(self) -> ModuleType:
        """The aiohttp module.

        Raises:
            HttpMissing: the extra is not installed.
        """
        try:
            import aiohttp
        except ImportError:
            raise HttpMissing(f"{self._user} needs the extra http: {install_command('http')}") from None
        return aiohttp


def back_off(tries: int, first_s: float, longest_s: float) -> float:
    """Seconds to wait after `tries` tries, randomised so that senders do not retry at the same time."""
    return min(first_s * 2**tries, longest_s) * (0.5 + random())


async def _bounded_body(response: ClientResponse, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_chunked(_CHUNK):
        size += len(part)
        if size > most:
            raise BodyTooLarge(most)
        parts.append(part)
    return b"".join(parts)


def _requested_pause(headers: Mapping[str, str]) -> float:
    """Seconds from the header `Retry-After`: a number, maybe fractional, or a date (RFC 9110, 10.2.3)."""
    value = headers.get("Retry-After", "")
    if not value:
        return 0.0
    try:
        seconds = float(value)
    except ValueError:
        seconds = _until(value)
    return min(max(0.0, seconds), LONGEST_PAUSE_S)


def _until(date: str) -> float:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return 0.0
