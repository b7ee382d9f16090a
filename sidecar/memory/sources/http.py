"""Memory of a service that is asked over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from msgspec import MsgspecError, json
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from sidecar.http_client import BodyTooLarge, HttpClient, HttpMissing, Unreachable
from sidecar.memory.contract import Fragment, MemoryRequest, SourceHost, SourceUnavailable

MOST_BYTES = 1 << 20
"""Bytes of an answer that are read."""
_USER = "the source http"


class HttpSettings(BaseModel):
    """Settings of the source `http`."""

    model_config = ConfigDict(extra="forbid")

    url: str = Field(pattern=r"^https?://")
    """Where a JSON object is posted to."""
    apiKey: SecretStr | None = None
    """Sent as a bearer token, and never logged."""
    headers: dict[str, SecretStr] = {}
    """Further headers."""
    fragmentsAt: str = "fragments"
    """Where in the answer the list of fragments is: names with dots between them; empty for the answer
    itself."""
    contentAt: str = "content"
    """The member of a fragment that has its text."""
    injectionPoints: list[Literal["session-start", "per-message"]] = ["per-message"]
    """When the service is asked."""
    timeoutMs: int = Field(default=4000, ge=1)
    """How long one question may take, in milliseconds."""
    tokenBudget: int | None = Field(default=None, ge=1)
    """Most tokens of this source in one compilation."""


class ServiceFailed(Exception):
    """Raised when the service gives no fragments; the text quotes nothing of what was asked."""


class HttpSource:
    """Posts what is asked as JSON, and takes the fragments out of the answer."""

    name = "http"

    def __init__(self, host: SourceHost) -> None:
        self._settings = host.settings(HttpSettings)
        self.injection_points = tuple(dict.fromkeys(self._settings.injectionPoints))
        try:
            HttpClient(_USER).library()
        except HttpMissing as error:
            raise SourceUnavailable(str(error)) from None

    async def get_context(self, request: MemoryRequest) -> list[Fragment]:
        """See `MemorySource`.

        Raises:
            ServiceFailed: it cannot be reached, is too slow, or answers something else.
        """
        body = json.encode(
            {
                "agentId": request.agent_id,
                "injectionPoint": request.injection_point,
                "sessionId": request.session_id,
                "sessionKey": request.session_key,
                "prompt": request.prompt,
                "tokenBudget": request.token_budget,
                "citationsMode": request.citations_mode,
            }
        )
        try:
            async with asyncio.timeout(self._settings.timeoutMs / 1000):
                return self._fragments(await self._posted(body))
        except TimeoutError:
            raise ServiceFailed(f"no answer within {self._settings.timeoutMs} ms") from None
        except BodyTooLarge as error:
            raise ServiceFailed(str(error)) from None
        except Unreachable as error:
            raise ServiceFailed(f"the service {error}") from None

    async def _posted(self, body: bytes) -> bytes:
        headers = {name: value.get_secret_value() for name, value in self._settings.headers.items()}
        headers["Accept"] = "application/json"
        if self._settings.apiKey is not None:
            headers["Authorization"] = f"Bearer {self._settings.apiKey.get_secret_value()}"
        async with HttpClient(_USER) as client:
            answer = await client.post(self._settings.url, body, headers, most_bytes=MOST_BYTES)
        if answer.status != 200:
            raise ServiceFailed(f"the service answered with status {answer.status}")
        return answer.body

    def _fragments(self, answer: bytes) -> list[Fragment]:
        try:
            found: Any = json.decode(answer)
        except MsgspecError:
            raise ServiceFailed("the answer is no JSON") from None
        for name in filter(None, self._settings.fragmentsAt.split(".")):
            if not isinstance(found, dict):
                break
            found = cast("dict[str, Any]", found).get(name)
        if not isinstance(found, list):
            raise ServiceFailed("the answer has no list of fragments where it is looked for")
        read = (self._fragment(each) for each in cast("Sequence[object]", found))
        return [fragment for fragment in read if fragment is not None]

    def _fragment(self, given: object) -> Fragment | None:
        """A fragment as the service gives it: a text, or an object like one of the protocol's."""
        if isinstance(given, str):
            return Fragment(content=given)
        if not isinstance(given, dict):
            return None
        members = cast("Mapping[str, object]", given)
        content = members.get(self._settings.contentAt)
        if not isinstance(content, str):
            return None
        fragment_id, label = members.get("id"), members.get("label")
        fragment = Fragment(
            content=content,
            tokens=_number(members.get("tokens")),
            id=str(fragment_id) if isinstance(fragment_id, str | int) else None,
            label=label if isinstance(label, str) else None,
            synthesize=members.get("synthesize") is not False,
        )
        priority = _number(members.get("priority"))
        if priority is None:
            return fragment
        from msgspec import structs

        return structs.replace(fragment, priority=priority)


def _number(given: object) -> float | None:
    return given if isinstance(given, int | float) and not isinstance(given, bool) else None
