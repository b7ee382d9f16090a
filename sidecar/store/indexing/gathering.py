"""A shelf that is filled in memory, message by message."""

from collections.abc import Sequence

from sidecar.store.indexing.facets import LONG_RUN, facets
from sidecar.store.indexing.shelf import LENGTHS, NOWHERE, Places, length_code, matching_words
from sidecar.store.indexing.terms import document_terms
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
        """For terms that occur more than once in a message."""
        self.length_codes = bytearray()
        self._total = 0
        self._stamps: list[int] = []
        self._runs: dict[str, None] = {}
        self._vocabulary: str | None = None

    def add(self, row: MessageRow, searchable: Searchable) -> None:
        """Add the message at the next position."""
        ordinal = self.count
        terms = document_terms(searchable.text)
        every, counts = self.ordinals, self.counts
        for term, count in terms.counts.items():
            places = every.get(term)
            if places is None:
                every[term] = [ordinal]
            else:
                places.append(ordinal)
            if count > 1:
                if term not in counts:
                    counts[term] = bytearray(b"\1") * (len(every[term]) - 1)
                counts[term].append(min(count, 255))
            elif term in counts:
                counts[term].append(1)
        carried = facets(row, searchable)
        if terms.has_long_run:
            carried.append(LONG_RUN)
        for facet in carried:
            every.setdefault(facet, []).append(ordinal)
        self._runs.update(dict.fromkeys(terms.runs))
        self._vocabulary = None
        code = length_code(terms.length)
        self.length_codes.append(code)
        self._total += LENGTHS[code]
        self._stamps.append(row.timestamp_ms)
        self.size += len(searchable.text)
        self.count += 1

    @property
    def runs(self) -> list[str]:
        """All runs that occur."""
        return list(self._runs)

    def places(self, term: str) -> Places:
        """See `Shelf`."""
        ordinals = self.ordinals.get(term)
        return NOWHERE if ordinals is None else Places(ordinals, self.counts.get(term, b""))

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
        if self._vocabulary is None:
            self._vocabulary = "\n" + "\n".join(self._runs) + "\n"
        return matching_words(self._vocabulary, part, opens=opens, closes=closes)
