"""Porter stems of English words, from SQLite's own implementation."""

import threading
from typing import Any

_lock = threading.Lock()
_tokenizer: Any = None


def stem(word: str) -> str:
    """The stem of a case-folded word; what is no plain word is its own stem."""
    if not (2 < len(word) <= 64 and word.isascii() and word.isalpha()):
        return word
    import apsw

    with _lock:
        return _porter()(word.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, **_WORDS_ALONE)[0]


_WORDS_ALONE = {"include_offsets": False, "include_colocated": False}


def _porter() -> Any:
    global _tokenizer
    if _tokenizer is None:
        import apsw

        _tokenizer = apsw.Connection(":memory:").fts5_tokenizer("porter", ["ascii"])
    return _tokenizer
