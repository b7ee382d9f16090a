"""What is measured of stores, size by size; the plain tables take turns with them inside each round."""

from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.bench import store_corpus as corpus
from tests.bench.store_corpus import Corpus, Sample
from tests.bench.store_subjects import FloorSubject, StoreSubject, Subject, never_indexing

Values = dict[str, float]
"""By metric; processor time in microseconds, but for `file x text`."""

LAST = 50
_READS = 100
_INGESTED = 3000
_SEARCHES: dict[str, tuple[str, str]] = {
    "rare word": ("words", corpus.RARE),
    "common word": ("words", corpus.EVERYWHERE),
    "two common words": ("words", f"{corpus.COMMON} {corpus.EVERYWHERE}"),
    "absent word": ("words", corpus.ABSENT),
    "CJK word": ("words", corpus.CJK),
    "CJK character": ("words", corpus.CJK_CHARACTER),
    "part of a word": ("literal", corpus.PART),
    "absent part": ("literal", corpus.ABSENT[1:-1]),
    "regex": ("regex", r"zircon[a-z]+r\b"),
}
SEARCHES = tuple(_SEARCHES)
INGEST, LAST_50, FILE = "ingest", f"last {LAST}", "file x text"
ON, OFF = "search on", "search off"
FIRST = "first search after writing"


class Shape(NamedTuple):
    """How many messages, and over how many sessions they are spread."""

    messages: int
    sessions: int = 1

    @property
    def name(self) -> str:
        """As it is shown."""
        many = f"{self.messages // self.sessions:,}"
        return many if self.sessions == 1 else f"{self.sessions:,} x {many}"


class Counting:
    """Messages of the corpus, with the bytes of text in those that were taken."""

    def __init__(self) -> None:
        self.text_bytes = 0
        self._corpus = Corpus()
        self._numbers = count()

    def __iter__(self) -> Iterator[Sample]:
        return self

    def __next__(self) -> Sample:
        sample = self._corpus.sample(next(self._numbers))
        self.text_bytes += sample.text_bytes
        return sample


def measure(shape: Shape, kind: str, folder: Path, rounds: int, *, floor: bool) -> dict[str, Values]:
    """The medians of a store of this kind, and of the plain tables if they are wanted."""
    subjects: list[Subject] = [StoreSubject(kind, folder)]
    if floor:
        subjects.append(FloorSubject(folder))
    try:
        found = {subject.name: [_filled(subject, shape)] for subject in subjects}
        for number in range(rounds):
            for subject in subjects:
                found[subject.name].append(_round(subject, shape, number))
    finally:
        for subject in subjects:
            subject.close()
    return {name: _medians(values) for name, values in found.items()}


def acknowledgement(kind: str, folder: Path, rounds: int) -> dict[str, Values]:
    """What ingest costs until the last answer, in stores that index behind it and in stores that never do."""
    found: dict[str, list[Values]] = {ON: [], OFF: []}
    for number in range(rounds):
        for name in (ON, OFF):
            place = folder / f"{name}{number}"
            place.mkdir()
            with never_indexing() if name == OFF else nullcontext():
                subject = StoreSubject(kind, place)
                try:
                    samples = Counting()
                    subject.fill(samples, 1000, 1)
                    if name == ON:
                        subject.rest()
                    found[name].append({INGEST: subject.ingest(list(islice(samples, _INGESTED)), 0)})
                finally:
                    subject.close()
    return {name: {INGEST: median(v[INGEST] for v in values)} for name, values in found.items()}


def _filled(subject: Subject, shape: Shape) -> Values:
    samples = Counting()
    subject.fill(samples, shape.messages, shape.sessions)
    subject.rest()
    return {FILE: subject.size() / samples.text_bytes}


def _round(subject: Subject, shape: Shape, number: int) -> Values:
    values: Values = {}
    session = shape.sessions // 2
    searched = session if shape.sessions == 1 else None
    values[FIRST] = subject.search(corpus.RARE, "words", searched)
    for name, (kind, text) in _SEARCHES.items():
        values[name] = subject.search(text, kind, searched)
    each = shape.messages // shape.sessions
    values[LAST_50] = subject.last(LAST, session, each + number * _INGESTED, _READS)
    samples = list(islice(Counting(), _INGESTED))
    values[INGEST] = subject.ingest(samples, session)
    subject.rest()
    return values


def _medians(found: list[Values]) -> Values:
    metrics = dict.fromkeys(metric for values in found for metric in values)
    return {
        metric: median(v[metric] for v in found if metric in v)
        for metric in (INGEST, LAST_50, FILE, *metrics)
    }
