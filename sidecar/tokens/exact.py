"""Counts tokens with a provider's own vocabulary."""

from __future__ import annotations

from importlib import import_module
from threading import Lock
from typing import Literal, Protocol, cast

from sidecar.tokens.chunks import chunks

VocabularyName = Literal["o200k_base", "cl100k_base"]


class Vocabulary(Protocol):
    """The part of a byte-pair tokenizer that is used here; to it a special token is plain text."""

    def count(self, text: str) -> int:
        """The number of tokens of `text`.

        Raises:
            UnicodeEncodeError: `text` holds a lone surrogate.
        """
        ...


class ExactCounter:
    """Counts with a vocabulary of the rs-bpe package, which is loaded at the first count (about 100 ms)."""

    exact = True

    def __init__(self, name: VocabularyName) -> None:
        self.name: str = name
        self._vocabulary: Vocabulary | None = None
        self._loading = Lock()

    def load(self) -> Vocabulary:
        """The vocabulary, read into memory where it was not; a server calls this ahead, in a thread.

        Raises:
            ImportError: the rs-bpe package is not installed.
        """
        with self._loading:
            if self._vocabulary is None:
                vocabularies = import_module("rs_bpe.bpe").openai
                self._vocabulary = cast("Vocabulary", getattr(vocabularies, self.name)())
            return self._vocabulary

    def count(self, text: str) -> int:
        """The number of tokens of `text`; a lone surrogate counts as the replacement character.

        Long text is counted in slices, since the tokenizer keeps every other thread waiting while it works.
        """
        if not text:
            return 0
        vocabulary = self._vocabulary or self.load()
        return sum(_count(vocabulary, chunk) for chunk in chunks(text))


def _count(vocabulary: Vocabulary, text: str) -> int:
    try:
        return vocabulary.count(text)
    except UnicodeEncodeError:
        return vocabulary.count(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
