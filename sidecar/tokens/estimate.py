"""Estimates tokens without a vocabulary: splits text into pieces and sums the cost of each kind of piece."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

CHUNK_CHARACTERS = 16_384
"""At most 64 KB of UTF-8, whatever the script."""


def chunks(text: str, size: int = CHUNK_CHARACTERS) -> Iterator[str]:
    """Slices of at most `size` characters that join to `text`.

    Cuts after the last line break of a slice, else before its last blank, where tokenizers split too; only
    text without either is cut at the limit.
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


HARD_TO_MERGE = re.compile("[bcdfghjklmnpqrstvwxzBCDFGHJKLMNPQRSTVWXZ]{4}|^.?[bcdfghjklmnpqrstvwxz]{3}$")
TRADITIONAL_HAN = re.compile("[這個們說來時會對學國過還後為與並從當開關無檔專設資訊]")

# Tokens of an ASCII word in hundredths, by its number of letters from 1 on. Measured on English, on source
# code in a dozen languages and on JSON, against the o200k vocabulary. `bare`: the piece is only the word,
# `spaced`: one blank before it, `joined`: one other character, as in `.join` or `_name`.
WORD_COSTS = {
    "spaced lower": (100, 100, 101, 102, 103, 104, 106, 111, 113, 118, 121, 132, 136, 155, 190),
    "spaced capital": (100, 100, 101, 102, 107, 109, 112, 130, 135, 150, 152, 155, 160, 170, 200),
    "spaced upper": (100, 104, 114, 134, 136, 138, 145, 195, 200, 210, 225, 240, 260, 280, 300),
    "spaced mixed": (100, 104, 113, 145, 190, 195, 215, 219, 225, 239, 250, 260, 270, 300, 350),
    "bare lower": (100, 101, 104, 105, 109, 113, 117, 124, 126, 127, 130, 147, 155, 220, 240),
    "bare capital": (100, 108, 108, 108, 108, 108, 108, 110, 117, 119, 121, 124, 128, 140, 200),
    "bare upper": (100, 105, 130, 167, 180, 184, 192, 245, 290, 300, 346, 370, 430, 450, 480),
    "bare mixed": (100, 105, 201, 237, 285, 335, 350, 390, 410, 425, 450, 480, 600, 650, 800),
    "joined lower": (104, 131, 131, 131, 134, 136, 158, 178, 190, 220, 227, 242, 250, 300, 332),
    "joined capital": (124, 165, 165, 165, 171, 176, 179, 193, 206, 228, 235, 240, 250, 283, 340),
    "joined upper": (124, 139, 150, 152, 169, 173, 178, 185, 240, 276, 285, 350, 370, 450, 480),
    "joined mixed": (124, 139, 269, 301, 342, 365, 375, 385, 395, 405, 420, 440, 500, 600, 700),
}
# The same for words of other languages in Latin script, recognised by accented letters nearby: western Europe
# (letters of Latin-1) and elsewhere, which the vocabulary covers less.
WESTERN_WORD_COSTS = (100, 101, 102, 106, 119, 134, 149, 164, 179, 199, 224, 242, 262, 282, 310)
EASTERN_WORD_COSTS = (100, 102, 110, 135, 165, 190, 215, 240, 265, 290, 320, 350, 380, 410, 440)
MORE_LETTERS = 40
HARDER = 1.36

# Tokens of a piece in another script: a cost per piece and a cost per character.
SCRIPTS: tuple[tuple[int, int, float, float], ...] = (
    (0x0080, 0x0100, 0.25, 0.22),  # accented Latin of the west
    (0x0100, 0x0250, 0.25, 0.325),  # accented Latin of the east
    (0x0250, 0x0370, 0.50, 0.90),  # phonetic letters, combining marks
    (0x0370, 0x0400, 0.00, 0.37),  # Greek
    (0x0400, 0x0454, 0.25, 0.23),  # Cyrillic
    (0x0454, 0x0530, 0.25, 0.34),  # Cyrillic beyond Russian
    (0x0590, 0x0600, 0.10, 0.42),  # Hebrew
    (0x0600, 0x0780, 0.25, 0.31),  # Arabic
    (0x0900, 0x0980, 0.30, 0.27),  # Devanagari
    (0x0980, 0x0E00, 0.40, 0.34),  # other Indic
    (0x0E00, 0x1000, 0.30, 0.41),  # Thai, Lao, Tibetan
    (0x1000, 0x10A0, 0.30, 0.55),  # Burmese
    (0x10A0, 0x1100, 0.30, 0.30),  # Georgian
    (0x1E00, 0x1F00, 0.40, 0.19),  # Vietnamese
    (0x3040, 0x3100, 0.15, 0.70),  # kana, and Han next to it
    (0x3400, 0xA000, 0.25, 0.71),  # Han
    (0xAC00, 0xD800, 0.30, 0.53),  # Hangul
)
TRADITIONAL_HAN_COST = 0.95
OTHER_SCRIPT_COST = 1.6


def piece_cost(piece: str) -> float:
    """The likely number of tokens of one piece, at least 1."""
    if piece.isascii():
        letters = _letters(piece)
        return _word_cost(piece, letters) if letters else _mark_cost(piece)
    return _other_cost(piece)


def western_piece_cost(piece: str) -> float:
    """As `piece_cost`, for text in a western European language other than English."""
    return _foreign_cost(piece, WESTERN_WORD_COSTS)


def eastern_piece_cost(piece: str) -> float:
    """As `piece_cost`, for text in any other language written in Latin letters."""
    return _foreign_cost(piece, EASTERN_WORD_COSTS)


def _foreign_cost(piece: str, costs: tuple[int, ...]) -> float:
    letters = _letters(piece) if piece.isascii() else ""
    return _by_length(costs, len(letters)) / 100 if letters.islower() else piece_cost(piece)


def _letters(piece: str) -> str:
    """The word in an ASCII piece, without a leading character and without a contraction."""
    word = piece if piece[0].isalpha() else piece[1:]
    if not word[:1].isalpha():
        return ""
    return word if word.isalpha() else word.partition("'")[0]


def _word_cost(piece: str, letters: str) -> float:
    first = piece[0]
    before = "bare" if first.isalpha() else "spaced" if first == " " else "joined"
    if letters.islower():
        case = "lower"
    elif letters.isupper():
        case = "upper"
    else:
        case = "capital" if letters[1:].islower() else "mixed"
    cost = _by_length(WORD_COSTS[f"{before} {case}"], len(letters)) / 100
    if case != "mixed" and HARD_TO_MERGE.search(letters):
        cost *= HARDER
    return cost


def _by_length(costs: tuple[int, ...], length: int) -> int:
    return costs[length - 1] if length <= len(costs) else costs[-1] + MORE_LETTERS * (length - len(costs))


def _mark_cost(piece: str) -> float:
    """The cost of digits, punctuation or blanks."""
    marks = piece.strip(" \r\n")
    length = len(marks)
    if length == 0:
        return 1 + max(0, len(piece) - 80) / 80
    escapes = 0.35 * marks.count("\\")
    if length <= 3:
        return 1 + 0.02 * (length - 1) + (escapes if length > 1 else 0)
    if len(set(marks)) == 1:
        return 1 + length / 32
    return 1.06 + 0.4 * (length - 3) + escapes


def _other_cost(piece: str) -> float:
    """The cost of a piece with characters beyond ASCII."""
    letters = [ord(letter) for letter in piece if letter > "\x7f" and letter.isalpha()]
    if not letters:
        return _symbol_cost(piece)
    # An accent beyond Latin-1 identifies the language, and so does one kana among Han.
    script = max(letters) if max(letters) < 0x3000 else min(letters)
    for start, end, whole, each in SCRIPTS:
        if start <= script < end:
            if start == 0x3400 and TRADITIONAL_HAN.search(piece):
                each = TRADITIONAL_HAN_COST
            return max(1.0, whole + each * len(piece))
    return max(1.0, OTHER_SCRIPT_COST * len(piece))


def _symbol_cost(piece: str) -> float:
    """The cost of dashes, arrows, quotation marks and emoji."""
    cost = 0.0
    for character in piece:
        code = ord(character)
        if code < 0x80:
            cost += 0.3
        elif code < 0x2200 or 0x2500 <= code < 0x2580 or 0x3000 <= code < 0x3020 or 0xFF00 <= code < 0xFF70:
            cost += 0.9
        else:
            cost += 2.0 if code >= 0xD800 else 1.5
    return max(1.0, cost)


ACCENTED = re.compile("[à-öø-ÿ\u0100-\u024f]")
EASTERN = re.compile("[\u0100-\u024f]")
CHARACTERS_PER_ACCENT = 350
"""Text with more than one accented letter per this many characters is assumed not to be English."""
BLOB = re.compile("[A-Za-z0-9+/_-]{20,}")
BLOB_SURCHARGE = 0.08
"""Extra tokens per character of base64, compared with the same letters in words."""
LEAN = 1.01
"""Estimates are slightly high: too little context costs less than an overflow."""
REMEMBERED_PIECES = 20_000
LONGEST_REMEMBERED = 32


class PieceCosts(dict[str, float]):
    """A thread-safe cache of piece costs, computed on first look-up."""

    def __init__(self, cost: Callable[[str], float]) -> None:
        super().__init__()
        self.cost = cost

    def __missing__(self, piece: str) -> float:
        cost = self.cost(piece)
        if len(piece) <= LONGEST_REMEMBERED:
            if len(self) >= REMEMBERED_PIECES:
                self.clear()
            self[piece] = cost
        return cost


class EstimateCounter:
    """Approximates the counts of the o200k vocabulary from the shape of the text alone."""

    name = "estimate-1"
    exact = False

    def __init__(self) -> None:
        self._english = PieceCosts(piece_cost)
        self._western = PieceCosts(western_piece_cost)
        self._eastern = PieceCosts(eastern_piece_cost)

    def count(self, text: str) -> int:
        """The likely number of tokens of `text`, 0 only for empty text; never raises."""
        tokens = 0.0
        for chunk in chunks(text):
            tokens += sum(map(self._costs_for(chunk).__getitem__, pieces(chunk)))
            tokens += BLOB_SURCHARGE * sum(len(blob) for blob in BLOB.findall(chunk) if _is_random(blob))
        return max(int(tokens * LEAN + 0.5), 1 if text else 0)

    def _costs_for(self, text: str) -> PieceCosts:
        if text.isascii() or len(ACCENTED.findall(text)) * CHARACTERS_PER_ACCENT <= len(text):
            return self._english
        if len(EASTERN.findall(text)) * 2 * CHARACTERS_PER_ACCENT > len(text):
            return self._eastern
        return self._western


def _is_random(blob: str) -> bool:
    """True for base64 and generated ids, False for paths and long names."""
    uppercase = sum(map(str.isupper, blob))
    digits = sum(map(str.isdigit, blob))
    return uppercase * 5 > len(blob) and digits * 20 > len(blob) and uppercase * 5 < 4 * len(blob)
