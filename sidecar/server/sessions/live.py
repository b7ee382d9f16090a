"""One session while it is in use: caches, the epoch, the newest answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from sidecar.engine.guard.answer import Guard
from sidecar.engine.guard.continuity import Continuity
from sidecar.messages.contract import Dialect, Reading
from sidecar.messages.fence import OPENING_BYTES
from sidecar.server.sessions.results import Results
from sidecar.server.sessions.stored import StoredEntries
from sidecar.store.contract import SessionStore
from sidecar.store.stored import SessionHead, SessionRef
from sidecar.store.writes import SaveState, Write
from sidecar.tokens.calibration import Calibration
from sidecar.tokens.contract import TokenCounter
from sidecar.tokens.message_cost import message_tokens

if TYPE_CHECKING:
    from sidecar.protocol.base import FallbackFor
    from sidecar.server.sessions.transcript import HostTranscript, Shown
    from sidecar.store.search import SessionSearch

EPOCH = "epoch"
CALIBRATION = "calibration"
MEMORY = "memory"
"""Name of the value that holds what was injected into a session."""
IMPORT_STATE = "import"
"""How many messages a session has at the end of the import that is going on."""
RECALL_TOOLS = "context_search, or with context_expand by its messageId"
"""The tool with which the model reads what a stub stands for."""


def _passed_over(write: Write) -> None:
    """For values whose loss does no harm."""
    del write


class LiveSession:
    """What the sidecar holds in memory of a session; everything in it can be read anew from the store."""

    def __init__(
        self,
        store: SessionStore,
        ref: SessionRef,
        dialect: Dialect,
        counter: TokenCounter,
        searching: SessionSearch | None = None,
    ) -> None:
        self.store = store
        self.searching = searching or cast("SessionSearch", store)
        self.ref = ref
        self.dialect = dialect
        self.counter = counter
        self.calibration = Calibration(counter.name)
        self.head: SessionHead | None = None
        self.stored = StoredEntries(store, ref, dialect, self.cost)
        self.guard = Guard(dialect, self.cost, self.count, RECALL_TOOLS)
        self.results = Results()
        self.opened_ms = int(time.time() * 1000)
        self.transcript: HostTranscript | None = None
        """What the host's own list was when it last sent one."""
        self.shown: list[Shown] = []
        """Lists of the host with messages in front of the open turn that are not stored yet."""
        self.closed = 0
        """Up to this position everything belonged to earlier turns when the host last assembled."""
        self.sent: tuple[int, int] | None = None
        """Tokens by our count of the newest answer, and the place of its newest message."""
        self.answered: tuple[int, int] | None = None
        """The same, also once the provider has reported on the answer."""
        self.failure: FallbackFor | None = None
        """What went wrong where the engine failed in the newest answer and another one stands in."""
        self.stood_in: FallbackFor | None = None
        """The same for the newest piece of transcript that was handed over."""
        self.has_memory: bool | None = None
        """Whether memory was injected before this process had a source; `None` until that was asked."""
        self.gone = False
        """True once the session is deleted; whoever still works on it must leave nothing behind."""
        self.exempt = False
        """True for a session of which nothing is kept."""
        self._continuity: Continuity | None = None
        self._loaded = False
        self._epoch_kept: bytes | None = None
        self._epoch_on_its_way: bytes | None = None

    @property
    def factor(self) -> float:
        """What our counts are multiplied by; never below 1, since too low a count costs an answer."""
        return max(1.0, self.calibration.factor)

    def cost(self, reading: Reading) -> int:
        """Tokens of a message, overhead included, as far as the provider's reports tell."""
        return self._calibrated(message_tokens(reading, self.counter))

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return self._calibrated(self.counter.count(text))

    @property
    def message_count(self) -> int:
        """Messages that are stored; 0 where the store does not know the session."""
        return self.head.message_count if self.head else 0

    async def refresh(self) -> SessionHead | None:
        """The session's head as it is now; caches follow it."""
        if not self._loaded:
            self._loaded = True
            kept = await self.state(CALIBRATION)
            self.calibration = Calibration.from_bytes(self.counter.name, kept or b"")
        head = await self.store.session(self.ref)
        if self.head and (head is None or head.uid != self.head.uid):
            self._forget()
        elif self.head and head and head.revision != self.head.revision:
            self.closed = 0
        self.head = head
        if head:
            await self.stored.follow(head)
        return head

    async def state(self, name: str) -> bytes | None:
        """A value kept for this session, by this process or another one."""
        return await self.store.state(self.ref, name)

    async def save_state(self, name: str, value: bytes | None) -> None:
        """Keep a value; returns once it is durable."""
        if not (self.gone or self.exempt):
            await self.store.write(SaveState(self.ref, name, value))

    def save_soon(self, name: str, value: bytes | None, done: Callable[[Write], None] = _passed_over) -> None:
        """Keep a value without waiting for it."""
        if not (self.gone or self.exempt):
            self.store.submit(SaveState(self.ref, name, value), done)

    async def learn(self, model: str, reported: int) -> None:
        """Take in that the provider counted `reported` input tokens for the newest answer."""
        if self.sent is None:
            return
        before, (counted, _), self.sent = self.factor, self.sent, None
        plain = counted if before == 1 else self.calibration.uncalibrated(counted)
        self.calibration.observe(model, plain, reported)
        if self.factor != before:
            self.stored.forget()
            self.transcript = None
        await self.save_state(CALIBRATION, self.calibration.to_bytes())

    async def continuity(self) -> Continuity:
        """The epoch of the session's answers; another process on the same store may have raised it."""
        kept = await self.store.state(self.ref, EPOCH)
        if self._continuity is None or kept not in (self._epoch_kept, self._epoch_on_its_way):
            self._continuity = Continuity(kept, self._is_same_appended)
            self._epoch_kept = kept
        return self._continuity

    async def keep_epoch(self, continuity: Continuity, *, begun: bool) -> None:
        """Make the epoch survive a restart; a new one is durable before its first answer goes out."""
        value = continuity.encoded()
        if begun:
            await self.save_state(EPOCH, value)
            self._epoch_kept = value
        elif self._epoch_on_its_way is None and value != self._epoch_kept:
            self._epoch_on_its_way = value
            self.save_soon(EPOCH, value, self._keep_arrived)

    def _keep_arrived(self, write: Write) -> None:
        """An epoch that was not kept costs one needless new epoch after a restart, no more."""
        if write.error is None:
            self._epoch_kept = self._epoch_on_its_way
        self._epoch_on_its_way = None

    def _is_same_appended(self, before: bytes, now: bytes) -> bool:
        if OPENING_BYTES not in now:
            return False
        from sidecar.messages.appended import is_same_appended

        return is_same_appended(self.dialect, before, now)

    def _calibrated(self, tokens: int) -> int:
        return tokens if self.factor == 1 else self.calibration.tokens(tokens)

    def _forget(self) -> None:
        self.stored.forget()
        self.transcript = None
        self.shown = []
        self.closed = 0
        self.sent = self.answered = None
        self._continuity = None
