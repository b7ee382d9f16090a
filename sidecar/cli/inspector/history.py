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
from sidecar.messages.contract import Mark
from sidecar.messages.fence import OPENING_BYTES, claimed_mark
from sidecar.protocol.assemble import CompositionPart, ContextDecision, Decision, InjectedItem
from sidecar.protocol.session import SummaryNode

LEGACY = "legacy"


class Run(NamedTuple):
    """Neighbouring messages of which the same became, for one reason."""

    first: int
    last: int
    """Positions from 1, both included."""
    tokens: int
    decision: Decision
    reason: str
    by: str | None
    """The ref of what stands for them in the context."""


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
    runs: Sequence[Run]
    """What became of the messages, oldest first."""
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
        self.summaries: dict[str, SummaryNode] = {}
        """Summaries that the engine stores, by their ids, also those that are not in force any more."""
        self.budget = budget
        self.engine = client.engine.id
        self._client = client
        self._tally = tally
        self._sizes: list[int] = []
        self._looked_up = set[str]()
        """Refs of summaries; not every engine stores them."""
        self._places: dict[str, int] = {}
        self._kept: dict[bytes, bytes] = {}
        """Messages of contexts: most turns send what the one before sent."""
        self._session = "inspected"

    async def extend(self, steps: Sequence[Step]) -> None:
        """Take in messages that follow the known ones."""
        for _, group in groupby(steps, key=lambda step: step.turn):
            turn = list(group)
            if self.engine != LEGACY:
                # In flight together: requests of one session take effect in order.
                await asyncio.gather(*map(self._tell, turn))
            places = enumerate((step.message_id for step in turn), len(self.steps) + 1)
            self._places |= {id: at for at, id in places if id is not None}
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
        bodies = [self._kept.setdefault(body, body) for body in answer.bodies]
        await self._remember_summaries(bodies)
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
                runs=self._runs(explained.decisions) if explained else (),
                injected=explained.injected if explained else (),
                refused=refused,
                milliseconds=milliseconds,
            )
        )

    def mark_of(self, body: bytes) -> Mark | None:
        """What a message of a context stands for, if the sidecar wrote it."""
        reading = self._tally.read(body)
        return reading.mark or claimed_mark(reading.text)

    def place(self, message_id: str) -> int | None:
        """The position of a message, from 1."""
        return self._places.get(message_id)

    async def _remember_summaries(self, bodies: Sequence[bytes]) -> None:
        marks = filter(None, (self.mark_of(body) for body in bodies if OPENING_BYTES in body))
        new = {mark.ref for mark in marks if mark.kind == "summary"} - self._looked_up
        if new:
            self._looked_up |= new
            self.summaries |= {node.node_id: node for node in await self._client.summaries(self._session)}

    def _runs(self, decisions: Sequence[ContextDecision]) -> list[Run]:
        """Decisions in few: those of a long conversation are thousands, for each of its turns."""
        runs: list[Run] = []
        first = last = tokens = 0
        fate: tuple[Decision, str, str | None] | None = None
        for one in decisions:
            place = self._places.get(one.message_id)
            if place is None:
                continue
            its_fate = one.decision, one.reason, one.by
            if its_fate == fate and place == last + 1:
                last, tokens = place, tokens + one.tokens
                continue
            if fate is not None:
                runs.append(Run(first, last, tokens, *fate))
            first, last, tokens, fate = place, place, one.tokens, its_fate
        return runs if fate is None else [*runs, Run(first, last, tokens, *fate)]

    async def _compact_if_needed(self, budget: int) -> None:
        if self.engine == LEGACY or not self._client.engine.owns_compaction:
            return
        check = await self._client.preflight(self._session, budget)
        if check.action == "compact":
            await self._client.compact(self._session, budget)
