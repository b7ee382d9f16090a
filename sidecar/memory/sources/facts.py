"""Memory of what users have said once to hold from then on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from sidecar.engine.signature import digest
from sidecar.memory.contract import Fragment, MemoryRequest, SourceHost
from sidecar.memory.sources.agent_remarks import NEWEST, AgentRemarks, agent_remarks
from sidecar.messages.text import fold
from sidecar.recall.instructions import instruction, standing
from sidecar.recall.recollection import day

if TYPE_CHECKING:
    from sidecar.store.buffer import BufferStore

KINDS = ("instruction", "preference", "correction")
"""By rank, as `sidecar.recall.instructions` ranks them."""
STEP = 10
"""Priority by which each kind stands below the one before."""
BUFFER = "memory.facts"
"""Name under which is kept what was forgotten."""


LONGEST_BLOCK = 600
"""Characters of a paragraph beyond which it is taken for a pasted one."""
_CODE = re.compile(r"(?ms)^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)")
_BLANK_LINES = re.compile(r"\r?\n[ \t]*(?:\r?\n[ \t]*)*\r?\n|\u2029")
_PASTED = re.compile(r"[\s]*[>|#]|(?: {4}|\t)")
_QUOTED = re.compile(r'"[^"\n]*"|“[^”\n]*”|«[^»\n]*»|「[^」\n]*」|`[^`\n]*`')


class FactsSettings(BaseModel):
    """Settings of the source `facts`."""

    model_config = ConfigDict(extra="forbid")

    tokenBudget: int | None = Field(default=None, ge=1)
    """Most tokens of this source in one compilation."""
    maxFragments: int = Field(default=20, ge=1, le=200)
    """Most facts that are offered."""
    priority: int = Field(default=80, ge=0, le=100)
    """Of standing instructions; preferences and corrections follow below."""
    corrections: bool = True
    """Offer corrections too."""


class Fact(NamedTuple):
    """Something that a user wants to hold."""

    fact_id: str
    """Stands for its words, wherever they were said."""
    rank: int
    text: str
    session_id: str
    position: int
    turn_id: str
    timestamp_ms: int

    @property
    def kind(self) -> str:
        """`instruction`, `preference` or `correction`."""
        return KINDS[self.rank]


class FactsSource:
    """Reads standing instructions, preferences, corrections out of the agent's other sessions, by rules."""

    name = "facts"
    injection_points = ("session-start",)

    def __init__(self, host: SourceHost) -> None:
        self._host = host
        self._settings = host.settings(FactsSettings)

    async def get_context(self, request: MemoryRequest) -> list[Fragment]:
        """See `MemorySource`."""
        remarks = agent_remarks(self._host, request, roles=("user",))
        known = await facts(remarks, self._host.buffer(BUFFER), request.agent_id)
        if not self._settings.corrections:
            known = [fact for fact in known if fact.kind != "correction"]
        return [self._fragment(fact) for fact in known[: self._settings.maxFragments]]

    def _fragment(self, fact: Fact) -> Fragment:
        return Fragment(
            content=fact.text,
            priority=max(self._settings.priority - STEP * fact.rank, 0),
            id=fact.fact_id,
            label=f"The user's {fact.kind} ({fact.session_id}, {fact.turn_id}, {day(fact.timestamp_ms)})",
            synthesize=False,
        )


async def facts(remarks: AgentRemarks, forgotten: BufferStore, agent_id: str) -> list[Fact]:
    """What holds for an agent: instructions, then preferences, then corrections, the newest first.

    What was said several times is there once, with where it was said last.
    """
    found: dict[str, Fact] = {}
    for each in await standing(remarks, NEWEST):
        whence = remarks.whence(each.remark.position)
        if whence is None:
            continue
        remark = each.remark
        own = instruction(remark._replace(text=own_words(remark.text)))
        if own is None:
            continue
        fact_id = digest(fold(own.text).casefold())[:12]
        fact = Fact(
            fact_id,
            own.rank,
            own.text,
            whence.ref.session_id,
            whence.position,
            remark.turn_id,
            remark.timestamp_ms,
        )
        if fact_id not in found or found[fact_id].timestamp_ms < fact.timestamp_ms:
            found[fact_id] = fact
    held = [fact for fact in found.values() if not await forgotten.has_injected_id(agent_id, fact.fact_id)]
    return sorted(held, key=lambda fact: (fact.rank, -fact.timestamp_ms, fact.fact_id))


def own_words(text: str) -> str:
    """What of a message its user certainly says: no code, quotation, pasted document or block of lines."""
    kept: list[str] = []
    for block in _BLANK_LINES.split(_CODE.sub("\n\n", text)):
        if len(block) <= LONGEST_BLOCK and "\n" not in block.strip("\n") and not _PASTED.match(block):
            kept.append(_QUOTED.sub(" ", block))
        if block.rstrip().endswith((":", "：")):  # what follows is somebody else's
            break
    return "\n".join(kept)


async def forget(forgotten: BufferStore, agent_id: str, fact_id: str) -> bool:
    """Never offer a fact again; false where it was forgotten before."""
    return await forgotten.add_injected_id(agent_id, fact_id)


async def remember(forgotten: BufferStore, agent_id: str, fact_id: str) -> None:
    """Offer a fact again that was forgotten."""
    await forgotten.clear_injected_ids(agent_id, [fact_id])
