"""Regular expressions that take linear time, whoever wrote them."""

import re
from collections.abc import Callable
from typing import Any

from sidecar.store.indexing.folding import fold
from sidecar.store.search import SearchError

_MEMORY = 16 << 20
"""Bytes that a compiled expression may take."""
_SHORTEST = 2
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


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Tells whether a text has a match for an expression of RE2.

    Raises:
        SearchError: it is no expression of RE2, or RE2 is not installed.
    """
    search = _search(pattern)
    return lambda text: search(_encodable(text)) is not None


def compile_finder(pattern: str) -> Callable[[str], tuple[int, int] | None]:
    """Tells where in a text the first match for an expression of RE2 begins and ends, in characters.

    Raises:
        SearchError: as `compile_pattern`.
    """
    search = _search(pattern)

    def find(text: str) -> tuple[int, int] | None:
        found = search(_encodable(text))
        return found.span() if found else None

    return find


def _search(pattern: str) -> Callable[[str], Any]:
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
        return engine.compile(_encodable(pattern), options).search
    except engine.error as error:
        raise SearchError(f"not a regular expression of RE2: {_reason(error)}") from None


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
    return [fold(text[:-1]) for text in found if len(text) > _SHORTEST]


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
