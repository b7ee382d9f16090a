"""A session in use: its state in the store, its newest answers, and how tokens are counted."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from sidecar.engine.guard.answer import Guard
from sidecar.engine.guard.continuity import Continuity, ViewRecord
from sidecar.engine.guard.decisions import Record
from sidecar.engine.guard.stubs import Stubs
from sidecar.messages.contract import Dialect, Reading
from sidecar.messages.fence import OPENING_BYTES
from sidecar.messages.marks import Marks
from sidecar.server.sessions.timeline import ENTRY_OVERHEAD, SessionTimeline, StoredEntries
from sidecar.store.contract import SessionStore
from sidecar.store.stored import LARGEST_VALUE, LONGEST_NAME, SessionHead, SessionRef, SessionSnapshot
from sidecar.store.writes import DERIVED, SaveState, Write
from sidecar.tokens.calibration import Calibration
from sidecar.tokens.contract import TokenCounter
from sidecar.tokens.message_cost import message_tokens

if TYPE_CHECKING:
    from sidecar.memory.contract import InjectionPoint
    from sidecar.memory.record import Injection
    from sidecar.protocol.base import FallbackFor
    from sidecar.server.sessions.host_list import HostTranscript, Shown
    from sidecar.store.search import SessionSearch


KEPT = 8
"""Answers of a session that can be explained, while there is room."""
BASES = 2
"""The newest of them, which deltas may build on; kept while the session is in use (spec: at least 2)."""
_DECISION = 400
"""Bytes of one decision, with its ids."""

_SNAPSHOT_S = 1.0
"""How long a request relies on the values that it has read at its start."""

BARE = 16_384
"""Bytes that a session takes of which nothing is cached, roughly."""
VIEW_STATES = "view."
"""Begins the names of values of one view."""
EPOCH = "epoch"
"""Name of the value that holds the epoch and the views of a session."""
STUBS = "stubs"
FRAME = "frame"
"""Names of values of each view: which results stay replaced, and what its newest answer was made of."""
CALIBRATION = "calibration"
MEMORY = "memory"
"""Name of the value that holds what was injected into a session."""
PINS = "pins"
"""Name of the value that holds what is pinned in a session."""
IMPORT_STATE = "import"
"""How many messages a session has at the end of the import that is going on."""
RECALL_TOOLS = "context_search, or with context_expand by its messageId"
"""The tool with which the model reads what a stub stands for."""


class Result(NamedTuple):
    """An answer that was given."""

    result_id: str
    messages: Sequence[bytes] | None
    """What a delta builds on; `None` once newer answers have taken its place."""
    turn_id: str
    record: Record
    injections: Sequence[tuple[InjectionPoint, Injection]]
    """Memory that the answer holds, or that goes with it."""
    size: int
    """Bytes of the messages."""


class Results:
    """Remembers the answers of one session for a while."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Result] = OrderedDict()
        self.timeline: SessionTimeline | None = None
        """What the newest answer was chosen from."""

    def __len__(self) -> int:
        return len(self._kept)

    def add(
        self,
        result_id: str,
        messages: Sequence[bytes],
        turn_id: str,
        record: Record,
        timeline: SessionTimeline,
        injections: Sequence[tuple[InjectionPoint, Injection]] = (),
    ) -> None:
        """Remember an answer under its new id."""
        self.timeline = timeline
        kept = self._kept
        kept[result_id] = Result(result_id, messages, turn_id, record, injections, sum(map(len, messages)))
        if len(kept) > KEPT:
            kept.popitem(last=False)
        for older in list(kept.values())[:-BASES]:
            if older.messages is not None:
                kept[older.result_id] = older._replace(messages=None, size=0)

    def get(self, result_id: str) -> Result | None:
        """The answer of that id, while it is remembered."""
        return self._kept.get(result_id)

    @property
    def weight(self) -> int:
        """Memory that the answers take, in bytes, roughly."""
        decisions = sum(len(each.record.sent) + len(each.record.left_out) for each in self._kept.values())
        text = sum(each.size for each in self._kept.values())
        entries = self.timeline.live_count * ENTRY_OVERHEAD if self.timeline is not None else 0
        return 2 * text + entries + decisions * _DECISION

    def forget(self, *, all_but: int = 0) -> None:
        """Let go of all answers but the newest `all_but`."""
        while len(self._kept) > all_but:
            self._kept.popitem(last=False)
        if not self._kept:
            self.timeline = None

    def newest_of(self, turn_id: str | None) -> Result | None:
        """The newest answer, of that turn where one is named."""
        for result in reversed(self._kept.values()):
            if turn_id is None or result.turn_id == turn_id:
                return result
        return None


class Edit(NamedTuple):
    """One change of a list of messages, in positions of the previous list."""

    start: int
    delete_count: int
    messages: Sequence[bytes]


def edits(previous: Sequence[bytes], current: Sequence[bytes]) -> list[Edit]:
    """How to come from one list to the other: ascending edits, none where they are equal."""
    shorter = min(len(previous), len(current))
    start = 0
    while start < shorter and previous[start] == current[start]:
        start += 1
    end = 0
    while end < shorter - start and previous[-1 - end] == current[-1 - end]:
        end += 1
    removed = len(previous) - start - end
    added = current[start : len(current) - end]
    return [Edit(start, removed, added)] if removed or added else []


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
        self.marks = Marks(store.secrets, ref.root)
        """Makes and knows what is ours in the session."""
        self.dialect = dialect.marked(self.marks)
        self.list_dialect = dialect.marked(self.marks, transcript=True)
        """Reads the messages of the host's own lists."""
        self.counter = counter
        self.calibration = Calibration(counter.name)
        self.head: SessionHead | None = None
        self.user: str | None = None
        """The agent that uses the session, also while nothing of it is stored."""
        self.stored = StoredEntries(store, ref, self.dialect, self.cost)
        self.guard = Guard(self.dialect, self.cost, self.count, RECALL_TOOLS)
        self.results = Results()
        self.opened_ms = int(time.time() * 1000)
        self.transcript: HostTranscript | None = None
        """What the host's own list was when it last sent one."""
        self.shown: list[Shown] = []
        """Lists of the host with messages in front of the open turn that are not stored yet."""
        self.closed = 0
        """Up to this position everything belonged to earlier turns when the host last assembled."""
        self.stubs: dict[str, Stubs] = {}
        """Results that stay replaced from answer to answer, by the view."""
        self.own_choice: str | None = None
        """The view of the newest answer where its engine, which knows of no views, made that alone."""
        self.restless = False
        """Whether such an engine leaves messages out while there is room: then it is not held to them."""
        self.sent: tuple[int, int] | None = None
        """Tokens by our count of the newest answer, and the place of its newest message."""
        self.answered: tuple[int, int] | None = None
        """The same, also once the provider has reported on the answer."""
        self.answered_view = ""
        """The view of that answer."""
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
        self._values: dict[str, bytes | None] = {}
        """Of the newest snapshot, with what was saved since; `None` for one that is too large to be in it."""
        self._values_read = float("-inf")
        self._saves = 0
        self._epoch_kept: bytes | None = None
        self._epoch_on_its_way: bytes | None = None
        self._epoch_lost = 0
        """The epoch of answers that held messages which the store has lost."""

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
    def owner(self) -> str | None:
        """The agent that the session belongs to."""
        return (self.head.agent_id if self.head else None) or self.user

    @property
    def is_bare(self) -> bool:
        """Whether nothing is stored of the session, nor held of what an agent has shown or was answered."""
        return self.head is None and self.transcript is None and not (self.shown or len(self.results))

    @property
    def message_count(self) -> int:
        """Messages that are stored; 0 where the store does not know the session."""
        return self.head.message_count if self.head else 0

    def stored_timeline(self) -> SessionTimeline:
        """What is stored of the session, without anything that a host shows beyond it."""
        return SessionTimeline(self.store, self.ref, self.stored, self.message_count)

    @property
    def weight(self) -> int:
        """Memory that the session takes, in bytes, roughly."""
        transcript = self.transcript.weight if self.transcript is not None else 0
        shown = max((each.size for each in self.shown), default=0)
        views = sum(stubs.weight for stubs in self.stubs.values())
        values = sum(map(len, filter(None, self._values.values())))
        return BARE + values + self.stored.weight + transcript + self.results.weight + shown + views

    def shrink(self, *, results: int) -> None:
        """Forget what can be read or computed again, and all answers but the newest `results`."""
        self.transcript = None
        self.stored.forget()
        self.results.forget(all_but=results)
        for stubs in self.stubs.values():
            stubs.forget_shown()
        self._values, self._values_read = {}, float("-inf")
        if not results and self._epoch_on_its_way is None:
            self._continuity = None

    async def refresh(self, snapshot: SessionSnapshot | None = None) -> SessionHead | None:
        """The session's head as it is now, or as it was in a snapshot just read; caches follow it."""
        if snapshot is None:
            snapshot = await self.read_snapshot(None)
        self._take_values(snapshot)
        if not self._loaded:
            self._loaded = True
            kept = await self.state(CALIBRATION)
            self.calibration = Calibration.from_bytes(self.counter.name, kept or b"")
        known, self.head = self.head, snapshot.head
        head = self.head
        if known and (head is None or (head.uid, head.created_ms) != (known.uid, known.created_ms)):
            self._forget()
        elif known and head and head.revision != known.revision:
            self.closed = 0
        elif known and head and await self._is_shorter(known):
            self._forget_lost()
        if head:
            self.marks.follow(head.root, head.first_edition)
            losses = self.stored.losses
            await self.stored.follow(head)
            if self.stored.losses != losses:
                self._forget_lost()
        return head

    async def read_snapshot(self, agent_id: str | None) -> SessionSnapshot:
        """What the store has of the session, no value older than this process has saved it."""
        while True:
            saves = self._saves
            snapshot = await self.store.snapshot(self.ref, agent_id)
            if saves == self._saves:
                return snapshot

    async def state(self, name: str) -> bytes | None:
        """A value kept for this session, by this process or another one."""
        if time.monotonic() - self._values_read > _SNAPSHOT_S:
            self._take_values(await self.read_snapshot(None))
        value = self._values.get(name)
        if value is None and (name in self._values or name.startswith(DERIVED) or len(name) > LONGEST_NAME):
            return await self.store.state(self.ref, name)
        return value

    def _take_values(self, snapshot: SessionSnapshot) -> None:
        self._values = dict(snapshot.values)
        self._values_read = time.monotonic()

    def _saved(self, name: str, value: bytes | None) -> None:
        self._saves += 1
        self._values.pop(name, None)
        if value is not None:
            self._values[name] = value if len(value) <= LARGEST_VALUE else None

    async def save_state(self, name: str, value: bytes | None) -> None:
        """Keep a value; returns once it is durable."""
        if not (self.gone or self.exempt):
            await self.store.write(SaveState(self.ref, name, value))
            self._saved(name, value)

    def save_soon(self, name: str, value: bytes | None, done: Callable[[Write], None] = _passed_over) -> None:
        """Keep a value without waiting for it."""
        if not (self.gone or self.exempt):
            self.store.submit(SaveState(self.ref, name, value), partial(self._saved_soon, done))

    def _saved_soon(self, done: Callable[[Write], None], write: SaveState) -> None:
        if write.error is None:
            self._saved(write.name, write.value)
        done(write)

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
        kept = await self.state(EPOCH)
        if self._continuity is None or kept not in (self._epoch_kept, self._epoch_on_its_way):
            self._continuity = Continuity(kept, self._is_same_appended)
            self._continuity.rise_above(self._epoch_lost)
            self._epoch_kept = kept
            self.own_choice = None
        return self._continuity

    @property
    def view_names(self) -> set[str]:
        """Names under which engines keep values for each view; none while nobody works on the session."""
        return self._continuity.record.names if self._continuity is not None else set()

    async def to_act_on(self, budget: int | None) -> list[tuple[ViewRecord, int]]:
        """The views that a request is about that answers nothing, each with its budget.

        That is the view of `budget`, which may be new, and the one that answered last: this comes first
        where the other one has never answered. None where there is neither.
        """
        continuity = await self.continuity()
        last = continuity.newest
        if budget is None:
            return [(last, last.latest)] if last else []
        view = continuity.of(budget)
        if view is None:
            view = continuity.fresh(budget)
            self.forget_views(continuity.add(view))
        if last is None or last is view:
            return [(view, budget)]
        both = [(view, budget), (last, min(budget, last.latest))]
        return both if view.begun else both[::-1]

    @staticmethod
    def view_key(view_id: str, name: str) -> str:
        """The name under which the store keeps a value of one view."""
        return f"{VIEW_STATES}{view_id}.{name}"

    def forget_views(self, gone: Iterable[ViewRecord]) -> None:
        """Let go of what was kept for views that are not kept any more."""
        for view in gone:
            self.stubs.pop(view.id, None)
            for name in (STUBS, FRAME, MEMORY, *self.view_names):
                self.save_soon(self.view_key(view.id, name), None)

    async def keep_epoch(self, continuity: Continuity, *, begun: bool) -> None:
        """Make epoch and views survive a restart; a new epoch is durable before its first answer goes out."""
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
        from sidecar.messages.identity import is_same_appended

        return is_same_appended(self.dialect, before, now)

    def _calibrated(self, tokens: int) -> int:
        return tokens if self.factor == 1 else self.calibration.tokens(tokens)

    async def _is_shorter(self, known: SessionHead) -> bool:
        """Whether the store has fewer messages than were known, although none was removed."""
        head = self.head
        if head is None or head.message_count >= known.message_count:
            return False
        # Of two reads at the same time the older one may be answered last.
        head = await self.store.session(self.ref)
        if head is None or (head.uid, head.revision) != (known.uid, known.revision):
            return False
        return head.message_count < known.message_count

    def _forget_lost(self) -> None:
        """Forget everything, because the store no longer has all that it had acknowledged."""
        import logging

        logging.getLogger(__name__).error(
            "the store has lost messages of a session, as after a restore or a failover to a server that was "
            "behind; the session goes on with what is stored"
        )
        if self._continuity is not None:
            self._epoch_lost = self._continuity.record.epoch
        user = self.user
        self._forget()
        self.user = user

    def _forget(self) -> None:
        self.stored.forget()
        self.transcript = None
        self.shown = []
        self.closed = 0
        self.sent = self.answered = self.user = None
        self.results = Results()
        self.stubs = {}
        self._continuity = None
