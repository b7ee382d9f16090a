"""Client of a model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import MsgspecError, Struct, json

from sidecar.http_client import WORTH_ANOTHER_TRY, Answer, HttpClient, HttpMissing, Unreachable, back_off
from sidecar.summarize.limits import CircuitBreaker, SpendGuard

LONGEST_ANSWER = 4 << 20
"""Maximum bytes read of an answer."""
LONGEST_PAUSE_S = 8.0
FIRST_PAUSE_S = 0.4
NEWER_LIMIT = "max_completion_tokens"
"""Some endpoints refuse `max_tokens` and name this member instead."""

_log = logging.getLogger(__name__)


class ModelFailed(Exception):
    """Raised when a model returns no text; the reason reveals no key and quotes nothing from the request."""


class EndpointSettings(Struct, frozen=True, kw_only=True):
    """The endpoint of a model, with time-out, retries and limits."""

    base_url: str
    """For example `https://api.example.org/v1`; `/chat/completions` is appended."""
    model: str
    api_key: str = ""
    """Sent as a bearer token if not empty; never logged."""
    timeout_seconds: float = 60.0
    """For one call, including retries and pauses."""
    retries: int = 2
    """Further tries after a transient failure."""
    most_calls: int = 60
    """Maximum calls within `window_seconds`; further ones fail."""
    window_seconds: float = 600.0

    def __repr__(self) -> str:
        return f"EndpointSettings({self.base_url!r}, {self.model!r})"


class _Function(Struct):
    content: str | list[dict[str, Any]] | None = None


class _Choice(Struct):
    message: _Function | None = None


class _Completion(Struct):
    choices: list[_Choice] = []


class _Tried(NamedTuple):
    """One try: a text, or the reason for failure and the seconds before a retry (`None`: no retry)."""

    text: str | None
    reason: str = ""
    pause: float | None = None


class EndpointModel:
    """One model at one endpoint; usable in place of `runtime/complete`, with the same limits."""

    def __init__(
        self,
        settings: EndpointSettings,
        *,
        guard: SpendGuard | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.settings = settings
        self._guard = guard or SpendGuard(settings.most_calls, settings.window_seconds)
        self._breaker = breaker or CircuitBreaker()
        self._http = HttpClient("a model at an endpoint")
        self.close = self._http.close
        self._limit_member = "max_tokens"

    async def __call__(
        self,
        purpose: str,
        messages: Sequence[tuple[str, str]],
        system_prompt: str | None,
        max_tokens: int,
    ) -> str:
        """The model's text for `(role, text)` messages, in at most `max_tokens` tokens.

        Raises:
            ModelFailed: an error, a time-out, or the limit on calls was reached.
        """
        if not self._breaker.allows():
            raise ModelFailed("calls to the model are paused after several failures")
        if not self._guard.take():
            _log.warning("no %s by the model: the limit on calls is reached", purpose)
            raise ModelFailed("the limit on calls is reached")
        prompt = [("system", system_prompt), *messages] if system_prompt else list(messages)
        try:
            async with asyncio.timeout(self.settings.timeout_seconds):
                text = await self._with_retries(prompt, max_tokens)
        except TimeoutError:
            self._failed(purpose, reason := f"no answer within {self.settings.timeout_seconds:g} s")
            raise ModelFailed(reason) from None
        except ModelFailed as error:
            self._failed(purpose, str(error))
            raise
        self._breaker.succeeded()
        return text

    async def _with_retries(self, prompt: Sequence[tuple[str, str | None]], max_tokens: int) -> str:
        tries = 0
        while True:
            tried = await self._try(prompt, max_tokens)
            if tried.text is not None:
                return tried.text
            if tried.pause is None or tries == self.settings.retries:
                raise ModelFailed(tried.reason)
            pause_s = tried.pause or back_off(tries, 2 * FIRST_PAUSE_S, LONGEST_PAUSE_S)
            await asyncio.sleep(min(pause_s, LONGEST_PAUSE_S))
            tries += 1

    async def _try(self, prompt: Sequence[tuple[str, str | None]], max_tokens: int) -> _Tried:
        body = {
            "model": self.settings.model,
            "messages": [{"role": role, "content": text} for role, text in prompt],
            self._limit_member: max_tokens,
        }
        url = f"{self.settings.base_url.rstrip('/')}/chat/completions"
        try:
            answer = await self._http.post(url, json.encode(body), self._headers(), most_bytes=LONGEST_ANSWER)
        except HttpMissing as error:
            raise ModelFailed(str(error)) from None
        except Unreachable as error:
            return _Tried(None, f"the endpoint {error}", 0.0)
        except OSError as error:
            return _Tried(None, str(error), 0.0)
        return self._taken(answer)

    def _taken(self, answer: Answer) -> _Tried:
        if answer.status == 400 and self._limit_member != NEWER_LIMIT and NEWER_LIMIT.encode() in answer.body:
            self._limit_member = NEWER_LIMIT
            return _Tried(None, "the endpoint requires another name for the token limit", 0.001)
        if answer.status != 200:
            again = answer.status in WORTH_ANOTHER_TRY
            return _Tried(
                None,
                f"the endpoint answered with status {answer.status}",
                answer.pause_s if again else None,
            )
        try:
            completion = json.decode(answer.body, type=_Completion)
        except MsgspecError:
            return _Tried(None, "the endpoint's answer is not a chat completion", 0.0)
        message = completion.choices[0].message if completion.choices else None
        return _Tried(_text_of(message.content if message else None))

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if self.settings.api_key:
            headers["Authorization"] = f"Bearer {self.settings.api_key}"
        return headers

    def _failed(self, purpose: str, reason: str) -> None:
        was_open = self._breaker.is_open
        self._breaker.failed()
        _log.warning("no %s by the model: %s", purpose, reason)
        if self._breaker.is_open and not was_open:
            _log.warning("paused calls to the model: too many consecutive failures")


def _text_of(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if part.get("type") == "text")
    return content or ""
