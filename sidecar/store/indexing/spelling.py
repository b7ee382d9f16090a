"""The blocks with the words of a segment as they are spelled, in which parts of words are looked for.

Words with digits are kept apart from those without: numbers are many, and nobody looks for letters in them.
The blocks are compressed; searches keep what they are unpacked to.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice

from sidecar.store.indexing.blocks import APART_BLOCKS, VOCABULARY_BLOCKS
from sidecar.store.indexing.shelf import MOST_WORDS, matching_words, spelled_out

_WORDS = 6_000
"""Words in a block."""
_CLASS = 0x1000
"""Blocks that a class of words may have."""
_LETTERS, _DIGITS, _MIXED = range(3)

_LEVEL = 4
_FETCHED = 6

Read = Callable[[int, int], bytes | None]
"""Reads a block by its segment and number, `unpacked`."""


def unpacked(number: int, content: bytes) -> bytes:
    """What is in the block with this number that a store has kept."""
    return zlib.decompress(content) if VOCABULARY_BLOCKS <= number < APART_BLOCKS else content


def vocabulary_blocks(words: Iterable[str]) -> Iterator[list[tuple[int, bytes]]]:
    """The blocks with these words."""
    sorted_in: tuple[list[str], list[str], list[str]] = ([], [], [])
    for word in words:
        sorted_in[_class_of(word)].append(word)
    for class_, found in enumerate(sorted_in):
        yield from _blocks(class_, found)


def joint_vocabulary(segments: Sequence[int], read: Read) -> Iterator[list[tuple[int, bytes]]]:
    """The blocks with the words of all these segments, each word once."""
    for class_ in (_LETTERS, _DIGITS, _MIXED):
        words: set[str] = set()
        for segment in segments:
            for vocabulary in _vocabularies(segment, read, class_):
                words.update(vocabulary.decode().strip("\n").split("\n"))
                yield []
        yield from _blocks(class_, words)


def words_with(segment: int, read: Read, part: str, *, opens: bool, closes: bool) -> tuple[list[str], bool]:
    """As `Shelf.words`, over the blocks of a segment."""
    found: list[str] = []
    for class_ in _classes_with(part):
        for vocabulary in _vocabularies(segment, read, class_):
            words, complete = matching_words(vocabulary, part, opens=opens, closes=closes)
            found += words
            if not complete or len(found) > MOST_WORDS:
                return found[:MOST_WORDS], False
    return found, True


def blocks_to_read(part: str) -> list[int]:
    """The numbers of the blocks that `words_with` reads first, and mostly of all that it reads."""
    return [
        VOCABULARY_BLOCKS + class_ * _CLASS + number
        for class_ in _classes_with(part)
        for number in range(_FETCHED)
    ]


def _class_of(word: str) -> int:
    if word.isdigit():
        return _DIGITS
    return _MIXED if any(map(str.isdigit, word)) else _LETTERS


def _classes_with(part: str) -> tuple[int, ...]:
    """Where words with this part can be."""
    class_ = _class_of(part)
    return (_MIXED,) if class_ == _MIXED else (class_, _MIXED)


def _vocabularies(segment: int, read: Read, class_: int) -> Iterator[bytes]:
    for number in count(VOCABULARY_BLOCKS + class_ * _CLASS):
        block = read(segment, number)
        if block is None:
            break
        yield block


def _blocks(class_: int, words: Iterable[str]) -> Iterator[list[tuple[int, bytes]]]:
    number = VOCABULARY_BLOCKS + class_ * _CLASS
    listed = iter(words)
    while some := list(islice(listed, _WORDS)):
        yield [(number, zlib.compress(spelled_out(sorted(some)), _LEVEL))]
        number += 1
