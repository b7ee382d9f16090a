"""Retention: erases sessions that nobody uses any more, by age or size of the store, in short steps."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from sidecar.messages.dialects import dialect_of_family
from sidecar.messages.marks import issued
from sidecar.private_files import create, part_of
from sidecar.server.configuration.settings import RetentionSettings
from sidecar.store.contract import SessionStore
from sidecar.store.erasure import Expire, Expiry, is_set_aside
from sidecar.store.errors import StoreError
from sidecar.store.lines import Owner, message_line, rfc3339
from sidecar.store.stored import SessionHead, SessionRef, StoredMessage

if TYPE_CHECKING:
    from sidecar.rpc.peer import Peer


_PAGE = 200
"""Messages that are read in one go."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_NAME = 40
"""Characters of a session's id that its file is named after."""

STEP, STEP_BYTES = 500, 2 << 20
"""Messages, and about how many bytes of them, that are erased in one step: 10 to 30 ms of the writer."""
_JUDGED_BY = 20
"""Messages by which the size of the others is judged."""
_DAY_MS = 86_400_000
_JUMP_MS = _DAY_MS if hasattr(time, "CLOCK_BOOTTIME") else 30 * _DAY_MS
"""How far the clock may run ahead of a steady one; some of those stand still while the machine sleeps."""
_FAR_MS = 365 * _DAY_MS
"""How long a store may have been left alone before a clock that says so is doubted."""
_AT_ONCE = 32
"""Sessions that are chosen in one look at the store."""
FIRST_AFTER_S = 60.0
"""Seconds after the handshake until the first round, at the latest."""
_QUIET_S = 0.02
"""So long no request may have been worked on before a step."""

_log = logging.getLogger(__name__)


class Archive:
    """A folder of archived sessions; `pause` is awaited before every step."""

    def __init__(self, store: SessionStore, folder: Path, pause: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._folder = folder
        self._pause = pause

    async def write(self, head: SessionHead) -> Path | None:
        """The file that now has all messages of a session, synced; `None` where the session has changed.

        Raises:
            OSError: it cannot be written.
            StoreError: the store cannot serve.
        """
        file = self._folder / _file_name(head)
        part = part_of(file)
        owner = Owner(head.ref, head.message_format, head.agent_id, head.session_key)
        reader = dialect_of_family(head.message_format, self._store.secrets, head.root)

        def lines_of(page: Sequence[StoredMessage]) -> list[bytes]:
            return [message_line(owner, m, issued=issued(reader, m.body)) for m in page]

        written = 0
        with create(part) as lines:
            try:
                for first in range(1, head.message_count + 1, _PAGE):
                    await self._pause()
                    messages = await self._store.messages(head.ref, first, first + _PAGE - 1)
                    await asyncio.to_thread(lines.writelines, lines_of(messages))
                    written += len(messages)
                lines.flush()
                await asyncio.to_thread(os.fsync, lines.fileno())
                if written != head.message_count or await self._store.session(head.ref) != head:
                    return None
                part.rename(file)
            finally:
                part.unlink(missing_ok=True)
        return file


def _file_name(head: SessionHead) -> str:
    """A name that tells people what it is; an id is no path, so only letters and digits of it are used."""
    name = _UNSAFE.sub("-", head.ref.session_id)[:_NAME].strip("-") or "session"
    day = rfc3339(head.updated_ms)[:19].replace(":", "").replace("-", "")
    return f"{day}Z-{name}-{head.uid}.jsonl"


class Pruned(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A session that was erased, or would be."""

    namespace: str
    session_id: str
    messages: int
    updated_ms: int
    reason: Literal["age", "size"]
    archive: str | None = None
    """The file that it was written to."""


class ClockAhead(Exception):
    """Raised when the clock says a time that nothing else bears out; the text tells both."""


class Clock:
    """The time of day, as far as it can be believed: what looks old may only look so to a wrong clock."""

    def __init__(self, newest_ms: int | None) -> None:
        """`newest_ms` is when the store was last written to before this process, `None` for never."""
        self._newest_ms = newest_ms
        self._began_ms, self._began_s = _now_ms(), _steady_s()

    @staticmethod
    async def of(store: SessionStore) -> Clock:
        """The clock, with the newest change in the store to compare it with."""
        newest, _ = await store.sessions(None, 1, None)
        return Clock(max((head.updated_ms for head in newest), default=None))

    def now_ms(self) -> int:
        """The time, in milliseconds since 1970.

        Raises:
            ClockAhead: it has jumped while the process ran, or is far from everything in the store.
        """
        now, ran_ms = _now_ms(), int((_steady_s() - self._began_s) * 1000)
        if now - self._began_ms > ran_ms + _JUMP_MS:
            raise ClockAhead(
                f"the clock has jumped to {rfc3339(now)}, from {rfc3339(self._began_ms + ran_ms)}"
            )
        if self._newest_ms is not None and now - self._newest_ms > ran_ms + _FAR_MS:
            newest = rfc3339(self._newest_ms)
            raise ClockAhead(f"the clock says {rfc3339(now)}, but the store was last changed at {newest}")
        return now


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _steady_s() -> float:
    """A clock that nobody sets; it goes on while the machine sleeps, where the platform has such a one."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


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
        clock: Clock | None = None,
    ) -> None:
        """Without a `clock` to judge it, the time of day is believed."""
        self._store = store
        self._rules = rules
        self._in_use = in_use
        self._pause = pause
        self._told = told
        self._clock = clock
        self._archive = Archive(store, rules.archive_dir, pause) if rules.archive_dir else None
        self._bytes_a_message: float | None = None
        self._left: set[SessionRef] = set()
        """Sessions that stay in this round."""

    async def run(self, *, dry: bool = False) -> list[Pruned]:
        """Erase what the rules say; `dry` tells it and changes nothing.

        Raises:
            StoreError: the store cannot serve.
            OSError: an archive cannot be written; its session stays.
            ClockAhead: the time of day cannot be believed; nothing is erased.
        """
        pruned: list[Pruned] = []
        now = _now_ms() if self._clock is None else self._clock.now_ms()
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
        expiry: Expiry = await self._store.write(Expire(head, most=await self._step_of(head)))
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
            expiry: Expiry = await self._store.write(Expire(left, most=await self._step_of(left)))
            left = expiry.rest

    async def _step_of(self, head: SessionHead) -> int:
        """How many of the newest messages of a session may be erased in one step."""
        last = head.message_count
        newest = await self._store.messages(head.ref, last - _JUDGED_BY + 1, last)
        size = sum(len(message.body) for message in newest) // max(len(newest), 1)
        return max(1, min(STEP, STEP_BYTES // max(size, 1)))


def _reason(head: SessionHead, oldest: int | None, excess: int) -> Literal["age", "size"] | None:
    if oldest is not None and head.updated_ms < oldest:
        return "age"
    return "size" if excess > 0 else None


class Retention:
    """Rounds of retention, until it is closed."""

    def __init__(
        self,
        store: SessionStore,
        rules: RetentionSettings,
        peer: Peer,
        *,
        in_use: Callable[[SessionRef], bool],
        forget: Callable[[Pruned], Awaitable[None]],
    ) -> None:
        """Sessions `in_use` stay; `forget` erases what is kept of a session outside of the store."""
        self._store = store
        self._rules = rules
        self._peer = peer
        self._in_use = in_use
        self._forget = forget
        self._task: asyncio.Task[None] | None = None
        self.problem: str | None = None
        """Why the last round was skipped."""

    def begin(self) -> None:
        """Begin with the first round, a while from now."""
        self._task = asyncio.ensure_future(self._rounds())

    async def close(self) -> None:
        """End, between two steps; what is half erased is gone on with by the next process."""
        while self._task is not None and not self._task.done():
            self._task.cancel()  # a write that has begun puts it off
            await asyncio.wait([self._task], timeout=_QUIET_S)

    async def _rounds(self) -> None:
        rules = self._rules
        # What the store says of the time is read before this process writes the time of its own clock to it.
        clock = await Clock.of(self._store)
        await asyncio.sleep(min(rules.every_s, FIRST_AFTER_S))
        while True:
            pruning = Pruning(
                self._store,
                rules,
                in_use=self._in_use,
                pause=self._quiet,
                told=self._forget,
                clock=clock,
            )
            try:
                if await self._store.elected("retention", rules.every_s + FIRST_AFTER_S):
                    await pruning.run()
                self.problem = None
            except ClockAhead as error:
                self.problem = str(error)
                _log.warning("retention is skipped, and nothing is erased: %s", error)
            except (StoreError, OSError) as error:
                _log.warning("retention could not be applied: %s", error)
            except Exception:
                _log.exception("retention could not be applied")
            await asyncio.sleep(rules.every_s)

    async def _quiet(self) -> None:
        """Return once nothing has been worked on for a moment."""
        while True:
            idle = not self._peer.in_flight
            await asyncio.sleep(_QUIET_S)
            if idle and not self._peer.in_flight:
                return
