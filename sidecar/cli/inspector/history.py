"""What an engine makes of a conversation, turn by turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import accumulate, groupby
from typing import NamedTuple

from sidecar.cli.lab.judge import common_prefix
from sidecar.cli.lab.recording import Prompt, Step, Tally, plain_prompts
from sidecar.cli.options import Prices
from sidecar.client.errors import ContextOverflow
from sidecar.client.sidecar_client import SidecarClient
from sidecar.protocol.assemble import CompositionPart, ContextDecision, InjectedItem

LEGACY = "legacy"


class Turn(NamedTuple):
    """One turn and the context that the engine assembled at its end."""

    number: int
    first: int
    last: int
    """Positions of its messages in the conversation, from 0, both included."""
    history_tokens: int
    """Tokens of everything said so far."""
    sent_tokens: int
    cached_tokens: int
    """Tokens with which the context before began."""
    epoch: int
    bodies: Sequence[bytes]
    """The messages of the context."""
    addition: str
    """What belongs at the end of the host's system prompt."""
    composition: Sequence[CompositionPart]
    decisions: Sequence[ContextDecision]
    injected: Sequence[InjectedItem]
    refused: int | None
    """The budget that would have been needed, if this one was refused."""
    milliseconds: float


class Costs(NamedTuple):
    """Dollars for all turns so far."""

    engine: float
    everything: float
    window: float
    """With the newest messages that fit the budget, chosen before each call."""


class History:
    """Plays a conversation to a sidecar of its own, and keeps what came of each turn.

    A conversation may grow: `extend` takes the messages that are new, and assembles the open turn again.
    """

    def __init__(self, client: SidecarClient, tally: Tally, budget: int) -> None:
        self.steps: list[Step] = []
        self.turns: list[Turn] = []
        self.budget = budget
        self.engine = client.engine.id
        self._client = client
        self._tally = tally
        self._sizes: list[int] = []
        self._session = "inspected"

    async def extend(self, steps: Sequence[Step]) -> None:
        """Take in messages that follow the known ones."""
        for _, group in groupby(steps, key=lambda step: step.turn):
            turn = list(group)
            if self.engine != LEGACY:
                # In flight together: requests of one session take effect in order.
                await asyncio.gather(*map(self._tell, turn))
            self.steps += turn
            self._sizes += [self._tally.tokens(step.message) for step in turn]
            await self._assemble()

    async def _tell(self, step: Step) -> None:
        await self._client.ingest(
            self._session, step.message, message_id=step.message_id, timestamp=step.timestamp
        )

    def costs(self, prices: Prices) -> list[Costs]:
        """What the turns cost, one call of the model each, summed up from the first to each one."""
        counts = [turn.last + 1 for turn in self.turns]
        ways = (
            [Prompt(turn.sent_tokens, turn.cached_tokens) for turn in self.turns],
            plain_prompts(self._sizes, counts, None),
            plain_prompts(self._sizes, counts, self.budget),
        )
        summed = [accumulate(prices.of(*prompt) for prompt in way) for way in ways]
        return [Costs(*sums) for sums in zip(*summed, strict=True)]

    async def _assemble(self) -> None:
        number = self.steps[-1].turn
        if self.turns and self.turns[-1].number == number:
            self.turns.pop()
        first = self.turns[-1].last + 1 if self.turns else 0
        told = [step.message for step in self.steps] if self.engine == LEGACY else None
        began = time.perf_counter()
        refused, budget = None, self.budget
        try:
            await self._compact_if_needed(budget)
            answer = await self._client.assemble(self._session, budget, told)
        except ContextOverflow as error:
            refused = budget = error.required
            answer = await self._client.assemble(self._session, budget, told)
        milliseconds = 1000 * (time.perf_counter() - began)
        bodies = answer.bodies
        before = list(self.turns[-1].bodies) if self.turns else []
        explained = None
        if self.engine != LEGACY:
            explained = await self._client.explain(self._session, result_id=answer.result_id)
        self.turns.append(
            Turn(
                number=number,
                first=first,
                last=len(self.steps) - 1,
                history_tokens=sum(self._sizes),
                sent_tokens=self._tally.total(bodies, answer.system_prompt_addition),
                cached_tokens=self._tally.total(bodies[: common_prefix(before, bodies)]),
                epoch=answer.context_epoch,
                bodies=bodies,
                addition=answer.system_prompt_addition or "",
                composition=answer.composition,
                decisions=explained.decisions if explained else (),
                injected=explained.injected if explained else (),
                refused=refused,
                milliseconds=milliseconds,
            )
        )

    async def _compact_if_needed(self, budget: int) -> None:
        if self.engine == LEGACY or not self._client.engine.owns_compaction:
            return
        check = await self._client.preflight(self._session, budget)
        if check.action == "compact":
            await self._client.compact(self._session, budget)
