"""Search by meaning: passages close to a question, fused with the results of the word search."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Collection, Hashable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from msgspec import structs

from sidecar.semantic.index import is_understood
from sidecar.semantic.vectors import Near
from sidecar.store.search import (
    SearchableStore,
    SearchHit,
    SearchQuery,
    SearchResult,
    SessionsHit,
    SessionsResult,
)
from sidecar.store.stored import SessionHead, SessionRef

if TYPE_CHECKING:
    from sidecar.semantic.index import SemanticIndex

K = TypeVar("K", bound=Hashable)

SMOOTHING = 60
"""The constant k of reciprocal rank fusion: a rank contributes 1 / (k + rank)."""
MEANING = 1.0
"""Weight of the ranking by meaning, relative to the ranking by words."""
FADING = 0.97
"""Factor from one score to the next after the last hit by words."""


def fused(
    words: Sequence[tuple[K, float]], meaning: Sequence[K], limit: int, *, unjudged: Collection[K] = ()
) -> list[tuple[K, float]]:
    """Fuse two rankings: at most `limit` keys, best first, with the scores of the word search in order.

    An `unjudged` key, which has no vector, gets the same rank by meaning as by words. Reciprocal ranks decide
    only the order; they do not show how much better one hit is than the next, as the scores do.
    """
    shares: dict[K, float] = {}
    for place, (key, _) in enumerate(words, 1):
        shares[key] = (1 + MEANING * (key in unjudged)) / (SMOOTHING + place)
    for place, key in enumerate(meaning, 1):
        shares[key] = shares.get(key, 0.0) + MEANING / (SMOOTHING + place)
    scores = sorted((score for _, score in words), reverse=True) or [1.0]
    order = sorted(shares, key=lambda key: -shares[key])[:limit]
    while len(scores) < len(order):
        scores.append(scores[-1] * FADING)
    return list(zip(order, scores, strict=False))


_T = TypeVar("_T")

FLOOR = 0.08
"""Minimum similarity of a message to the question."""
MOST_MEANT = 60
"""Maximum number of messages found by meaning for one question."""
MOST_QUESTION = 640
"""Maximum length of a question in characters; longer texts, such as instructions, have no single meaning."""
MOST_SESSIONS = 64
"""Number of most recently changed sessions searched by meaning; the word search covers all sessions."""
PATIENCE_S = 2.0
"""Time limit of the search by meaning in seconds; afterwards the word search alone answers. A query may set a
lower limit."""
_USERS = {"user": 1, "assistant": 2}


class FusedSearch:
    """`SessionSearch` over a store and the vectors of its messages."""

    def __init__(self, store: SearchableStore, index: SemanticIndex) -> None:
        self._store = store
        self._index = index

    async def search(self, ref: SessionRef, query: SearchQuery) -> SearchResult:
        """See `SessionSearch`."""
        if not _means_something(query):
            return await self._store.search(ref, query)
        until = time.monotonic() + min(PATIENCE_S, query.most_s)
        found = await self._store.search(ref, _wider(query))
        meant = await _in_time(self._meant(ref, query), until)
        if not meant:
            return found._replace(hits=found.hits[: query.limit], next_cursor=None)
        words = [(hit.position, hit.score) for hit in found.hits]
        unjudged = {position for position, _ in words if not self._index.has(ref, position)}
        best = fused(words, [near.position for near in meant], query.limit, unjudged=unjudged)
        return SearchResult([SearchHit(*hit) for hit in best], found.complete)

    async def search_sessions(
        self, namespace: str, query: SearchQuery, *, without: Collection[SessionRef] = ()
    ) -> SessionsResult:
        """See `SessionSearch`."""
        if not _means_something(query):
            return await self._store.search_sessions(namespace, query, without=without)
        until = time.monotonic() + min(PATIENCE_S, query.most_s)
        found = await self._store.search_sessions(namespace, _wider(query), without=without)
        words = [((hit.ref, hit.position), hit.score) for hit in found.hits]
        meant = await _in_time(
            self._meant_anywhere(namespace, query, without, {key for key, _ in words}), until
        )
        if not meant:
            return found._replace(hits=found.hits[: query.limit])
        unjudged = {key for key, _ in words if not self._index.has(*key)}
        best = fused(words, meant, query.limit, unjudged=unjudged)
        return SessionsResult([SessionsHit(*key, score) for key, score in best], found.complete)

    async def _meant(self, ref: SessionRef, query: SearchQuery) -> list[Near]:
        users = frozenset(_USERS[role] for role in query.roles)
        return await self._index.nearest(
            ref,
            query.text,
            limit=MOST_MEANT,
            floor=FLOOR,
            first=query.first,
            last=query.last,
            users=users,
        )

    async def _meant_anywhere(
        self,
        namespace: str,
        query: SearchQuery,
        without: Collection[SessionRef],
        by_words: Collection[tuple[SessionRef, int]],
    ) -> list[tuple[SessionRef, int]]:
        """The messages closest to the question, best first; a message shared by sessions is returned once.

        It is attributed to the session in which the word search found it, else to the oldest. Messages shared
        with a session of `without` are left out.
        """
        heads, _ = await self._store.sessions(namespace, MOST_SESSIONS, None)
        hidden = set(without)
        for ref in hidden:
            await self._index.look_up(ref)
        shared: dict[tuple[int, int], tuple[SessionRef, Near]] = {}
        for head in sorted(heads, key=lambda head: head.uid):
            if head.ref in hidden or not _may_read(head, query):
                continue
            for near in await self._meant(head.ref, query):
                if any(self._index.says(ref, near.position, near.key) for ref in hidden):
                    continue
                known = shared.get((near.position, near.key))
                if known is None or ((head.ref, near.position) in by_words):
                    shared[near.position, near.key] = head.ref, near
        best = sorted(shared.values(), key=lambda each: -each[1].similarity)[:MOST_MEANT]
        return [(ref, near.position) for ref, near in best]


def _wider(query: SearchQuery) -> SearchQuery:
    """The query with a limit that is high enough for fusing two rankings."""
    return structs.replace(query, limit=max(query.limit, MOST_MEANT))


def _means_something(query: SearchQuery) -> bool:
    """Whether to search by meaning: not if the query has filters that the vectors do not support."""
    plain = query.tool is None and query.turn_id is None and query.since_ms is None and query.until_ms is None
    return (
        query.meaning
        and query.kind == "words"
        and query.limit > 0
        and query.cursor is None
        and plain
        and all(role in _USERS for role in query.roles)
        and len(query.text) <= MOST_QUESTION
        and is_understood(query.text)
    )


def _may_read(head: SessionHead, query: SearchQuery) -> bool:
    return query.agent_id is None or head.agent_id in (None, query.agent_id)


async def _in_time(meant: Awaitable[list[_T]], until: float) -> list[_T]:
    """The messages found by meaning; none if that takes too long, for example while the model loads."""
    with suppress(TimeoutError):
        return await asyncio.wait_for(meant, max(until - time.monotonic(), 0.001))
    return []
