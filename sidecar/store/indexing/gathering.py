"""A shelf that is filled in memory, message by message."""

from collections.abc import Sequence

from sidecar.store.indexing.facets import LONG_RUN, facets
from sidecar.store.indexing.keys import is_character, is_pair
from sidecar.store.indexing.places import ROUNDED
from sidecar.store.indexing.shelf import (
    LENGTHS,
    NOWHERE,
    ListedPlaces,
    PlaceFinder,
    Places,
    length_code,
    matching_words,
    spelled_out,
)
from sidecar.store.indexing.terms import document_terms, expand
from sidecar.store.records import MessageRow
from sidecar.store.search import Searchable


class Gathered:
    """`Shelf` over what was added, in order and without gaps."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.count = 0
        self.size = 0
        """Characters of text that were added."""
        self.ordinals: dict[str, list[int]] = {}
        self.counts: dict[str, bytearray] = {}
        """For terms that occur more than once in a message; as `ROUNDED`."""
        self.pairs: dict[str, list[str]] = {}
        """CJK pairs by their first character, with those characters alone that end a run."""
        self.length_codes = bytearray()
        self._total = 0
        self._stamps: list[int] = []
        self._tokens: set[str] = set()
        self._vocabulary = 0, b""
        """Words, and the number of tokens that were spelled out for it."""

    def add(self, row: MessageRow, searchable: Searchable) -> None:
        """Add the message at the next position."""
        ordinal = self.count
        terms = document_terms(searchable.text)
        every, counts = self.ordinals, self.counts
        for term, count in terms.counts.items():
            places = every.get(term)
            if places is None:
                places = every[term] = []
                if is_pair(term):
                    self.pairs.setdefault(term[0], []).append(term)
            if count > 1:
                if term not in counts:
                    counts[term] = bytearray(b"\1") * len(places)
                counts[term].append(ROUNDED[min(count, 255)])
            elif term in counts:
                counts[term].append(1)
            places.append(ordinal)
        carried = facets(row, searchable)
        if terms.has_long_run:
            carried.append(LONG_RUN)
        for facet in carried:
            every.setdefault(facet, []).append(ordinal)
        self._tokens.update(terms.tokens)
        code = length_code(terms.length)
        self.length_codes.append(code)
        self._total += LENGTHS[code]
        self._stamps.append(row.timestamp_ms)
        self.size += len(searchable.text)
        self.count += 1

    def spelled(self) -> set[str]:
        """All words that occur, as they are spelled; nothing of Han, kana and hangul."""
        return {word for token in self._tokens for word in expand(token).words}

    def places(self, term: str) -> Places:
        """See `Shelf`."""
        if is_character(term):
            return Places(self._holders(term), b"")
        ordinals = self.ordinals.get(term)
        return NOWHERE if ordinals is None else Places(ordinals, self.counts.get(term, b""))

    def finder(self, term: str) -> PlaceFinder:
        """See `Shelf`."""
        return ListedPlaces(self.places(term))

    def frequency(self, term: str) -> int:
        """See `Shelf`."""
        return len(self._holders(term) if is_character(term) else self.ordinals.get(term, ()))

    def _holders(self, character: str) -> list[int]:
        return sorted(set[int]().union(*(self.ordinals[pair] for pair in self.pairs.get(character, ()))))

    def lengths(self) -> Sequence[int]:
        """See `Shelf`."""
        return self.length_codes

    def total_length(self) -> int:
        """See `Shelf`."""
        return self._total

    def stamps(self, low: int, high: int) -> Sequence[int]:
        """See `Shelf`."""
        return self._stamps[low:high]

    def time_span(self) -> tuple[int, int]:
        """See `Shelf`."""
        return min(self._stamps), max(self._stamps)

    def words(self, part: str, *, opens: bool, closes: bool) -> tuple[list[str], bool]:
        """See `Shelf`."""
        known, vocabulary = self._vocabulary
        if known < len(self._tokens):
            vocabulary = spelled_out(self.spelled())
            self._vocabulary = len(self._tokens), vocabulary
        return matching_words(vocabulary, part, opens=opens, closes=closes)
