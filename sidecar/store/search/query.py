"""What a query asks of a message, and what the indexes are asked for it."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from sidecar.store.records import MessageRow, SessionRecord, role_code, turn_name
from sidecar.store.search import MOST_PATTERN, Extract, Searchable, SearchError, SearchQuery, plain_text
from sidecar.store.search.terms import (
    LONGEST_RUN,
    PART,
    fold,
    index_both,
    index_words,
    is_cjk,
    pairs,
    parts_of,
    runs,
    stem,
)

_LONGEST = 8 << 20
"""Characters of a message that are indexed; what is longer is found by its beginning."""
_MOST_PARTS = 64
"""Parts of a literal that the index is asked for; the whole literal is looked for in what it names."""
_MOST_LITERAL = 2_000
"""Characters of a literal that parts are made of."""
_MEMORY = 16 << 20
"""Bytes that a compiled expression may take."""
_MOST_WORK = 30_000_000
"""States of an expression times bytes of a text that are tried in one piece: a third of a second at worst."""
_SHORTEST_PIECE = 16 << 10
_OVERLAP = 4 << 10
"""Bytes that pieces of a long text have in common."""
_INERT = re.compile(r"[\x00-\x7f\u4e00-\u9fff]*")
"""Characters that folding joins to no others; of what is not ASCII, the common Chinese ones."""
_FLAGS = re.compile(r"\(\?[imsU]+\)")
_ATOM = re.compile(
    r"""
    (?: (?P<literal> [^\\\[\](){}|^$.*+?] )
      | \\ (?P<escaped> [^A-Za-z0-9] )
      | \\ [dDwWsSbBAztnrfv]
      | [.^$]
      | \[ \^? \]? (?: \\. | [^\]\\] )* \]
      | \( (?: \\. | \[ [^\]]* \] | [^()\\\[] )* \)
    )
    (?P<repeat> [*+?]\?? | \{ [0-9,]* \} \?? )?
    """,
    re.VERBOSE | re.DOTALL,
)
"""A part of an expression without alternatives or groups in groups."""


Groups = Sequence[Sequence[str]]
"""Terms of which a message has one out of every group."""


class Narrowing(NamedTuple):
    """What is asked of a message beside its text."""

    roles: tuple[str, ...]
    """Codes."""
    tool: str | None
    turn_id: str | None
    since_ms: int | None
    until_ms: int | None

    @property
    def by_time(self) -> bool:
        """Whether times matter."""
        return self.since_ms is not None or self.until_ms is not None

    @property
    def groups(self) -> list[list[str]]:
        """What the index knows of it."""
        found = [[_facet("r", role) for role in self.roles]] if self.roles else []
        if self.tool is not None:
            found.append([_facet("n", self.tool)])
        if self.turn_id is not None:
            found.append([_facet("t", self.turn_id)])
        return found

    def at(self, timestamp_ms: int) -> bool:
        """Whether a message of this time may be found."""
        since, until = self.since_ms, self.until_ms
        return (since is None or timestamp_ms >= since) and (until is None or timestamp_ms <= until)

    def admits(self, row: MessageRow) -> bool:
        """Whether a message may be found, as far as its row tells."""
        return (
            self.at(row.timestamp_ms)
            and (not self.roles or row.role in self.roles)
            and (self.turn_id is None or self.turn_id == turn_name(row.turn, row.turn_label))
        )

    def says(self, searchable: Searchable) -> bool:
        """Whether it may be found, as far as its content tells."""
        return self.tool is None or self.tool in searchable.tools


def narrowing(query: SearchQuery) -> Narrowing:
    """What a query asks of messages beside their text."""
    roles = tuple(map(role_code, query.roles))
    return Narrowing(roles, query.tool, query.turn_id, query.since_ms, query.until_ms)


def facets(row: MessageRow, searchable: Searchable) -> list[str]:
    """The terms of a message that stand for its role, turn and tools."""
    turn = turn_name(row.turn, row.turn_label)
    return [_facet("r", row.role), _facet("t", turn), *(_facet("n", tool) for tool in searchable.tools)]


def indexed_terms(row: MessageRow, owner: SessionRecord, extract: Extract, *, parts: bool) -> str:
    """What an index is given of a message, separated by spaces.

    Where its content cannot be read, that is all of the body as text, so that other messages are indexed.
    """
    try:
        searchable = extract(owner, row.body)
    except Exception as error:
        import logging

        logging.getLogger(__name__).error("a message cannot be read, and is indexed as text", exc_info=error)
        searchable = plain_text(owner, row.body)
    text = _encodable(searchable.text[:_LONGEST])
    words = set(text.split())
    return " ".join((index_both(words) if parts else index_words(words), *facets(row, searchable)))


class Matcher(NamedTuple):
    """What a literal or a regular expression looks for."""

    matches: Callable[[str], bool | None]
    """Whether the text of a message is found; `None` where time ran out over it."""
    groups: list[list[str]]
    """Terms that it must have."""
    parts: list[str]
    """Parts of words that it must have, for an index that knows these."""


def matcher(query: SearchQuery, over: Callable[[], bool]) -> Matcher:
    """What a query of the kind `literal` or `regex` looks for; `over` tells that there is no more time.

    Raises:
        SearchError: the expression cannot be understood.
    """
    if not query.text and (query.kind == "regex" or not query.is_narrowed):
        raise SearchError("there is nothing to look for: the text is empty")
    if query.kind == "literal":
        folded = fold(query.text)

        def holds(text: str) -> bool:
            return folded in fold(text)

        return Matcher(holds, *_required([folded[:_MOST_LITERAL]]))
    return Matcher(compile_pattern(query.text, over), *_required(required_text(query.text)))


def compile_pattern(pattern: str, over: Callable[[], bool] = lambda: False) -> Callable[[str], bool | None]:
    """Tells whether a text has a match for an expression of RE2, as `Matcher.matches`.

    An expression may take time for every state and every byte, and nothing interrupts it, so a long text is
    looked at in pieces. A match at the edge of a piece may owe itself to the edge: it does not count, and the
    next piece begins before it.

    Raises:
        SearchError: it is no expression of RE2, it is too long, or RE2 is not installed.
    """
    compiled = _compiled(pattern)
    search = compiled.search
    most = max(_MOST_WORK // max(compiled.programsize, 1), _SHORTEST_PIECE)

    def matches(text: str) -> bool | None:
        raw = text.encode("utf-8", "replace")
        for start in range(0, max(len(raw) - _OVERLAP, 1), most):
            if start and over():
                return None
            piece = raw[start : start + most + _OVERLAP]
            found = search(piece)
            if found is not None and (
                (start == 0 or found.start() > 0)
                and (found.end() < len(piece) or start + len(piece) == len(raw))
            ):
                return True
        return False

    return matches


def compile_finder(pattern: str) -> Callable[[str], tuple[int, int] | None]:
    """Tells where in a text the first match for an expression of RE2 begins and ends, in characters.

    Raises:
        SearchError: as `compile_pattern`.
    """
    compiled = _compiled(pattern)
    most = max(_MOST_WORK // max(compiled.programsize, 1), _SHORTEST_PIECE)

    def find(text: str) -> tuple[int, int] | None:
        found = compiled.search(_encodable(text[:most]))
        return found.span() if found else None

    return find


def required_text(pattern: str) -> list[str]:
    """Folded texts that every match has in it, as far as a simple look at the pattern tells.

    The last character is left out: behind it a combining mark may follow that folding joins to it.
    """
    if not _INERT.fullmatch(pattern):
        return []
    flags = _FLAGS.match(pattern)
    at = 0 if flags is None else flags.end()
    found = [""]
    while at < len(pattern):
        atom = _ATOM.match(pattern, at)
        if atom is None:
            return []
        at = atom.end()
        character = atom["literal"] or atom["escaped"]
        if character is None or atom["repeat"]:
            found.append("")
        else:
            found[-1] += character
    return [fold(text[:-1]) for text in found if len(text) >= PART]


def _required(texts: list[str]) -> tuple[list[list[str]], list[str]]:
    """The terms and parts of words that a text has if these are in it."""
    groups: dict[str, list[str]] = {}
    for text in texts:
        for run in runs(text):
            word = run[0]
            if is_cjk(word):
                groups.update((pair, [pair]) for pair in pairs(word))
            elif run.start() > 0 and run.end() < len(text) and len(word) <= LONGEST_RUN:
                groups[word] = [stem(word)]
    parts = sorted({part for text in texts for part in parts_of(text)})
    return list(groups.values()), parts[:: -(-len(parts) // _MOST_PARTS) or 1]


def _compiled(pattern: str) -> Any:
    if len(pattern) > MOST_PATTERN:
        raise SearchError(
            f"the regular expression has {len(pattern)} characters; at most {MOST_PATTERN} are looked for"
        )
    try:
        import re2  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise SearchError(
            "regular expressions need the package google-re2; look for a literal text instead"
        ) from None
    engine: Any = re2
    options = engine.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return engine.compile(_encodable(pattern), options)
    except engine.error as error:
        raise SearchError(f"not a regular expression of RE2: {_reason(error)}") from None


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


def _facet(kind: str, value: str) -> str:
    """A word that no text has but by intent: what it finds is looked at."""
    return f"\ue010{kind}{crc32(value.encode('utf-8', 'replace')):08x}"
