"""What is kept of a session about its injected memory, and the rules by which that changes.

Session-start memory is compiled once and frozen until a compaction. Memory for a message is fixed for its
turn and prompt; its items count as injected when the turn ends, until compaction or eviction takes the turn
out of the context. All of that goes for each view of the session by itself.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct, field, json, structs

VERSION = 1


class Item(Struct, frozen=True, array_like=True):
    """One fragment that was injected."""

    source: str
    id: str | None
    key: str
    tokens: int
    content: str


class Injection(Struct, array_like=True):
    """What was injected at one point."""

    turn: int
    """The turn's number; 0 for the start of the session."""
    prompt: str
    """Stands for the text of the user that it was compiled for."""
    name: str
    """Part of its mark."""
    body: str
    """The text without its fence; empty where there was nothing to inject."""
    items: list[Item]
    compiled_ms: int
    ended: bool = False
    """True once the turn has ended, so that its items count as injected."""
    view: str = ""
    """Id of the view that it was injected into; empty where the host has injected it by its own means."""

    @property
    def keys(self) -> list[str]:
        """Under which its items count as injected."""
        return [key_in(self.view, item.key) for item in self.items]


class MemoryRecord(Struct):
    """The injected memory of one session."""

    start: Injection | None = None
    turns: list[Injection] = field(default_factory=list[Injection])
    """By turn; the newest may not have ended yet."""
    version: int = VERSION

    def encoded(self) -> bytes:
        """The record as it is kept."""
        return json.encode(self)

    def of(self, view: str) -> list[Injection]:
        """What was injected into a view, by turn."""
        return [i for i in self.turns if i.view == view]

    def known_in(self, view: str) -> set[str]:
        """Keys of the items in a view's context."""
        injections = [*([self.start] if self.start else []), *(i for i in self.turns if i.view in (view, ""))]
        return {item.key for injection in injections for item in injection.items}

    def of_turn(self, turn: int, prompt: str, view: str = "") -> Injection | None:
        """What was injected for this prompt in this turn; what another view was given serves this one too."""
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
        """Take in that a turn is asked for: keys that count as injected now, and keys that no longer do.

        Earlier turns have ended. What was injected into the view for another prompt of this turn, or for a
        later one, was taken back by the host.
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
        """Take in that the newest turn has ended; the keys that count as injected now."""
        return [key for injection in self.turns for key in _end(injection)]

    def evict(self, in_context: Collection[int], current: int, view: str = "") -> list[str]:
        """Take in which turns an answer of a view holds; the keys that may be injected again."""
        held = {*in_context, current}
        gone = [i for i in self.turns if i.view in (view, "") and i.turn not in held]
        self.turns = [i for i in self.turns if i not in gone]
        return _free(gone, self.turns)

    def forget_views_but(self, views: Collection[str]) -> list[str]:
        """Take in which views are left; the keys that may be injected again."""
        gone = [i for i in self.turns if i.view and i.view not in views]
        self.turns = [i for i in self.turns if i not in gone]
        return _free(gone, self.turns)

    def compact(self, views: Collection[str] = ()) -> None:
        """Forget everything but what the open turn was given, and what is in other views than these."""
        self.start = None
        self.turns = [i for i in self.turns if not i.ended or (i.view and i.view not in views)]

    def withdraw(self, injection: Injection) -> None:
        """Take in that there was no room for a turn's memory: it may come again in another turn."""
        injection.body, injection.items = "", []


def key_in(view: str, key: str) -> str:
    """Under which an item counts as injected into a view."""
    return f"{view}:{key}" if view else key


def decoded(kept: bytes | None) -> MemoryRecord:
    """The record that was kept; an empty one where there is none."""
    return json.decode(kept, type=MemoryRecord) if kept else MemoryRecord()


def _end(injection: Injection) -> list[str]:
    """The keys of an injection that has not ended before."""
    if injection.ended:
        return []
    injection.ended = True
    return injection.keys


def _free(gone: Collection[Injection], left: Collection[Injection]) -> list[str]:
    """The keys that count as injected on account of turns that are gone alone."""
    kept = {key for injection in left for key in injection.keys}
    return [key for i in gone if i.ended for key in i.keys if key not in kept]
