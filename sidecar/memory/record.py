"""The record of a session's injected memory, and the rules by which it changes.

Session-start memory is compiled once and frozen until a compaction. Memory for a message is fixed for its
turn and prompt; its items count as injected when the turn ends, until compaction or eviction removes the turn
from the context. Each view of the session is tracked separately.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct, field, json, structs

VERSION = 1


class Item(Struct, frozen=True, array_like=True):
    """An injected fragment."""

    source: str
    id: str | None
    key: str
    tokens: int
    content: str


class Injection(Struct, array_like=True):
    """The memory injected at one point."""

    turn: int
    """The number of the turn; 0 for the start of the session."""
    prompt: str
    """Identifies the user's text that it was compiled for."""
    name: str
    """Part of its mark."""
    body: str
    """The text without its fence; empty if there was nothing to inject."""
    items: list[Item]
    compiled_ms: int
    ended: bool = False
    """True once the turn has ended, so that its items count as injected."""
    view: str = ""
    """Id of the view that it was injected into; empty if the host has injected it itself."""

    @property
    def keys(self) -> list[str]:
        """The keys under which its items count as injected."""
        return [key_in(self.view, item.key) for item in self.items]


class MemoryRecord(Struct):
    """The injected memory of one session."""

    start: Injection | None = None
    turns: list[Injection] = field(default_factory=list[Injection])
    """By turn; the newest may not have ended yet."""
    version: int = VERSION

    def encoded(self) -> bytes:
        """The record in its stored form."""
        return json.encode(self)

    def of(self, view: str) -> list[Injection]:
        """The injections into a view, by turn."""
        return [i for i in self.turns if i.view == view]

    def known_in(self, view: str) -> set[str]:
        """Keys of the items in a view's context."""
        injections = [*([self.start] if self.start else []), *(i for i in self.turns if i.view in (view, ""))]
        return {item.key for injection in injections for item in injection.items}

    def of_turn(self, turn: int, prompt: str, view: str = "") -> Injection | None:
        """The injection for this prompt in this turn, or another view's if its items are new to this one."""
        given = [i for i in self.turns if i.turn == turn and i.prompt == prompt and i.turn > 0]
        own = next((i for i in given if i.view == view), None)
        known = self.known_in(view)
        for other in given if own is None else ():
            if known.isdisjoint(item.key for item in other.items):
                own = structs.replace(other, view=view)
                self.turns.append(own)
                break
        return own

    def begin(self, turn: int, prompt: str, view: str = "") -> tuple[list[str], list[str]]:
        """Record a request for a turn; returns the keys that start and that stop counting as injected.

        Earlier turns have ended. Injections into the view for another prompt of this turn, or for a later
        turn, have been withdrawn by the host.
        """
        earlier = [i for i in self.turns if i.turn < turn]
        ended = [key for i in earlier for key in _end(i)]
        for i in earlier:
            i.items = [structs.replace(item, content="") for item in i.items]
        later = [i for i in self.turns if i.view in (view, "") and i.turn >= turn]
        taken_back = [i for i in later if i.turn > turn or i.prompt != prompt]
        self.turns = [i for i in self.turns if i not in taken_back]
        return ended, _free(taken_back, self.turns)

    def end(self) -> list[str]:
        """Record that the newest turn has ended; returns the keys that now count as injected."""
        return [key for injection in self.turns for key in _end(injection)]

    def evict(self, in_context: Collection[int], current: int, view: str = "") -> list[str]:
        """Record the turns in an answer of a view; returns the keys that may be injected again."""
        held = {*in_context, current}
        gone = [i for i in self.turns if i.view in (view, "") and i.turn not in held]
        self.turns = [i for i in self.turns if i not in gone]
        return _free(gone, self.turns)

    def forget_views_but(self, views: Collection[str]) -> list[str]:
        """Drop all other views; returns the keys that may be injected again."""
        gone = [i for i in self.turns if i.view and i.view not in views]
        self.turns = [i for i in self.turns if i not in gone]
        return _free(gone, self.turns)

    def compact(self, views: Collection[str] = ()) -> None:
        """Forget everything except the memory of the open turn, and ended turns of views not in `views`."""
        self.start = None
        self.turns = [i for i in self.turns if not i.ended or (i.view and i.view not in views)]

    def withdraw(self, injection: Injection) -> None:
        """Record that there was no room for an injection; its items may be injected in another turn."""
        injection.body, injection.items = "", []


def key_in(view: str, key: str) -> str:
    """The key under which an item counts as injected into a view."""
    return f"{view}:{key}" if view else key


def decoded(kept: bytes | None) -> MemoryRecord:
    """The stored record, or an empty one."""
    return json.decode(kept, type=MemoryRecord) if kept else MemoryRecord()


def _end(injection: Injection) -> list[str]:
    """End an injection; returns its keys, or none if it had ended before."""
    if injection.ended:
        return []
    injection.ended = True
    return injection.keys


def _free(gone: Collection[Injection], left: Collection[Injection]) -> list[str]:
    """The keys that count as injected only because of the removed injections."""
    kept = {key for injection in left for key in injection.keys}
    return [key for i in gone if i.ended for key in i.keys if key not in kept]
