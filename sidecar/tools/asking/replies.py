"""Reads what a model answers: further searches, or claims that name their messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import MsgspecError, Struct, json

from sidecar.tools.asking.evidence import Piece, Wanted

MOST_SEARCHES = 4
"""Searches of one reply that are done."""
MOST_CLAIMS = 20
LONGEST_CLAIM = 2000
LONGEST_TEXT = 300
"""Characters of what is searched for."""
DETAIL = re.compile(r"[\w./:@#-]*\d[\w./:@#-]*|[\w-]+(?:[/_][\w.-]+)+|`[^`\n]{2,}`")
"""Numbers, ids, paths, what stands in back quotes: what a claim can only have from a message."""
EDGES = "`.:,;-"


class _Search(Struct):
    words: str = ""
    literal: str = ""
    regex: str = ""
    first: int = 0
    last: int = 0


class _Claim(Struct):
    text: str
    messages: list[int] = []


class _Reply(Struct):
    searches: list[_Search] = []
    claims: list[_Claim] | None = None


class Claim(NamedTuple):
    """One statement with the messages that it rests on."""

    text: str
    positions: list[int]


class Reply(NamedTuple):
    """What the model wants: to look further, or to answer."""

    searches: list[Wanted]
    claims: list[Claim] | None
    """`None` as long as it does not answer; empty where it found no answer."""


def read_reply(text: str) -> Reply | None:
    """The reply in a model's text, `None` where there is none."""
    begin, end = text.find("{"), text.rfind("}")
    if begin < 0 or end < begin:
        return None
    try:
        reply = json.decode(text[begin : end + 1], type=_Reply, strict=False)
    except (MsgspecError, RecursionError):
        return None
    searches = [wanted for search in reply.searches[:MOST_SEARCHES] if (wanted := _wanted(search))]
    if reply.claims is None and not searches:
        return None
    claims = reply.claims
    if claims is None:
        return Reply(searches, None)
    said = [
        Claim(" ".join(claim.text.split())[:LONGEST_CLAIM], claim.messages) for claim in claims[:MOST_CLAIMS]
    ]
    return Reply([], [claim for claim in said if claim.text])


def supported(claim: Claim, pieces: Mapping[int, Piece], question: str) -> Claim | None:
    """The claim with those of its messages that were read; `None` where they do not say it.

    Every number, id and path of it has to stand in one of them, or in the question.
    """
    positions = [position for position in dict.fromkeys(claim.positions) if position in pieces]
    if not positions:
        return None
    said = "\n".join([question, *(pieces[position].whole for position in positions)])
    folded = said.casefold()
    details = {detail.strip(EDGES).casefold() for detail in DETAIL.findall(claim.text)}
    return Claim(claim.text, positions) if all(detail in folded for detail in details) else None


def _wanted(search: _Search) -> Wanted | None:
    for kind, text in (("words", search.words), ("literal", search.literal), ("regex", search.regex)):
        if text.strip():
            return Wanted(kind, text.strip()[:LONGEST_TEXT])
    if search.first > 0:
        return Wanted("range", "", search.first, max(search.last, search.first))
    return None
