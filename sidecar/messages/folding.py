"""Folds text so that spellings a host may change compare equal."""

from __future__ import annotations

from unicodedata import normalize


def fold(text: str) -> str:
    """`text` in NFC, every run of white space as one blank, none at the ends."""
    if not text.isascii():
        text = normalize("NFC", text)
    if text.isprintable() and "  " not in text:
        return text.strip()
    return " ".join(text.split())


def same_id(call_id: str) -> str:
    """The letters and digits of a tool-call id, all that hosts leave of it; the id itself if it has none."""
    if call_id.isalnum():
        return call_id
    return "".join(filter(str.isalnum, call_id)) or call_id
