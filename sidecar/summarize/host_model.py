"""Summarises with the host's model, as long as that works."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from typing import Literal, Protocol

from sidecar.summarize.contract import Quality, Summariser, Summary, SummaryRequest, tokens_to_shorten
from sidecar.summarize.limits import CircuitBreaker, SpendGuard
from sidecar.summarize.prompts import summary_prompt
from sidecar.tokens.contract import TokenCounter

SECONDS_FOR_A_CALL = 60.0
LONGEST_SOURCE = 160_000
"""Characters of the sources that a model is shown, about 40,000 tokens."""
GREATEST_SHARE_OF_SOURCE = 0.9
"""A summary that is not shorter than this share of its source is none."""
THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
WHOLE_FENCE = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)


class Complete(Protocol):
    """Asks a model, as the server-to-host request `runtime/complete` does."""

    async def __call__(
        self,
        purpose: Literal["summary", "condense"],
        messages: Sequence[tuple[str, str]],
        system_prompt: str,
        max_tokens: int,
    ) -> str:
        """The model's text for `(role, text)` messages; any exception means that there is none."""
        ...


_log = logging.getLogger(__name__)


class HostModelSummariser:
    """Asks the host's model, more sternly if its answer is too long; `fallback` writes where it fails.

    Sources that fit into the target as they are, a spent guard and an open breaker go straight to `fallback`.
    """

    def __init__(
        self,
        complete: Complete,
        counter: TokenCounter,
        fallback: Summariser,
        *,
        guard: SpendGuard | None = None,
        breaker: CircuitBreaker | None = None,
        model: str = "",
        timeout_seconds: float = SECONDS_FOR_A_CALL,
    ) -> None:
        self._complete = complete
        self._counter = counter
        self._fallback = fallback
        self._guard = guard or SpendGuard()
        self._breaker = breaker or CircuitBreaker()
        self._model = model
        self._timeout_seconds = timeout_seconds

    async def summarise(self, request: SummaryRequest) -> Summary:
        """A summary of at most `target_tokens` tokens; waits for the model at most twice its time limit."""
        source_tokens = tokens_to_shorten(request, self._counter)
        if source_tokens > request.target_tokens:
            for quality in ("model", "aggressive"):
                if not self._may_ask():
                    break
                text = await self._ask(request, quality)
                if text is None:
                    break
                if self._is_short_enough(text, request.target_tokens, source_tokens):
                    self._breaker.succeeded()
                    return Summary(text, quality, self._model)
            else:
                self._failed("its summaries are empty or too long")
        return await self._fallback.summarise(request)

    async def _ask(self, request: SummaryRequest, quality: Quality) -> str | None:
        """The model's summary, empty where it wrote nothing; None where the call failed."""
        prompt = summary_prompt(request, LONGEST_SOURCE, briefer=quality == "aggressive")
        try:
            async with asyncio.timeout(self._timeout_seconds):
                answer = await self._complete(
                    "summary" if request.sources else "condense",
                    [("user", prompt.user)],
                    prompt.system,
                    max(1, request.target_tokens),
                )
        except Exception as error:
            self._failed(type(error).__name__)
            return None
        return cleaned(answer)

    def _may_ask(self) -> bool:
        if not self._breaker.allows():
            return False
        if not self._guard.take():
            _log.warning("no summary by the model: its calls for this while are spent")
            return False
        return True

    def _failed(self, reason: str) -> None:
        was_open = self._breaker.is_open
        self._breaker.failed()
        _log.warning("no summary by the model: %s", reason)
        if self._breaker.is_open and not was_open:
            _log.warning("the model is asked for no summary for a while: too many failures in a row")

    def _is_short_enough(self, text: str, target_tokens: int, source_tokens: int) -> bool:
        limit = min(target_tokens, int(GREATEST_SHARE_OF_SOURCE * source_tokens))
        return bool(text) and self._counter.count(text) <= limit


def cleaned(answer: str) -> str:
    """A model's answer without its thoughts, without a code fence around all of it, without blanks around."""
    text = THOUGHTS.sub("", answer).strip()
    fenced = WHOLE_FENCE.match(text)
    return fenced[1].strip() if fenced else text
