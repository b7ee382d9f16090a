"""What an agent may read in all of its sessions, as recall reads one session.

Positions are those of one long history: each session that is met gets a stretch of its own, within which its
messages keep their distance. What `sidecar.recall` says of neighbours thus holds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from sidecar.messages.contract import MessageError
from sidecar.messages.dialects import dialect
from sidecar.messages.marks import Marks
from sidecar.messages.text import plain_text
from sidecar.recall.retrieval import Remark
from sidecar.store.search import SearchHit, SearchQuery, SearchResult

if TYPE_CHECKING:
    from sidecar.memory.contract import MemoryRequest, SourceHost
    from sidecar.messages.contract import Dialect
    from sidecar.store.search import SearchableStore, SessionSearch
    from sidecar.store.stored import SessionHead, SessionRef, StoredMessage

STRETCH = 1 << 40
"""Positions that are set apart for one session."""
NEWEST = 1 << 62
"""A position behind all others."""


class Whence(NamedTuple):
    """Where a remark was made."""

    ref: SessionRef
    position: int


class AgentRemarks:
    """`RemarkSource` over all sessions that an agent may read but those `without`."""

    def __init__(
        self,
        store: SearchableStore,
        namespace: str,
        agent_id: str,
        *,
        without: Collection[SessionRef] = (),
        roles: tuple[str, ...] = (),
        searching: SessionSearch | None = None,
    ) -> None:
        self._store = store
        self._searching = searching or store
        self._namespace = namespace
        self._agent_id = agent_id
        self._without = without
        self._roles = roles
        self._stretches: dict[SessionRef, int] = {}
        self._refs: list[SessionRef] = []

    async def search(self, query: SearchQuery) -> SearchResult:
        """See `RemarkSource`."""
        roles = query.roles or self._roles
        asked = structs.replace(query, last=None, agent_id=self._agent_id, roles=roles, for_answer=True)
        found = await self._searching.search_sessions(self._namespace, asked, without=self._without)
        hits = [SearchHit(self._base(hit.ref) + hit.position, hit.score) for hit in found.hits]
        return SearchResult(hits, found.complete)

    async def remarks(self, positions: Sequence[int]) -> dict[int, Remark]:
        """See `RemarkSource`."""
        wanted: dict[SessionRef, list[int]] = {}
        for position in positions:
            whence = self.whence(position)
            if whence is not None:
                wanted.setdefault(whence.ref, []).append(whence.position)
        found: dict[int, Remark] = {}
        for ref, inside in wanted.items():
            head = await self._store.session(ref)
            if head is not None:
                found |= await self._read(head, inside)
        return {position: found[position] for position in positions if position in found}

    def whence(self, position: int) -> Whence | None:
        """Which message of which session stands at a position."""
        stretch, inside = divmod(position, STRETCH)
        return Whence(self._refs[stretch], inside) if inside and 0 <= stretch < len(self._refs) else None

    def _base(self, ref: SessionRef) -> int:
        if ref not in self._stretches:
            self._stretches[ref] = len(self._refs) * STRETCH
            self._refs.append(ref)
        return self._stretches[ref]

    async def _read(self, head: SessionHead, positions: Sequence[int]) -> dict[int, Remark]:
        reads = dialect(head.message_format).marked(Marks(self._store.secrets, head.root))
        base = self._base(head.ref)
        found: dict[int, Remark] = {}
        for position in positions:
            for message in await self._store.messages(head.ref, position, position):
                remark = _remark(reads, message, base + position)
                if remark is not None and (not self._roles or remark.role in self._roles):
                    found[remark.position] = remark
        return found


def agent_remarks(host: SourceHost, request: MemoryRequest, *, roles: tuple[str, ...] = ()) -> AgentRemarks:
    """The other sessions of the agent that is asked for."""
    from sidecar.store.stored import SessionRef

    here = [SessionRef(host.namespace, request.session_id)] if request.session_id else []
    return AgentRemarks(
        host.store, host.namespace, request.agent_id, without=here, roles=roles, searching=host.searching
    )


def _remark(reads: Dialect, message: StoredMessage, position: int) -> Remark | None:
    """What a message says; nothing where it is a system message, a heartbeat or unreadable."""
    if message.heartbeat or message.role == "system":
        return None
    try:
        reading = reads.read(message.body)
    except MessageError:
        return None
    text = plain_text(reading)
    if not text:
        return None
    calls, results = bool(reading.calls), bool(reading.results)
    return Remark(position, message.turn_id, message.role, message.timestamp_ms, text, results, calls)
