"""Ranks what a compaction left out: the sentences that instruct, commit or decide."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from sidecar.recall.instructions import instruction
from sidecar.recall.retrieval import Remark

Kind = Literal["instruction", "commitment", "decision"]
ORDER: tuple[Kind, ...] = ("instruction", "commitment", "decision")
LONGEST = 240
"""Characters of a sentence that are kept."""
SHORTEST_PART = 24
"""Characters of a sentence, at least, by which it is found in what is sent."""

_COMMITMENT = re.compile(
    r"(?i)\b(?:I(?:'ll| will| am going to|'m going to| promise to)|we(?:'ll| will| agreed to)|let me|todo:)\b"
    r"|(?:我会|我将|我们会|稍后会|答应)"
)
_DECISION = re.compile(
    r"(?i)\b(?:decided|agreed (?:on|that)|we chose|I chose|settled on|let's (?:go with|use|keep)|"
    r"go(?:ing)? with|switch(?:ed)? to|instead of|final(?:ly)? decision)\b|(?:决定|改为|改用|选择了|同意)"
)
_SENTENCE = re.compile(r"(?<=[.!?\n])\s+|(?<=[。！？])")


class Omission(NamedTuple):
    """A sentence of a message that is neither sent nor quoted in a summary."""

    kind: Kind
    text: str
    remark: Remark


def omissions(remarks: Iterable[Remark], sent: str, most: int) -> list[Omission]:
    """What of these messages somebody would miss, at most `most`: by kind, then the newest first.

    `sent` is everything that the model still sees.
    """
    visible = _plain(sent)
    found: dict[str, Omission] = {}
    for remark in sorted(remarks, key=lambda remark: -remark.position):
        for omission in _of(remark):
            essence = _plain(omission.text)
            if essence[: max(len(essence) * 2 // 3, SHORTEST_PART)] not in visible:
                found.setdefault(essence, omission)
    ranked = sorted(found.values(), key=lambda each: (ORDER.index(each.kind), -each.remark.position))
    return ranked[:most]


def _of(remark: Remark) -> list[Omission]:
    if remark.is_result or remark.calls or remark.role not in ("user", "assistant"):
        return []
    known = instruction(remark)
    if known is not None and known.rank < 2:
        return [Omission("instruction", known.text[:LONGEST], remark)]
    found: list[Omission] = []
    for sentence in _SENTENCE.split(remark.text):
        text = " ".join(sentence.split())[:LONGEST]
        if remark.role == "assistant" and _COMMITMENT.search(text):
            found.append(Omission("commitment", text, remark))
        elif _DECISION.search(text):
            found.append(Omission("decision", text, remark))
    return found[:2]


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()
