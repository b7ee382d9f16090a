"""How terms with their places are laid out in the blocks that a store keeps.

A term's block is chosen by the leading bits of a checksum. A block has the terms that occur once in one
message, the other terms, the ordinals of the former, the sizes of the places of the latter, and these. Of a
term that is in very many messages it has their number only; the places have a block of their own, which is
read when needed.
"""

from array import array
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise

from sidecar.store.indexing.keys import Keys, encode_keys
from sidecar.store.indexing.places import array_of, bytes_of, encode_place

LENGTHS_BLOCK = 0xFFFF
"""The number of the block with the length codes."""
VOCABULARY_BLOCKS = 0x8000
"""The number of the first block with words as they are spelled; blocks with places come before."""
APART_BLOCKS = 0xC000
"""The number of the first block with the places of one term."""
APART_BYTES = 4096
"""Places from this size on are kept apart."""
MOST_BITS = 15

_WIDTHS = {"B": 1, "H": 2, "I": 4}


def bits_for(size: int, wanted: int) -> int:
    """The bits that make blocks of about `wanted` bytes, of content of this size."""
    return min(MOST_BITS, max(0, (size // wanted).bit_length()))


def encode_block(singles: Mapping[str, int], listed: Mapping[str, bytes]) -> bytes:
    """A block with terms that occur once, at these ordinals, and with the encoded places of others."""
    single_keys, single_terms = encode_keys(singles)
    listed_keys, listed_terms = encode_keys(listed)
    ordinals = [singles[term] for term in single_terms]
    places = [listed[term] for term in listed_terms]
    sizes = list(map(len, places))
    kinds = _kind(ordinals), _kind(sizes)
    return b"".join(
        (
            "".join(kinds).encode(),
            single_keys,
            listed_keys,
            bytes_of(array(kinds[0], ordinals)),
            bytes_of(array(kinds[1], sizes)),
            *places,
        )
    )


class Block:
    """The terms of a block, with their places."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._single_keys = Keys(content, 2)
        self._listed_keys = Keys(content, self._single_keys.end)
        self._kinds = chr(content[0]), chr(content[1])
        self._ordinals_at = self._listed_keys.end
        self._sizes_at = self._ordinals_at + self._single_keys.count * _WIDTHS[self._kinds[0]]
        self._places_at = self._sizes_at + self._listed_keys.count * _WIDTHS[self._kinds[1]]

    def find(self, term: str) -> bytes:
        """The encoded places of a term, empty where it is not in this block."""
        number = self._single_keys.number(term)
        if number is not None:
            return encode_place(self._ordinals(number, number + 1)[0])
        number = self._listed_keys.number(term)
        return b"" if number is None else next(self._listed(number, number + 1))

    def beginning_with(self, character: str) -> tuple["array[int]", list[bytes]]:
        """The ordinals of the pairs that begin with a character and occur once; the places of the others."""
        singles, listed = self._single_keys.group(character), self._listed_keys.group(character)
        return self._ordinals(singles.start, singles.stop), list(self._listed(listed.start, listed.stop))

    def singles(self) -> Iterator[tuple[str, int]]:
        """The terms that occur once, and where."""
        keys = self._single_keys
        return zip(keys.terms(), self._ordinals(0, keys.count), strict=True)

    def listed(self) -> Iterator[tuple[str, bytes]]:
        """The other terms, with their encoded places."""
        keys = self._listed_keys
        return zip(keys.terms(), self._listed(0, keys.count), strict=True)

    def _ordinals(self, start: int, stop: int) -> "array[int]":
        kind = self._kinds[0]
        at, width = self._ordinals_at, _WIDTHS[kind]
        return array_of(kind, self._content[at + start * width : at + stop * width])

    def _listed(self, start: int, stop: int) -> Iterator[bytes]:
        kind = self._kinds[1]
        sizes = array_of(kind, self._content[self._sizes_at : self._sizes_at + stop * _WIDTHS[kind]])
        begin = self._places_at + sum(sizes[:start])
        for at, end in pairwise(accumulate(sizes[start:], initial=begin)):
            yield self._content[at:end]


def _kind(numbers: list[int]) -> str:
    most = max(numbers, default=0)
    return "B" if most < 1 << 8 else "H" if most < 1 << 16 else "I"
