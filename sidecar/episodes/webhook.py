"""Posts episodes to an HTTP endpoint, signed, with retries that repeat the same key."""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from collections.abc import Sequence
from random import random
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from sidecar.episodes.contract import Delivered, EpisodeHead, Remembered
from sidecar.http_answers import WORTH_ANOTHER_TRY, bounded_body, pause_asked_for
from sidecar.origin import install_command
from sidecar.store.buffer import Episode

if TYPE_CHECKING:
    from aiohttp import ClientSession

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0
REFUSED = frozenset((400, 406, 409, 411, 413, 415, 422))
"""What these say is wrong with an episode will not change by itself."""
LONGEST_ANSWER = 1 << 20
"""Bytes of an answer to a search that are read."""
SECRET_PREFIX = "whsec_"
SEARCH_S = 4.0


class HttpMissing(Exception):
    """Raised when the HTTP client is not installed."""


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where episodes are posted, and how patiently."""

    url: str
    secret: str = ""
    """Key of the signature, as text or as `whsec_` with base64; unsigned where it is empty."""
    search_url: str | None = None
    timeout_s: float = 30.0
    """For one episode, retries and pauses included."""
    retries: int = 4

    def __repr__(self) -> str:
        return f"WebhookSettings({self.url!r})"


class _Tried(NamedTuple):
    """One try: the status of the answer, 0 for none, and how long the receiver wants to be left alone."""

    status: int
    problem: str
    pause_s: float = 0.0


class _Hit(msgspec.Struct, rename="camel"):
    content: str
    id: str = ""
    score: float = 0.0
    session_id: str = ""
    message_id: str = ""
    role: str = ""
    timestamp: str = ""


class _Hits(msgspec.Struct):
    results: list[_Hit]


class WebhookBackend:
    """One request for each episode, so that its key is the request's."""

    name = "the webhook"
    batch = 1

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings
        self._session: ClientSession | None = None

    @property
    def limit_s(self) -> float:
        """See `EpisodeBackend`."""
        return self._settings.timeout_s

    async def deliver(self, episodes: Sequence[Episode]) -> Delivered:
        """See `EpisodeBackend`."""
        episode = episodes[0]
        head = msgspec.json.decode(episode.payload, type=EpisodeHead)
        tried = _Tried(0, "no answer")
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                tries = 1 + self._settings.retries
                for number in range(tries):
                    tried = await self._try(head.key, episode.payload)
                    if 200 <= tried.status < 300:
                        return Delivered([episode.rowid])
                    if tried.status and tried.status not in WORTH_ANOTHER_TRY:
                        break
                    if tried.pause_s > self._settings.timeout_s:
                        break
                    if number + 1 < tries:
                        await asyncio.sleep(tried.pause_s or _back_off(number))
        except TimeoutError:
            pass
        except HttpMissing as error:
            return Delivered((), problem=str(error))
        if tried.status in REFUSED:
            return Delivered((), refused=[episode.rowid])
        return Delivered((), problem=tried.problem, pause_s=tried.pause_s)

    async def forget(self, namespace: str, session_id: str) -> None:
        """What was handed over is the receiver's."""

    async def search(self, namespace: str, agent_id: str, query: str, limit: int) -> list[Remembered]:
        """See `EpisodeBackend`; what the endpoint for searches answers.

        Raises:
            OSError: it cannot be reached, or answers something else.
        """
        url = self._settings.search_url
        if url is None:
            return []
        body = msgspec.json.encode(
            {"namespace": namespace, "agentId": agent_id, "query": query, "limit": limit}
        )
        aiohttp = _library()
        try:
            async with (
                asyncio.timeout(SEARCH_S),
                self._connected().post(
                    url, data=body, headers=self._headers("", body), allow_redirects=False
                ) as response,
            ):
                if response.status != 200:
                    raise OSError(f"the search was answered with status {response.status}")
                answer = await bounded_body(response, LONGEST_ANSWER)
                hits = msgspec.json.decode(answer, type=_Hits).results
        except (aiohttp.ClientError, msgspec.MsgspecError) as error:
            raise OSError(f"the search failed: {type(error).__name__}") from None
        return [
            Remembered(
                hit.id, hit.content, hit.score, hit.session_id, hit.message_id, hit.role, hit.timestamp
            )
            for hit in hits[:limit]
        ]

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _try(self, key: str, body: bytes) -> _Tried:
        aiohttp = _library()
        limit = aiohttp.ClientTimeout(total=max(self._settings.timeout_s / 3, 0.05))
        try:
            async with self._connected().post(
                self._settings.url,
                data=body,
                headers=self._headers(key, body),
                allow_redirects=False,
                timeout=limit,
            ) as response:
                pause = pause_asked_for(response.headers)
                return _Tried(response.status, f"it answered with status {response.status}", pause)
        except TimeoutError:
            return _Tried(0, "it did not answer in time")
        except (aiohttp.ClientError, OSError) as error:
            return _Tried(0, f"it cannot be reached: {type(error).__name__}")

    def _headers(self, key: str, body: bytes) -> dict[str, str]:
        stamp = str(int(time.time()))
        headers = {"Content-Type": "application/json", "User-Agent": "context-sidecar"}
        if key:
            headers |= {"Idempotency-Key": key, "webhook-id": key}
        headers["webhook-timestamp"] = stamp
        if self._settings.secret:
            headers["webhook-signature"] = signature(self._settings.secret, key, stamp, body)
        return headers

    def _connected(self) -> ClientSession:
        session = self._session
        if session is None:
            aiohttp = _library()
            session = self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        return session


def signature(secret: str, key: str, stamp: str, body: bytes) -> str:
    """The value of `webhook-signature`: `v1,` and the HMAC-SHA256 of `key.stamp.body` in base64."""
    import hmac

    signed = f"{key}.{stamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(_secret(secret), signed, "sha256")).decode()


def _secret(text: str) -> bytes:
    if text.startswith(SECRET_PREFIX):
        try:
            return base64.b64decode(text.removeprefix(SECRET_PREFIX).encode(), validate=True)
        except binascii.Error:
            return text.encode()
    return text.encode()


def _library() -> Any:
    """The HTTP client.

    Raises:
        HttpMissing: it is not installed.
    """
    try:
        import aiohttp
    except ImportError:
        raise HttpMissing(f"a webhook needs the extra http: {install_command('http')}") from None
    return aiohttp


def _back_off(number: int) -> float:
    """Seconds to wait after so many tries; at random, so that many senders do not come at once."""
    return min(FIRST_PAUSE_S * 2**number, LONGEST_PAUSE_S) * (0.5 + random())
