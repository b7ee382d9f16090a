"""Posts episodes to an HTTP endpoint, signed, with retries that repeat the same key."""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from sidecar.episodes.contract import Delivered, EpisodeHead, Remembered
from sidecar.http_client import WORTH_ANOTHER_TRY, HttpClient, HttpMissing, back_off
from sidecar.store.buffer import Episode

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0
REFUSED = frozenset((400, 406, 409, 411, 413, 415, 422))
"""Statuses that mean a permanent problem with an episode."""
LONGEST_ANSWER = 1 << 20
"""Maximum bytes read of an answer to a search."""
SECRET_PREFIX = "whsec_"
SEARCH_S = 4.0


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoint for episodes, with time-out and retries."""

    url: str
    secret: str = ""
    """Key of the signature, as text or `whsec_` with base64; if empty, requests are unsigned."""
    search_url: str | None = None
    timeout_s: float = 30.0
    """For one episode, including retries and pauses."""
    retries: int = 4

    def __repr__(self) -> str:
        return f"WebhookSettings({self.url!r})"


class _Tried(NamedTuple):
    """One try: the answer's status (0 for none), the problem, and the pause that the receiver requests."""

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
    """Sends one request per episode, so that the episode's key identifies the request."""

    name = "the webhook"
    batch = 1

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings
        self._http = HttpClient("a webhook")
        self.close = self._http.close

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
                        await asyncio.sleep(tried.pause_s or back_off(number, FIRST_PAUSE_S, LONGEST_PAUSE_S))
        except TimeoutError:
            pass
        except HttpMissing as error:
            return Delivered((), problem=str(error))
        if tried.status in REFUSED:
            return Delivered((), refused=[episode.rowid])
        return Delivered((), problem=tried.problem, pause_s=tried.pause_s)

    async def forget(self, namespace: str, session_id: str) -> None:
        """Does nothing: delivered episodes belong to the receiver."""

    async def search(self, namespace: str, agent_id: str, query: str, limit: int) -> list[Remembered]:
        """See `EpisodeBackend`; forwards to the search endpoint, if there is one.

        Raises:
            OSError: the endpoint cannot be reached, or its answer is invalid.
        """
        url = self._settings.search_url
        if url is None:
            return []
        body = msgspec.json.encode(
            {"namespace": namespace, "agentId": agent_id, "query": query, "limit": limit}
        )
        try:
            async with asyncio.timeout(SEARCH_S):
                answer = await self._http.post(url, body, self._headers("", body), most_bytes=LONGEST_ANSWER)
            if answer.status != 200:
                raise OSError(f"the search was answered with status {answer.status}")
            hits = msgspec.json.decode(answer.body, type=_Hits).results
        except msgspec.MsgspecError as error:
            raise OSError(f"the search failed: {type(error).__name__}") from None
        return [
            Remembered(
                hit.id, hit.content, hit.score, hit.session_id, hit.message_id, hit.role, hit.timestamp
            )
            for hit in hits[:limit]
        ]

    async def _try(self, key: str, body: bytes) -> _Tried:
        limit_s = max(self._settings.timeout_s / 3, 0.05)
        try:
            answer = await self._http.post(
                self._settings.url, body, self._headers(key, body), timeout_s=limit_s
            )
        except TimeoutError:
            return _Tried(0, "it did not answer in time")
        except OSError as error:
            return _Tried(0, f"it {error}")
        return _Tried(answer.status, f"it answered with status {answer.status}", answer.pause_s)

    def _headers(self, key: str, body: bytes) -> dict[str, str]:
        stamp = str(int(time.time()))
        headers = {"User-Agent": "context-sidecar"}
        if key:
            headers |= {"Idempotency-Key": key, "webhook-id": key}
        headers["webhook-timestamp"] = stamp
        if self._settings.secret:
            headers["webhook-signature"] = signature(self._settings.secret, key, stamp, body)
        return headers


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
