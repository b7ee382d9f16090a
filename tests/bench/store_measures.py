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
"""By metric; processor time in microseconds, but for ratios, which have an `x` in their names."""

LAST = 50
_READS = 100
_INGESTED = 3000
_SEARCHES: dict[str, tuple[str, str]] = {
    "rare word": ("words", corpus.RARE),
    "common word": ("words", corpus.EVERYWHERE),
    "two common words": ("words", f"{corpus.COMMON} {corpus.EVERYWHERE}"),
    "absent word": ("words", corpus.ABSENT),
    "ten words": ("words", corpus.TEN_WORDS),
    "CJK word": ("words", corpus.CJK),
    "CJK character": ("words", corpus.CJK_CHARACTER),
    "part of a word": ("literal", corpus.PART),
    "two words": ("literal", corpus.TWO_WORDS),
    "absent part": ("literal", corpus.ABSENT[1:-1]),
    "regex": ("regex", r"zircon[a-z]+r\b"),
}
SEARCHES = tuple(_SEARCHES)
INGEST, LAST_50, FILE, FILE_SENT = "ingest", f"last {LAST}", "file x text", "file x sent"
ON, OFF = "search on", "search off"
RATIO = "ingest x search off"
_TURNS = 3
"""Times as many rounds for what takes so short."""
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
    """Messages of the corpus, with the bytes of text in those that were taken, and of all that is sent."""

    def __init__(self) -> None:
        self.text_bytes = 0
        self.sent_bytes = 0
        self._corpus = Corpus()
        self._numbers = count()

    def __iter__(self) -> Iterator[Sample]:
        return self

    def __next__(self) -> Sample:
        sample = self._corpus.sample(next(self._numbers))
        self.text_bytes += sample.text_bytes
        self.sent_bytes += len(sample.body)
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
    """What ingest costs until the last answer, in stores that index behind it and in stores that never do.

    They take turns, each going first as often; their ratio is the median of those of the rounds, so that a
    machine that grows busy changes both.
    """
    found: dict[str, list[float]] = {ON: [], OFF: []}
    for number in range(rounds * _TURNS):
        for name in (ON, OFF) if number % 2 else (OFF, ON):
            place = folder / f"{name}{number}"
            place.mkdir()
            with never_indexing() if name == OFF else nullcontext():
                found[name].append(_acknowledged(StoreSubject(kind, place), indexes=name == ON))
    ratio = median(on / off for on, off in zip(found[ON], found[OFF], strict=True))
    return {
        ON: {INGEST: median(found[ON]), RATIO: ratio},
        OFF: {INGEST: median(found[OFF]), RATIO: 1.0},
    }


def _acknowledged(subject: StoreSubject, *, indexes: bool) -> float:
    try:
        samples = Counting()
        subject.fill(samples, 1000, 1)
        if indexes:
            subject.rest()
        return subject.ingest(list(islice(samples, _INGESTED)), 0)
    finally:
        subject.close()


def _filled(subject: Subject, shape: Shape) -> Values:
    samples = Counting()
    subject.fill(samples, shape.messages, shape.sessions)
    subject.rest()
    size = subject.size()
    return {FILE: size / samples.text_bytes, FILE_SENT: size / samples.sent_bytes}


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
        for metric in (INGEST, LAST_50, FILE, FILE_SENT, *metrics)
    }
