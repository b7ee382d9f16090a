"""The views of a session, and whether an answer extends the previous one.

A view is a range of nearby budgets. Each view has its own cut, so that a request with a small budget does not
shrink answers with a large one. The context epoch covers both: it rises when another view answers, and when
an answer does not extend the last one of its view.
"""

from __future__ import annotations

# `hashlib` would load OpenSSL, which costs more than all other imports before the first answer combined.
from _blake2 import blake2b
from collections.abc import Callable, Sequence
from os import urandom

from msgspec import DecodeError, Struct, field, json

KEPT_VIEWS = 4
"""Maximum views kept per session; those that answered last."""
ANY_BUDGET = 0
"""Used in place of a budget if all budgets share one view."""


class ViewRecord(Struct, array_like=True):
    """One view, as stored."""

    id: str
    budget: int
    """The budget that it was first planned for."""
    latest: int
    """The budget of its newest answer."""
    begun: int = 0
    """The epoch since which its answers extend each other; 0 before the first answer."""
    count: int = 0
    """Number of messages in its newest answer."""
    chain: str = ""
    """Running hash over those messages."""
    signature: str = ""
    """Hash of everything else that must not change between answers."""
    bare: bool = False
    """True if there was no room for the engine's addition to the system prompt."""

    def has(self, budget: int) -> bool:
        """Whether the budget belongs to this view: the smaller is at least 3/4 of the larger."""
        small, large = sorted((self.budget, budget))
        return 4 * small >= 3 * large


class ContinuityRecord(Struct, array_like=True):
    """The stored record of a session's epoch and views, which survives a restart."""

    epoch: int = 0
    name: str = ""
    """Distinguishes the session from a deleted one with the same id."""
    views: list[ViewRecord] = field(default_factory=list[ViewRecord])
    """The view that answered last comes first."""
    names: set[str] = field(default_factory=set[str])
    """Names of the state values that engines store per view."""


class _FirstEdition(Struct, array_like=True):
    """The record's format before views existed."""

    epoch: int
    count: int
    chain: str
    signature: str
    name: str = ""


class Continuity:
    """Epoch and views of one session.

    `is_same` compares messages whose bytes differ: it returns whether the second is the first one with text
    appended that the previous answer carried separately.
    """

    def __init__(self, record: bytes | None, is_same: Callable[[bytes, bytes], bool] | None = None) -> None:
        self.record = _decoded(record)
        self._is_same = is_same
        self._last: Sequence[bytes] | None = None
        """The newest answer of the first view; for other views the hash suffices."""
        self._appended = False
        """True if a message changed within its epoch, so the hash must be recomputed."""
        self._hash = blake2b(digest_size=12)

    @property
    def newest(self) -> ViewRecord | None:
        """The view that answered last."""
        return next((view for view in self.record.views if view.begun), None)

    def of(self, budget: int) -> ViewRecord | None:
        """The view that a budget belongs to, or `None`; if there are several, the one used last."""
        return next((view for view in self.record.views if view.has(budget)), None)

    def fresh(self, budget: int) -> ViewRecord:
        """A new view, not stored yet, for a budget that belongs to none."""
        return ViewRecord(urandom(4).hex(), budget, budget)

    def add(self, view: ViewRecord) -> list[ViewRecord]:
        """Add a view that has not answered yet. Returns the evicted views."""
        views = self.record.views
        views.insert(1 if views else 0, view)
        return self._without_oldest()

    def advance(self, view: ViewRecord, messages: Sequence[bytes], signature: str) -> bool:
        """Record the next answer of a view. Returns whether a new epoch began."""
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
        """Evict excess views. Returns the evicted ones."""
        return self._without_oldest()

    def encoded(self) -> bytes:
        """The record, encoded for storage."""
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
