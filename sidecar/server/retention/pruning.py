"""One round of retention: sessions are chosen, archived where that is wanted, erased in short steps."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Literal

from msgspec import Struct

from sidecar.server.configuration.settings import RetentionSettings
from sidecar.server.retention.archiving import Archive
from sidecar.store.contract import SessionStore
from sidecar.store.expiring import Expire, Expiry, is_set_aside
from sidecar.store.stored import SessionHead, SessionRef

STEP = 500
"""Messages that are erased in one step: about 10 ms of the store's writer."""
_AT_ONCE = 32
"""Sessions that are chosen in one look at the store."""

_log = logging.getLogger(__name__)


class Pruned(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A session that was erased, or would be."""

    namespace: str
    session_id: str
    messages: int
    updated_ms: int
    reason: Literal["age", "size"]
    archive: str | None = None
    """The file that it was written to."""


async def _at_once() -> None:
    """For whom need not wait for a pause."""


class Pruning:
    """Applies the rules to a store; `pause` comes before every step, `in_use` names sessions to leave."""

    def __init__(
        self,
        store: SessionStore,
        rules: RetentionSettings,
        *,
        in_use: Callable[[SessionRef], bool] = lambda _: False,
        pause: Callable[[], Awaitable[None]] = _at_once,
        told: Callable[[Pruned], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._rules = rules
        self._in_use = in_use
        self._pause = pause
        self._told = told
        self._archive = Archive(store, rules.archive_dir, pause) if rules.archive_dir else None
        self._bytes_a_message: float | None = None
        self._left: set[SessionRef] = set()
        """Sessions that stay in this round."""

    async def run(self, *, dry: bool = False) -> list[Pruned]:
        """Erase what the rules say; `dry` tells it and changes nothing.

        Raises:
            StoreError: the store cannot serve.
            OSError: an archive cannot be written; its session stays.
        """
        pruned: list[Pruned] = []
        now = time.time_ns() // 1_000_000
        youngest = now - self._rules.min_idle_ms + 1
        oldest = None if self._rules.max_age_ms is None else now - self._rules.max_age_ms
        excess = await self._excess()
        while True:
            await self._pause()
            limit = _AT_ONCE + len(self._left)
            heads = await self._store.idle_sessions(youngest, limit)
            fresh = [head for head in heads if head.ref not in self._left]
            if not fresh:
                return pruned
            for head in fresh:
                if is_set_aside(head.ref):
                    if dry:
                        self._left.add(head.ref)
                    else:
                        await self._finish(head)
                    continue
                reason = _reason(head, oldest, excess)
                if reason is None:
                    return pruned
                done = None if self._in_use(head.ref) else await self._prune(head, reason, dry=dry)
                if done is None or dry:
                    self._left.add(head.ref)
                if done is not None:
                    pruned.append(done)
                    if self._told is not None and not dry:
                        await self._told(done)
                    if excess > 0:
                        excess = excess - await self._share_of(head) if dry else await self._excess()

    async def _excess(self) -> int:
        limit = self._rules.max_bytes
        return 0 if limit is None else await self._store.used_bytes() - limit

    async def _share_of(self, head: SessionHead) -> int:
        """About how many bytes would be free without a session: all messages are taken for equally long."""
        if self._bytes_a_message is None:
            heads = await self._store.idle_sessions(1 << 62, 1 << 31)
            messages = sum(each.message_count for each in heads)
            self._bytes_a_message = await self._store.used_bytes() / max(messages, 1)
        return int(self._bytes_a_message * head.message_count)

    async def _prune(self, head: SessionHead, reason: Literal["age", "size"], *, dry: bool) -> Pruned | None:
        ref = head.ref
        file = None
        if self._archive is not None and not dry:
            file = await self._archive.write(head)
            if file is None:
                return None
        archive = None if file is None else str(file)
        told = Pruned(ref.namespace, ref.session_id, head.message_count, head.updated_ms, reason, archive)
        if dry:
            return told
        await self._pause()
        expiry: Expiry = await self._store.write(Expire(head, most=STEP))
        if expiry.outcome != "erased":
            if file is not None and expiry.outcome == "changed":
                file.unlink(missing_ok=True)
            return None
        if expiry.rest is not None:
            await self._finish(expiry.rest)
        _log.info("session %r was erased by retention (%s)", ref.session_id, reason)
        return told

    async def _finish(self, rest: SessionHead) -> None:
        """Erase what a session that is set aside still has."""
        left: SessionHead | None = rest
        while left is not None:
            await self._pause()
            expiry: Expiry = await self._store.write(Expire(left, most=STEP))
            left = expiry.rest


def _reason(head: SessionHead, oldest: int | None, excess: int) -> Literal["age", "size"] | None:
    if oldest is not None and head.updated_ms < oldest:
        return "age"
    return "size" if excess > 0 else None
