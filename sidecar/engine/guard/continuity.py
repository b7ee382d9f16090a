"""The views of a session, and whether an answer extends the ones before it.

A view is a range of budgets that are near each other. Each has its own cut, so that a question with a small
budget takes nothing away from the answers under a large one. The context epoch stands for both: it rises
where another view answers, and where an answer does not extend the last one of its view.
"""

from __future__ import annotations

# `hashlib` would load OpenSSL, which costs more than all other imports of the first answer together.
from _blake2 import blake2b
from collections.abc import Callable, Sequence
from os import urandom

from msgspec import DecodeError, Struct, field, json

KEPT_VIEWS = 4
"""Views of a session that are kept, those that answered last."""
ANY_BUDGET = 0
"""In place of a budget where every budget is the same view."""


class ViewRecord(Struct, array_like=True):
    """One view as it is kept."""

    id: str
    budget: int
    """The budget that it was first planned for."""
    latest: int
    """The budget of its newest answer."""
    begun: int = 0
    """The epoch at which its answers began to extend each other; 0 before the first one."""
    count: int = 0
    """Messages of its newest answer."""
    chain: str = ""
    """Running hash over those messages."""
    signature: str = ""
    """Stands for everything else that must not change from answer to answer."""
    bare: bool = False
    """True where there was no room for the engine's addition to the system prompt."""

    def has(self, budget: int) -> bool:
        """Whether the budget belongs to this view."""
        small, large = sorted((self.budget, budget))
        return 4 * small >= 3 * large


class ContinuityRecord(Struct, array_like=True):
    """What is kept of a session so that its epoch and its views survive a restart."""

    epoch: int = 0
    name: str = ""
    """Tells the session from one of the same id that was deleted."""
    views: list[ViewRecord] = field(default_factory=list[ViewRecord])
    """The one that answered last comes first."""
    names: set[str] = field(default_factory=set[str])
    """Names under which engines keep values for each view."""


class _FirstEdition(Struct, array_like=True):
    """What was kept before there were views."""

    epoch: int
    count: int
    chain: str
    signature: str
    name: str = ""


class Continuity:
    """Epoch and views of one session.

    `is_same` is asked about messages whose bytes differ: whether the second one is the first with text at its
    end that the answer before had apart.
    """

    def __init__(self, record: bytes | None, is_same: Callable[[bytes, bytes], bool] | None = None) -> None:
        self.record = _decoded(record)
        self._is_same = is_same
        self._last: Sequence[bytes] | None = None
        """The newest answer, of the view that comes first; of the others the hash is enough."""
        self._appended = False
        """True where a message has changed within its epoch, so that the hash begins anew."""
        self._hash = blake2b(digest_size=12)

    @property
    def newest(self) -> ViewRecord | None:
        """The view that answered last."""
        return next((view for view in self.record.views if view.begun), None)

    def of(self, budget: int) -> ViewRecord | None:
        """The view that a budget belongs to; of several, the one that was used last."""
        return next((view for view in self.record.views if view.has(budget)), None)

    def fresh(self, budget: int) -> ViewRecord:
        """A view of a budget that belongs to none; it is not kept yet."""
        return ViewRecord(urandom(4).hex(), budget, budget)

    def add(self, view: ViewRecord) -> list[ViewRecord]:
        """Keep a view that has not answered yet; returns those that had to go for it."""
        views = self.record.views
        views.insert(1 if views else 0, view)
        return self._without_oldest()

    def advance(self, view: ViewRecord, messages: Sequence[bytes], signature: str) -> bool:
        """Take in the next answer of a view; returns whether a new epoch began."""
        self._appended = False
        views, continues = self.record.views, self._continues(view, messages, signature)
        is_first = bool(views) and views[0].id == view.id
        begins = not (continues and is_first)
        last = self._last if is_first and continues and not self._appended else None
        added = messages if last is None else messages[len(last) :]
        if last is None:
            self._hash = blake2b(digest_size=12)
        if last is None or added:
            _update(self._hash, added)
            view.count, view.chain = len(messages), self._hash.hexdigest()
            self._last = messages
        self.record.epoch += begins
        if not continues:
            view.begun = self.record.epoch
        view.signature = signature
        self.record.views = [view, *(other for other in views if other.id != view.id)]
        return begins

    def rise_above(self, epoch: int) -> None:
        """Begin an epoch above that one with the next answer, unless the session is further already."""
        if epoch and self.record.epoch <= epoch:
            self.record.epoch = epoch
            for view in self.record.views:
                view.begun = 0

    def begins(self, view: ViewRecord, messages: Sequence[bytes], signature: str) -> bool:
        """Whether this answer would not extend the last one of its view."""
        return not self._continues(view, messages, signature)

    def drop_oldest(self) -> list[ViewRecord]:
        """Keep no more views than are to be kept; returns the others."""
        return self._without_oldest()

    def encoded(self) -> bytes:
        """The record as it is kept."""
        return json.encode(self.record)

    def _without_oldest(self) -> list[ViewRecord]:
        gone = self.record.views[KEPT_VIEWS:]
        del self.record.views[KEPT_VIEWS:]
        return gone

    def _continues(self, view: ViewRecord, messages: Sequence[bytes], signature: str) -> bool:
        if not view.begun or signature != view.signature or len(messages) < view.count:
            return False
        if self._last is None or self.record.views[0].id != view.id:
            known = blake2b(digest_size=12)
            _update(known, messages[: view.count])
            return known.hexdigest() == view.chain
        return all(
            a is b or a == b or self._has_got_more(a, b) for a, b in zip(self._last, messages, strict=False)
        )

    def _has_got_more(self, before: bytes, now: bytes) -> bool:
        self._appended = self._is_same is not None and self._is_same(before, now)
        return self._appended


def _decoded(value: bytes | None) -> ContinuityRecord:
    if value is None:
        return ContinuityRecord(name=urandom(6).hex())
    try:
        return json.decode(value, type=ContinuityRecord)
    except DecodeError:
        first = json.decode(value, type=_FirstEdition)
        return ContinuityRecord(first.epoch, first.name)


def _update(digest: blake2b, messages: Sequence[bytes]) -> None:
    for message in messages:
        digest.update(len(message).to_bytes(8, "big"))
        digest.update(message)
