"""The form of text in which search compares it."""

from unicodedata import is_normalized, normalize


def fold(text: str) -> str:
    """`text` in NFKC, case folded."""
    if text.isascii():
        return text.lower()
    folded = normalize("NFKC", text).casefold()
    return folded if is_normalized("NFKC", folded) else normalize("NFKC", folded)
