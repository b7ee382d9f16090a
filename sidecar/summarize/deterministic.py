"""Summaries without a model: sentences from the text, scored by cues, selected to fit the target."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from math import sqrt
from typing import Literal, NamedTuple

from sidecar.summarize.contract import SourceMessage, Summary, SummaryRequest
from sidecar.tokens.contract import TokenCounter

PieceKind = Literal["said", "call", "result", "code", "earlier"]

LONGEST_PIECE = 320
"""Characters; longer lines are cut at a comma or blank."""
LONGEST_CALL = 180
LINES_PER_RESULT = 10
"""Maximum lines quoted from one tool result: its head, errors, then lines with ids and paths."""
LONGEST_MESSAGE = 200_000
"""Maximum characters examined of one message: its start and its end."""

FENCES = ("```", "~~~")
SHORTEST_LINE_TO_CUT = 60
"""In bytes, so that Chinese is split at a third of the characters."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^a-z\s])|(?<=[。！？；])(?=[^”’」』）)\s])")
CALL_LINE = re.compile(r"[\w.:/-]{1,80}\(\s*\{.*\}\s*\)$")
ERROR_WORDS = re.compile(
    r"error|exception|traceback|fail|fatal|panic|denied|not found|cannot|timed? ?out|refused|invalid"
    r"|错误|失败|异常|报错|超时|拒绝",
    re.IGNORECASE,
)
REFERENCE = re.compile(
    r"https?://\S+"  # address
    r"|(?<![\w.~-])[\w.~-]*(?:/[\w.~-]+)+"  # path
    r"|(?<![\w-])[\w-]+\.[A-Za-z][A-Za-z0-9]{0,4}\b(?!\()"  # file name
    r"|(?<![\w-])[A-Z][A-Z0-9]*[-_]\d[\w-]*"  # ticket or order number
    r"|\b(?=[a-zA-Z]*\d)(?=\d*[a-zA-Z])[0-9a-zA-Z]{6,}\b"  # generated id or hash
    r"|`[^`\n]+`"  # quoted code
)
CARRIED_LINE = re.compile(r"- \[(?P<turn>[^\]\n]{1,40})\] (?:(?P<role>\w+)(?: \([^()\n]{1,40}\))?: )?")


class Piece(NamedTuple):
    """One sentence or line, and its origin."""

    order: int
    """Position among all pieces."""
    source: int
    """Index of its message among the sources; -1 for the earlier summary."""
    place: int
    """Position within its message; neighbours differ by 1."""
    is_last: bool
    kind: PieceKind
    role: str
    turn_id: str
    text: str
    """A single line without surrounding blanks."""
    speaker: str = ""
    """As `SourceMessage.speaker`; empty for an earlier summary, whose lines include it."""


def pieces_of(sources: Sequence[SourceMessage]) -> list[Piece]:
    """All pieces of the sources, in order."""
    found: list[Piece] = []
    for number, source in enumerate(sources):
        said = _result_lines(source.text) if source.role == "tool" else enumerate(_said(source.text))
        parts = list(said)
        for place, (kind, text) in parts:
            is_last = place == parts[-1][0]
            found.append(
                Piece(
                    len(found),
                    number,
                    place,
                    is_last,
                    kind,
                    source.role,
                    source.turn_id,
                    text,
                    source.speaker,
                )
            )
    return found


def pieces_of_earlier(summary: str) -> list[Piece]:
    """The lines of an earlier summary, in order; lines by a model are split into sentences."""
    found: list[Piece] = []
    for line in _lines(summary):
        carried = CARRIED_LINE.match(line)
        role, turn_id = (carried["role"] or "", carried["turn"]) if carried else ("", "")
        for text in [line] if carried else _sentences(line):
            text = shorten(text, 2 * LONGEST_PIECE)
            found.append(Piece(len(found), -1, len(found), False, "earlier", role, turn_id, text))
    return found


def shorten(text: str, limit: int) -> str:
    """The text, or its start up to a blank with an ellipsis; at most `limit` characters."""
    if len(text) <= limit:
        return text
    cut = text.rfind(" ", limit * 2 // 3, limit - 1)
    return text[: cut if cut > 0 else max(0, limit - 1)].rstrip() + "…"


def _said(text: str) -> Iterator[tuple[PieceKind, str]]:
    fenced = False
    for line in _lines(text):
        if line.startswith(FENCES):
            fenced = not fenced
        elif fenced:
            yield "code", shorten(line, LONGEST_PIECE)
        elif CALL_LINE.match(line):
            yield "call", shorten(line, LONGEST_CALL)
        else:
            for sentence in _sentences(line):
                yield "said", sentence


def _result_lines(text: str) -> Iterator[tuple[int, tuple[PieceKind, str]]]:
    """The lines of a tool result that may be quoted, each with its number."""
    lines = [part for line in _lines(text) if not line.startswith(FENCES) for part in _split_long(line)]
    kept = set(range(min(1, len(lines))))
    for wanted, most in ((ERROR_WORDS, LINES_PER_RESULT // 2), (REFERENCE, LINES_PER_RESULT)):
        matching = [n for n, line in enumerate(lines) if n not in kept and wanted.search(line)]
        kept.update(_spread(matching, most - len(kept) + 1))
    for number in sorted(kept):
        yield number, ("result", lines[number])


def _spread(numbers: list[int], most: int) -> Iterable[int]:
    """At most `most` of the numbers, evenly spread over the list, including the last one."""
    if len(numbers) <= most:
        return numbers
    return (numbers[-1 - step * len(numbers) // most] for step in range(most))


def _lines(text: str) -> Iterator[str]:
    if len(text) > LONGEST_MESSAGE:
        text = f"{text[: LONGEST_MESSAGE // 2]}\n{text[-LONGEST_MESSAGE // 2 :]}"
    for line in text.splitlines():
        folded = " ".join(line.split())
        if any(map(str.isalnum, folded)) or folded.startswith(FENCES):
            yield folded


def _sentences(line: str) -> list[str]:
    if len(line) < SHORTEST_LINE_TO_CUT and len(line.encode(errors="replace")) < SHORTEST_LINE_TO_CUT:
        return [line]
    return [part for sentence in SENTENCE_END.split(line) if sentence for part in _split_long(sentence)]


def _split_long(line: str) -> list[str]:
    parts: list[str] = []
    while len(line) > LONGEST_PIECE:
        cut = max(
            line.rfind(mark, LONGEST_PIECE // 2, LONGEST_PIECE) for mark in (", ", "，", "; ", '","', "},")
        )
        if cut < 0:
            cut = line.rfind(" ", LONGEST_PIECE // 2, LONGEST_PIECE)
        cut = LONGEST_PIECE if cut < 0 else cut + 1
        parts.append(line[:cut].rstrip())
        line = line[cut:].lstrip()
    return [*parts, line] if line else parts


Cue = Literal["decision", "rule", "request", "fact", "error", "open", "filler"]

ENGLISH: dict[Cue, str] = {
    "decision": """decide decided decides decision agreed agree choose chose chosen switch switched instead
        finally confirmed conclusion concluded resolved fixed changed replaced renamed removed moved
        migrated committed merged deployed released approved rejected cancelled canceled booked
        selected settled""",
    "rule": """must never always don't not mustn't should shouldn't only except unless important required
        require requires constraint limit prefer prefers preference avoid remember deadline budget
        policy ensure""",
    "request": """please need needs want wants help let's can could would how why what which when where who
        implement write create build make fix update explain find check review""",
    "fact": """i'm i've i'd my mine we're we've our name called lives live born birthday favorite favourite
        allergic wife husband daughter son mother father sister brother friend team company works
        working because reason recently completed achieved scored improved started finished planned
        plan planning schedule scheduled""",
    "error": """error errors exception failed fails failure failing broken bug crash crashed denied timeout
        invalid missing wrong cannot can't couldn't unable traceback regression conflict rejected
        undefined""",
    "open": """todo fixme next remaining pending unresolved unfinished blocked later yet still tomorrow
        follow-up waiting unclear question questions tbd wip""",
    "filler": """certainly absolutely glad happy hope hopefully feel hesitate welcome thanks thank great
        wonderful excellent perfect perfectly sounds looks helpful solid sure assist further
        additional""",
}
CHINESE: dict[Cue, tuple[str, ...]] = {
    "decision": (
        "决定",
        "改为",
        "改成",
        "选择了",
        "确认",
        "同意",
        "已经",
        "最后",
        "结论",
        "解决了",
        "完成了",
    ),
    "rule": ("必须", "不要", "不能", "务必", "只能", "需要", "应该", "重要", "截止", "记住", "禁止", "优先"),
    "request": ("请", "帮我", "能不能", "可以吗", "怎么", "为什么", "什么", "如何", "推荐"),
    "fact": (
        "我叫",
        "我是",
        "我的",
        "我在",
        "我去",
        "我们",
        "喜欢",
        "名字",
        "生日",
        "计划",
        "因为",
        "打算",
        "觉得",
    ),
    "error": ("错误", "失败", "异常", "报错", "无法", "问题", "超时", "故障", "崩溃"),
    "open": ("待办", "下一步", "未完成", "还没", "稍后", "明天", "下周", "等待", "尚未", "？"),
    "filler": (
        "希望对你有",
        "随时",
        "很高兴",
        "不客气",
        "祝你",
        "没问题",
        "当然可以",
        "作为人工智能",
        "作为一个",
    ),
}
WEIGHTS: dict[Cue, float] = {
    "decision": 1.6,
    "rule": 0.9,
    "request": 0.4,
    "fact": 1.0,
    "error": 1.4,
    "open": 0.8,
    "filler": -1.4,
}
CUE_OF_WORD: dict[str, Cue] = {word: cue for cue, words in ENGLISH.items() for word in words.split()}


def cues_in(words: list[str], text: str) -> set[Cue]:
    """The cues in a text; `words` are its words in lower case."""
    cues: set[Cue] = {CUE_OF_WORD[word] for word in words if word in CUE_OF_WORD}
    if not text.isascii():
        for cue, marks in CHINESE.items():
            if any(mark in text for mark in marks):
                cues.add(cue)
    return cues


WORD = re.compile(r"[a-z0-9_]+(?:['-][a-z]+)?|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
NUMBER = re.compile(r"\d[\d.,:%]*|[一二三四五六七八九十百千万]+(?=[年月日天个次元])")
NAME = re.compile(r"(?<=[a-z,;:(] )[A-Z][\w'-]+|《[^》]+》|“[^”]{2,}”")
IDENTIFIER = re.compile(
    r"\b[a-z]+(?:_[a-z0-9]+)+\b|\b[a-z]+[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w+|\b[A-Z]{2,}_[A-Z_]+"
)

ROLE_WORTH = {"user": 2.6, "assistant": 1.2, "system": 1.0, "tool": 0.5}
OTHER_WORTH = 1.4
KIND_WORTH = {"said": 0.0, "call": -0.4, "result": 0.0, "code": -1.2, "earlier": 0.0}
WANTED_WORTH = 1.5
RARE = 2
"""A word is rare if it occurs in at most this many pieces."""
LEAST_WORTH = 0.05
KEPT_DETAILS = 2048
"""Pieces whose detail worth is cached, because a summary is extended many times."""
HEADING_LOSS = 1.0
SHORT_SENTENCE = 45
"""Characters; a shorter sentence without details is a reply such as "Yes, that sounds good"."""
SHORT_LOSS = 1.0


def worths(pieces: Sequence[Piece], instructions: str = "") -> list[float]:
    """The worth of each piece, always positive; words from `instructions` increase it."""
    words_of = [WORD.findall(piece.text.lower()) for piece in pieces]
    frequency: Counter[str] = Counter()
    for words in words_of:
        frequency.update(set(words))
    wanted = {word for word in WORD.findall(instructions.lower()) if len(word) > 3 or not word.isascii()}
    return [_worth(piece, words, frequency, wanted) for piece, words in zip(pieces, words_of, strict=True)]


def _worth(piece: Piece, words: list[str], frequency: Counter[str], wanted: set[str]) -> float:
    text = piece.text
    worth = ROLE_WORTH.get(piece.role, OTHER_WORTH) + KIND_WORTH[piece.kind]
    details = _detail_worth(text)
    worth += details + sum(WEIGHTS[cue] for cue in cues_in(words, text))
    if words:
        rare = sum(1 for word in words if frequency[word] <= RARE and not word.isdigit())
        worth += min(1.5, rare / sqrt(len(words)) * 0.6)
    if not wanted.isdisjoint(words):
        worth += WANTED_WORTH
    if piece.place == 0 and piece.kind != "earlier":
        worth += 0.8
    elif piece.is_last:
        worth += 0.3
    if piece.role == "user" and text.endswith(("?", "？")):
        worth += 0.5
    if text.startswith("#") or text.rstrip("*").endswith(":"):
        worth -= HEADING_LOSS
    elif not details and len(text) < (SHORT_SENTENCE if text.isascii() else SHORT_SENTENCE // 3):
        worth -= SHORT_LOSS
    return max(LEAST_WORTH, worth)


@lru_cache(KEPT_DETAILS)
def _detail_worth(text: str) -> float:
    """The worth of details that cannot be reconstructed: numbers, addresses, paths, ids, names."""
    details = 0.5 * min(2, len(NAME.findall(text)))
    # Plain lower-case words, which make up most of any text, match none of the other patterns.
    unusual = " ".join([word for word in text.split() if not (word.islower() and word.isalpha())])
    if unusual:
        details += 0.5 * min(3, len(NUMBER.findall(unusual)))
        details += 0.8 * min(2, len(REFERENCE.findall(unusual)))
        details += 0.4 * min(2, len(IDENTIFIER.findall(unusual)))
    return details


TOKENS_PER_PART = 90
"""The range is divided into one part per this many tokens; the summary quotes something from each part."""
CHARACTERS_OF_OVERHEAD = 60
"""Overhead of a bullet, so that short pieces are not considered free."""
MISSES_BEFORE_END = 60
"""Consecutive pieces that do not fit, after which the summary counts as full."""
SAME_MESSAGE_DISCOUNT = 0.22


class Selection:
    """The pieces chosen so far, and their tokens."""

    def __init__(self, tokens_of: Callable[[Piece], int]) -> None:
        self._tokens_of = tokens_of
        self._seen: set[str] = set()
        self.chosen: dict[int, Piece] = {}
        self.tokens = 0

    def add(self, piece: Piece, budget: int) -> bool:
        """Choose a piece. Returns false if it exceeds `budget`, or an equal piece was already chosen."""
        if piece.order in self.chosen:
            return False
        essence = "".join(filter(str.isalnum, piece.text)).lower()
        if essence in self._seen:
            return False
        tokens = self._tokens_of(piece)
        if self.tokens + tokens > budget:
            return False
        self._seen.add(essence)
        self.chosen[piece.order] = piece
        self.tokens += tokens
        return True


def select(
    pieces: Sequence[Piece], worths: Sequence[float], budget: int, tokens_of: Callable[[Piece], int]
) -> list[Piece]:
    """The most valuable pieces that fit into `budget` tokens, in order, some from every part of the range.

    Calls `tokens_of` at most once per piece.
    """
    values = _values(pieces, worths)
    selection = Selection(_remember(tokens_of))
    for piece in _best_of_each_part(pieces, values, budget // TOKENS_PER_PART):
        selection.add(piece, budget)
    misses = 0
    for piece in sorted(pieces, key=lambda piece: -values[piece.order]):
        if piece.order in selection.chosen:
            continue
        misses = 0 if selection.add(piece, budget) else misses + 1
        if misses == MISSES_BEFORE_END:
            break
    return [selection.chosen[order] for order in sorted(selection.chosen)]


def _values(pieces: Sequence[Piece], worths: Sequence[float]) -> list[float]:
    """Worth relative to length; each further piece of the same message counts less."""
    values = [
        worth / (len(piece.text) + CHARACTERS_OF_OVERHEAD) ** 0.5
        for piece, worth in zip(pieces, worths, strict=True)
    ]
    rank_in_source: dict[int, int] = {}
    for piece in sorted(pieces, key=lambda piece: -values[piece.order]):
        rank = 0
        if piece.source >= 0:
            rank = rank_in_source.get(piece.source, 0)
            rank_in_source[piece.source] = rank + 1
        values[piece.order] /= 1 + SAME_MESSAGE_DISCOUNT * rank
    return values


def _best_of_each_part(pieces: Sequence[Piece], values: Sequence[float], parts: int) -> list[Piece]:
    """The most valuable piece of each of `parts` equal parts of the range, most valuable first."""
    if not pieces or parts < 1:
        return []
    places = [piece.source if piece.source >= 0 else piece.order for piece in pieces]
    extent = places[-1] - places[0] + 1
    parts = min(parts, extent)
    best: dict[int, Piece] = {}
    for piece, place in zip(pieces, places, strict=True):
        part = (place - places[0]) * parts // extent
        if part not in best or values[piece.order] > values[best[part].order]:
            best[part] = piece
    return sorted(best.values(), key=lambda piece: -values[piece.order])


def _remember(tokens_of: Callable[[Piece], int]) -> Callable[[Piece], int]:
    known: dict[int, int] = {}

    def remembered(piece: Piece) -> int:
        tokens = known.get(piece.order)
        if tokens is None:
            tokens = known[piece.order] = tokens_of(piece)
        return tokens

    return remembered


LEAST_SHARE_OF_EARLIER, GREATEST_SHARE_OF_EARLIER = 0.4, 0.75
"""Minimum and maximum share of the target for an earlier summary."""
CHARACTERS_PER_TOKEN = 4
MOST_ON_THE_LOOP = 80_000
"""Maximum characters summarised on the event loop; more would delay other requests."""
NOTHING_SAID = "(no text)"


class DeterministicSummariser:
    """Quotes the most important sentences and lines, in order, each with its turn.

    The same request gives the same summary. Instructions in the sources are only quoted, never followed.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    async def summarise(self, request: SummaryRequest) -> Summary:
        """A summary of at most `target_tokens` tokens; large sources are processed in a thread."""
        if sum(len(source.text) for source in request.sources) > MOST_ON_THE_LOOP:
            return Summary(await asyncio.to_thread(self.text_for, request), "deterministic")
        return Summary(self.text_for(request), "deterministic")

    def text_for(self, request: SummaryRequest) -> str:
        """The text of the summary: bullets, oldest first; empty only if there is nothing to cover."""
        if not request.sources and not request.earlier.strip():
            return ""
        target = max(1, request.target_tokens)
        earlier = pieces_of_earlier(request.earlier)
        recent = pieces_of(request.sources)
        for_earlier = int(target * _share_of_earlier(earlier, recent)) if recent else target
        worth = worths(earlier, request.instructions)
        carried = self._select(earlier, worth, for_earlier)
        kept = self._select(recent, worths(recent, request.instructions), target - self._tokens(carried))
        if len(carried) < len(earlier):
            carried = self._select(earlier, worth, target - self._tokens(kept))
        return self._fitted(carried, kept, request.sources, target)

    def _select(self, pieces: list[Piece], worth: Sequence[float], budget: int) -> list[Piece]:
        return select(pieces, worth, budget, self._bullet_tokens) if budget > 0 else []

    def _bullet_tokens(self, piece: Piece) -> int:
        return self._counter.count(_bullet(piece) + "\n")

    def _tokens(self, pieces: Sequence[Piece]) -> int:
        return self._counter.count(_join(pieces)) + 1 if pieces else 0

    def _fitted(
        self, carried: list[Piece], kept: list[Piece], sources: Sequence[SourceMessage], target: int
    ) -> str:
        """The bullets; if they exceed the target after all, without some from the middle."""
        chosen = [*carried, *kept]
        while chosen:
            text = _join(chosen)
            if self._counter.count(text) <= target:
                return text
            chosen.pop(len(chosen) // 2)
        return self._one_line(sources, target)

    def _one_line(self, sources: Sequence[SourceMessage], target: int) -> str:
        """As much of the newest text as fits, for a target too small for any piece."""
        said = next((source for source in reversed(sources) if source.text.strip()), None)
        text = " ".join(said.text.split()) if said else NOTHING_SAID
        turn_id = said.turn_id if said else sources[-1].turn_id if sources else "earlier"
        limit = target * CHARACTERS_PER_TOKEN
        while limit > 0:
            for line in (f"- [{turn_id}] {shorten(text, limit)}", shorten(text, limit)):
                if self._counter.count(line) <= target:
                    return line
            limit //= 2
        return "…"


def _share_of_earlier(earlier: Sequence[Piece], recent: Sequence[Piece]) -> float:
    """The share of the target for an earlier summary, by the number of its turns and of new turns."""
    before = len({piece.turn_id for piece in earlier})
    added = len({piece.turn_id for piece in recent})
    return min(max(before / (before + added), LEAST_SHARE_OF_EARLIER), GREATEST_SHARE_OF_EARLIER)


def _bullet(piece: Piece) -> str:
    if piece.kind == "earlier":
        return (
            piece.text if CARRIED_LINE.match(piece.text) else f"- [earlier] {piece.text.removeprefix('- ')}"
        )
    return f"- [{piece.turn_id}] {piece.speaker}: {piece.text}"


def _join(pieces: Sequence[Piece]) -> str:
    """One bullet per piece; consecutive sentences of a message share one."""
    lines: list[str] = []
    before: Piece | None = None
    for piece in pieces:
        if before and before.source == piece.source >= 0 and before.place + 1 == piece.place and lines:
            lines[-1] = f"{lines[-1]} {piece.text}"
        else:
            lines.append(_bullet(piece))
        before = piece
    return "\n".join(lines)
