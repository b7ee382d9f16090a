"""Splits text where byte-pair vocabularies split it before they merge."""

from __future__ import annotations

import re

LOWER = "a-zß-öø-ÿ\u0100-\u02ff\u03ac-\u03ff\u0430-\u052f\u1e00-\u1fff"
UPPER = "A-ZÀ-ÖØ-Þ\u0386-\u03ab\u0400-\u042f"
CONTRACTION = "(?:'(?:s|t|re|ve|m|ll|d|S|T|RE|VE|M|LL|D)(?![A-Za-z]))?"
BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"

ASCII_PIECE = re.compile(
    rf"[^A-Za-z0-9\r\n]?(?:[A-Z]*[a-z]+|[A-Z]+){CONTRACTION}"
    r"|[0-9]{1,3}"
    r"| ?[^\sA-Za-z0-9]+[\r\n/]*"
    rf"|{BLANKS}"
)
ANY_PIECE = re.compile(
    rf"(?:[^\w\r\n]|_)?(?:[{UPPER}]*[{LOWER}]+|[{UPPER}]+){CONTRACTION}"
    r"|[0-9]{1,3}"
    r"|[^\w\r\n]?[^\W\d_a-zA-Z]+[\u0300-\u036f\u0590-\u06ff\u0900-\u0eff]*"
    r"| ?(?:[^\s\w]|_)+[\r\n/]*"
    rf"|{BLANKS}"
    r"|.",
    re.DOTALL,
)


def pieces(text: str) -> list[str]:
    """The pieces of `text` in order; they join to it, and no token of a vocabulary spans two of them."""
    return (ASCII_PIECE if text.isascii() else ANY_PIECE).findall(text)
