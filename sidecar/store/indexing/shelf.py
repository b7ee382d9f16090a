"""A stretch of one session's messages with the places at which terms occur."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from math import log2
from typing import NamedTuple, Protocol

from sidecar.store.indexing.facets import Narrowing

MOST_WORDS = 400
"""Words with a certain part that are looked for at most."""


class Places(NamedTuple):
    """Where a term occurs: ordinals that rise, and how often it does in each (255 at most)."""

    ordinals: Sequence[int]
    counts: Sequence[int]
    """Empty where it occurs once everywhere."""


NOWHERE = Places((), ())


class PlaceFinder(Protocol):
    """Where a term occurs, message by message."""

    def times(self, ordinal: int) -> int:
        """How often it occurs in a message, 0 where it does not."""
        ...

    def backwards(self) -> Iterator[int]:
        """The ordinals, from the last one on."""
        ...


class ListedPlaces:
    """`PlaceFinder` over places that are listed."""

    def __init__(self, places: Places) -> None:
        self._ordinals, self._counts = places

    def times(self, ordinal: int) -> int:
        """See `PlaceFinder`."""
        index = bisect_left(self._ordinals, ordinal)
        if index == len(self._ordinals) or self._ordinals[index] != ordinal:
            return 0
        return self._counts[index] if self._counts else 1

    def backwards(self) -> Iterator[int]:
        """See `PlaceFinder`."""
        return reversed(self._ordinals)


class Shelf(Protocol):
    """Messages in order, numbered from 0; `first` is the position of the one with ordinal 0."""

    first: int
    count: int

    def places(self, term: str) -> Places:
        """Where a term occurs."""
        ...

    def finder(self, term: str) -> PlaceFinder:
        """Where a term occurs, for a look at a few messages."""
        ...

    def frequency(self, term: str) -> int:
        """In how many messages a term occurs; does not read where, if they are many."""
        ...

    def lengths(self) -> Sequence[int]:
        """The length code of every message, see `length_code`."""
        ...

    def total_length(self) -> int:
        """The sum of the lengths that the codes stand for."""
        ...

    def stamps(self, low: int, high: int) -> Sequence[int]:
        """The time stamps of the messages with ordinals from `low` up to before `high`."""
        ...

    def time_span(self) -> tuple[int, int]:
        """Time stamps that none is before, and none behind."""
        ...

    def words(self, part: str, *, opens: bool, closes: bool) -> tuple[list[str], bool]:
        """Indexed words with this part in them: at the start if `opens`, at the end if `closes`.

        With them whether these are all, or more were left out.
        """
        ...


class View(NamedTuple):
    """The part of a shelf that is searched: ordinals from `low` up to before `high`."""

    shelf: Shelf
    low: int
    high: int
    ranges: tuple[range, ...] = ()
    """Where there are any, only messages with these ordinals are found."""

    def places(self, term: str) -> Places:
        """Where a term occurs in the part."""
        found = self.shelf.places(term)
        ordinals, counts = found
        if self.low == 0 and self.high >= self.shelf.count:
            return found
        start, stop = bisect_left(ordinals, self.low), bisect_left(ordinals, self.high)
        return Places(ordinals[start:stop], counts[start:stop])

    def finder(self, term: str) -> PlaceFinder:
        """The same, for a look at a few messages of the part."""
        if self.low == 0 and self.high >= self.shelf.count:
            return self.shelf.finder(term)
        return ListedPlaces(self.places(term))

    def frequency(self, term: str) -> int:
        """In how many messages of the part a term occurs."""
        if self.low == 0 and self.high >= self.shelf.count:
            return self.shelf.frequency(term)
        return len(self.places(term).ordinals)

    def total_length(self) -> int:
        """The sum of the lengths of the messages, as their codes give them."""
        if self.low == 0 and self.high >= self.shelf.count:
            return self.shelf.total_length()
        codes = bytes(self.shelf.lengths()[self.low : self.high])
        return sum(LENGTHS[code] * codes.count(code) for code in set(codes))

    def admitted(self, narrowing: Narrowing) -> set[int] | None:
        """The ordinals that a query may find, `None` for all."""
        allowed: set[int] | None = None
        for group in narrowing.groups:
            carriers = {ordinal for facet in group for ordinal in self.places(facet).ordinals}
            allowed = carriers if allowed is None else allowed & carriers
        if self.ranges:
            inside = set[int]().union(*self.ranges)
            allowed = inside if allowed is None else allowed & inside
        if not narrowing.by_time or (allowed is not None and not allowed):
            return allowed
        earliest, latest = self.shelf.time_span()
        if narrowing.admits(earliest) and narrowing.admits(latest):
            return allowed
        if not _may_admit(narrowing, earliest, latest):
            return set()
        stamps = self.shelf.stamps(self.low, self.high)
        timely = {ordinal for ordinal, stamp in enumerate(stamps, self.low) if narrowing.admits(stamp)}
        return timely if allowed is None else allowed & timely


def length_code(length: int) -> int:
    """The length of a message in one byte: about 9 % fine."""
    return min(255, round(8 * log2(length + 1)))


LENGTHS = tuple(round(2 ** (code / 8)) - 1 for code in range(256))
"""The length that a code stands for."""


def spelled_out(words: Iterable[str]) -> bytes:
    """A vocabulary: words with a line break before and behind each."""
    joined = "\n".join(words)
    return f"\n{joined}\n".encode()


def matching_words(vocabulary: bytes, part: str, *, opens: bool, closes: bool) -> tuple[list[str], bool]:
    """As `Shelf.words`, over one vocabulary."""
    needle = b"\n" * opens + part.encode() + b"\n" * closes
    found: list[str] = []
    at = vocabulary.find(needle)
    while at >= 0:
        if len(found) == MOST_WORDS:
            return found, False
        start = vocabulary.rfind(b"\n", 0, at + opens) + 1
        stop = vocabulary.find(b"\n", start)
        found.append(vocabulary[start:stop].decode())
        at = vocabulary.find(needle, stop)
    return found, True


def _may_admit(narrowing: Narrowing, earliest: int, latest: int) -> bool:
    since, until = narrowing.since_ms, narrowing.until_ms
    return (since is None or latest >= since) and (until is None or earliest <= until)
