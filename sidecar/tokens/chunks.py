"""Cuts long text into slices that are cheap to count."""

from __future__ import annotations

from collections.abc import Iterator

CHUNK_CHARACTERS = 16_384
"""At most 64 KB of UTF-8, whatever the script."""


def chunks(text: str, size: int = CHUNK_CHARACTERS) -> Iterator[str]:
    """Slices of at most `size` characters that join to `text`.

    A cut is put after the last line break of a slice, else before its last blank, where tokenizers cut too;
    only text without either is cut at the limit.
    """
    start, end = 0, len(text)
    while end - start > size:
        half = start + size // 2
        cut = text.rfind("\n", half, start + size) + 1
        if not cut:
            cut = text.rfind(" ", half, start + size)
        if cut <= start:
            cut = start + size
        yield text[start:cut]
        start = cut
    if start < end:
        yield text[start:]
