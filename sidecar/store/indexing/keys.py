"""The terms of a block, each with a number: words one behind the other, pairs of characters by the first one.

A pair is written as the second character alone, in a group that the first one heads.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, groupby
from struct import Struct
from zlib import crc32

from sidecar.store.indexing.places import array_of, bytes_of
from sidecar.store.indexing.terms import CJK_CHARACTERS

ANYWHERE = "\x01"
"""Behind a character: the term for all messages with the character, where there are very many pairs."""
_FIRST_CJK = "\u3005"
_PAIR = re.compile(rf"[{CJK_CHARACTERS}][{CJK_CHARACTERS}{ANYWHERE}]?")
_SIZES: Mapping[str, Struct] = {"H": Struct("<HHHH"), "I": Struct("<IIII")}


def is_pair(term: str) -> bool:
    """Whether a term is of characters of Han, kana or hangul, at most two."""
    return term >= _FIRST_CJK and len(term) <= 2 and _PAIR.fullmatch(term) is not None


def is_character(term: str) -> bool:
    """Whether a term is one such character, which is found by the pairs that begin with it."""
    return len(term) == 1 and is_pair(term)


def block_of(term: str, bits: int) -> int:
    """Which of 2 ** `bits` blocks a term is in; pairs with the same first character are in the same."""
    return crc32((term[0] if is_pair(term) else term).encode()) >> (32 - bits)


def encode_keys(terms: Iterable[str]) -> tuple[bytes, list[str]]:
    """The terms as a block has them, and in the order of their numbers."""
    words: list[str] = []
    pairs: list[str] = []
    for term in terms:
        (pairs if is_pair(term) else words).append(term)
    pairs.sort()
    listed = "\n".join(("", *words, "")).encode() if words else b""
    groups = [(ord(first), len(list(group))) for first, group in groupby(pairs, key=_first)]
    seconds = [ord(pair[1]) if len(pair) > 1 else 0 for pair in pairs]
    sizes = len(listed), len(words), len(groups), len(pairs)
    kind = "H" if max(*sizes, *(code for code, _ in groups), *seconds) < 1 << 16 else "I"
    numbers = array(kind, [code for code, _ in groups] + [size for _, size in groups] + seconds)
    return kind.encode() + _SIZES[kind].pack(*sizes) + listed + bytes_of(numbers), words + pairs


class Keys:
    """The terms that begin at this byte of a block."""

    def __init__(self, content: bytes, at: int) -> None:
        self._content = content
        self._kind = chr(content[at])
        sizes = _SIZES[self._kind]
        found: tuple[int, ...] = sizes.unpack_from(content, at + 1)
        listed, self._words, self._groups, self._pairs = found
        self._begin = at + 1 + sizes.size
        self._middle = self._begin + listed
        self.count = self._words + self._pairs
        self.end = self._middle + (2 * self._groups + self._pairs) * (2 if self._kind == "H" else 4)

    def number(self, term: str) -> int | None:
        """The number of a term, `None` where it is not among them."""
        if not is_pair(term):
            at = self._content.find(b"\n%b\n" % term.encode(), self._begin, self._middle)
            return None if at < 0 else self._content.count(b"\n", self._begin, at)
        group = self.group(term[0])
        if not group:
            return None
        seconds = self._numbers()[2 * self._groups :]
        wanted = ord(term[1]) if len(term) > 1 else 0
        low, high = group.start - self._words, group.stop - self._words
        at = bisect_left(seconds, wanted, low, high)
        return self._words + at if at < high and seconds[at] == wanted else None

    def group(self, character: str) -> range:
        """The numbers of the pairs that begin with a character."""
        numbers = self._numbers()
        at = bisect_left(numbers, ord(character), 0, self._groups)
        if at == self._groups or numbers[at] != ord(character):
            return range(0)
        start = self._words + sum(numbers[self._groups : self._groups + at])
        return range(start, start + numbers[self._groups + at])

    def terms(self) -> list[str]:
        """All terms, by their numbers."""
        words = self._content[self._begin + 1 : self._middle - 1].decode().split("\n") if self._words else []
        numbers = self._numbers()
        starts = list(accumulate(numbers[self._groups : 2 * self._groups], initial=2 * self._groups))
        for index, code in enumerate(numbers[: self._groups]):
            first = chr(code)
            words += [
                first + chr(second) if second else first
                for second in numbers[starts[index] : starts[index + 1]]
            ]
        return words

    def _numbers(self) -> Sequence[int]:
        return array_of(self._kind, self._content[self._middle : self.end])


def _first(pair: str) -> str:
    return pair[0]
