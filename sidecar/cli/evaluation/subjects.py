"""What an evaluation puts its questions to: a sidecar, or something simpler to compare it with."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from sidecar.cli.evaluation.questions import RecordedMessage
from sidecar.client.errors import InvalidParams
from sidecar.client.sidecar_client import SidecarClient
from sidecar.protocol.times import parse_rfc3339

SEARCH_TOOL = "context_search"
LOOKED_S = 0.02
"""Seconds after which it is looked again whether vectors are made."""


class Context(NamedTuple):
    """What the model would see."""

    bodies: Sequence[bytes]
    """The messages, each as JSON."""
    before: str = ""
    """What is added to the system prompt."""
    behind: str = ""
    """What is appended to the user's message."""


class FoundPassage(NamedTuple):
    """One hit of a search."""

    message_id: str | None
    text: str


class Subject(Protocol):
    """Something that is told messages, and says what the model should see of them."""

    async def tell(self, session_id: str, message: RecordedMessage) -> None:
        """Take in the next message."""
        ...

    async def context(self, session_id: str, budget: int, prompt: str | None) -> Context:
        """What the model sees in at most `budget` tokens.

        Raises:
            ContextOverflow: not even the smallest valid context fits.
        """
        ...

    async def search(self, session_id: str, question: str, limit: int) -> Sequence[FoundPassage] | None:
        """The passages that fit best, best first; `None` where there is no search."""
        ...

    async def settle(self) -> None:
        """Be ready for questions about everything that was told."""
        ...


class _Hits(msgspec.Struct, frozen=True):
    """The part of the tool's structured content that is looked at."""

    class Hit(msgspec.Struct, frozen=True, rename="camel"):
        """One hit."""

        message_id: str | None = None
        text: str = ""

    hits: Sequence[Hit] = ()


VECTORS_S = 600.0
"""Longest wait for vectors of what was told: they are made behind everything else."""
_WAITING = re.compile(r"by words and meaning, (\d+) messages wait")


class VectorsMissing(Exception):
    """Raised where search by meaning is to be measured, and cannot be used."""


class SidecarSubject:
    """An engine behind a sidecar, over the wire; with `by_meaning` one that is to have all vectors."""

    def __init__(self, client: SidecarClient, *, by_meaning: bool = False) -> None:
        self._client = client
        self._by_meaning = by_meaning
        self._settled = False
        """Whether nothing was told since the last question."""
        self._searchable: dict[str, bool] = {}

    async def tell(self, session_id: str, message: RecordedMessage) -> None:
        """Ingest a message, with its time where that is RFC 3339."""
        self._settled = False
        await self._client.ingest(
            session_id,
            message.encoded(),
            message_id=message.name,
            timestamp=message.ts if message.ts and _is_time(message.ts) else None,
        )

    async def context(self, session_id: str, budget: int, prompt: str | None) -> Context:
        """See `Subject`."""
        answer = await self._client.assemble(session_id, budget, prompt=prompt)
        return Context(answer.bodies, answer.system_prompt_addition or "", answer.user_message_append or "")

    async def search(self, session_id: str, question: str, limit: int) -> Sequence[FoundPassage] | None:
        """See `Subject`."""
        if session_id not in self._searchable:
            tools = await self._client.tools(session_id)
            self._searchable[session_id] = any(tool.name == SEARCH_TOOL for tool in tools)
        if not self._searchable[session_id]:
            return None
        arguments = {"mode": "relevant", "query": question, "limit": limit}
        content = (await self._client.call_tool(session_id, SEARCH_TOOL, arguments)).structured_content
        hits = msgspec.json.decode(bytes(content), type=_Hits).hits if content else ()
        return [FoundPassage(hit.message_id, hit.text) for hit in hits]

    async def settle(self) -> None:
        """Wait for vectors of everything that was told, where search by meaning is to be measured.

        Raises:
            VectorsMissing: the sidecar searches by words only, or takes too long.
        """
        if not self._by_meaning or self._settled:
            return
        deadline = time.monotonic() + VECTORS_S
        while True:
            checks = (await self._client.doctor()).checks
            told = next(check.message for check in checks if check.name == "search")
            waiting = _WAITING.match(told)
            if waiting is None:
                raise VectorsMissing(f"search by meaning cannot be measured: {told}")
            if waiting[1] == "0":
                self._settled = True
                return
            if time.monotonic() > deadline:
                raise VectorsMissing(f"{waiting[1]} messages still wait for their vectors")
            await asyncio.sleep(LOOKED_S)


def _is_time(text: str) -> bool:
    try:
        parse_rfc3339(text)
    except (ValueError, InvalidParams):
        return False
    return True
