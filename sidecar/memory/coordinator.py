"""Compiles what memory sources say into one text: asks, leaves out, ranks, trims, merges, frames."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from sidecar.memory.asking import Answer, ask
from sidecar.memory.contract import Fragment, MemoryRequest, MemorySource
from sidecar.memory.framing import FREE_FRAME, frame_tokens, framed, joined
from sidecar.memory.ranking import Verdict, candidates, choose, item_key, without_last
from sidecar.memory.synthesis import SHARE, Complete, Merge, Synthesiser

IsKnown = Callable[[str], Awaitable[bool]]
"""Whether an item of that key was injected before."""


class Asked(NamedTuple):
    """A source with the budget of its own, if it has one."""

    source: MemorySource
    token_budget: int | None = None


class Compilation(NamedTuple):
    """One compilation, with all that led to it."""

    body: str
    """What is to be injected, without its fence; empty where nothing is."""
    synthesized: bool
    verdicts: list[Verdict]
    """What became of each fragment that was new, highest rank first."""
    answers: list[Answer]
    known: list[tuple[str, Fragment]]
    """Fragments, with their source, that had been injected before."""

    def keys(self) -> list[str]:
        """The keys of the fragments that are included."""
        return [verdict.candidate.key for verdict in self.verdicts if verdict.included]


class Coordinator:
    """Stands in front of all sources; keeps nothing itself."""

    def __init__(self, *, source_timeout_ms: int, synthesiser: Synthesiser | None = None) -> None:
        self._source_timeout_ms = source_timeout_ms
        self._synthesiser = synthesiser or Synthesiser()

    async def ask(self, sources: Sequence[Asked], request: MemoryRequest) -> list[Answer]:
        """An answer of each source, after the time limit for sources at the latest."""
        return await ask([asked.source for asked in sources], request, self._source_timeout_ms)

    async def compile(
        self,
        sources: Sequence[Asked],
        answers: Sequence[Answer],
        request: MemoryRequest,
        count: Callable[[str], int],
        is_known: IsKnown,
        *,
        complete: Complete | None = None,
        complete_seconds: float = 120.0,
    ) -> Compilation:
        """What is to be injected of the `answers`, within `request.token_budget` tokens by `count`.

        `complete` asks a model to merge the fragments that allow it; `None` joins them as they are.
        """
        new, known = await _sorted_out(answers, is_known)
        caps = {order: a.token_budget for order, a in enumerate(sources) if a.token_budget is not None}
        found = [
            candidate
            for order, (answer, fragments) in enumerate(zip(answers, new, strict=True))
            for candidate in candidates(answer.source, order, fragments, count)
        ]
        budget = request.token_budget
        verdicts = choose(found, budget, caps, frame_tokens(budget, count) if found else 0)
        body = _body(verdicts)
        # Texts that are joined may count more than each by itself.
        while body and budget >= FREE_FRAME and count(framed(request.injection_point, body)) > budget:
            verdicts = without_last(verdicts)
            body = _body(verdicts)
        synthesized = False
        if complete is not None and body:
            merged = await self._merged(complete, verdicts, request, count, complete_seconds)
            if merged:
                body, synthesized = merged, True
        return Compilation(body, synthesized, verdicts, list(answers), known)

    async def _merged(
        self,
        complete: Complete,
        verdicts: Sequence[Verdict],
        request: MemoryRequest,
        count: Callable[[str], int],
        seconds: float,
    ) -> str | None:
        """The text with the fragments that allow it rewritten by a model; `None` where that fails."""
        included = [verdict.candidate for verdict in verdicts if verdict.included]
        free = [c.text for c in included if c.fragment.synthesize]
        if not free:
            return None
        budget = request.token_budget
        merge = Merge(free, request.prompt, int(budget * SHARE))
        text = await self._synthesiser.merged(complete, merge, count, seconds)
        if text is None:
            return None
        body = joined([text, *(c.text for c in included if not c.fragment.synthesize)])
        fits = budget < FREE_FRAME or count(framed(request.injection_point, body)) <= budget
        return body if fits else None


def _body(verdicts: Sequence[Verdict]) -> str:
    texts = [verdict.candidate.text for verdict in verdicts if verdict.included]
    return joined(texts) if texts else ""


async def _sorted_out(
    answers: Sequence[Answer], is_known: IsKnown
) -> tuple[list[list[Fragment]], list[tuple[str, Fragment]]]:
    """The new fragments of each answer, and those that were injected before."""
    new: list[list[Fragment]] = []
    known: list[tuple[str, Fragment]] = []
    for answer in answers:
        fresh: list[Fragment] = []
        for fragment in answer.fragments:
            if await is_known(item_key(answer.source, fragment)):
                known.append((answer.source, fragment))
            else:
                fresh.append(fragment)
        new.append(fresh)
    return new, known
