"""Matches what is left between anchors by text and place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sidecar.messages.sequences import MAX_CELLS, common_subsequence, rising
from sidecar.messages.sides import Gap, Sides

_TELLING = 24
"""Characters that a run of equal texts must have to be believed away from any anchor."""

Pair = tuple[int, int]
"""Index in the stored history, index in the transcript."""


def match_text(sides: Sides, gap: Gap, *, whole: bool, from_start: bool) -> None:
    """Matches messages of equal text inside `gap`, the surest first."""
    is_first = gap.stored == 0 and gap.transcript == 0
    if gap.after_anchor or (is_first and whole and from_start):
        gap = _trim_front(sides, gap)
    if gap.before_anchor:
        gap = _trim_back(sides, gap)
    if gap.is_empty:
        return
    if whole or gap.before_anchor:
        _take(sides, _believable(sides, gap, _pairs(sides, gap)))
    elif not gap.after_anchor:
        _take(sides, _overlap(sides, gap))


def _trim_front(sides: Sides, gap: Gap) -> Gap:
    while not gap.is_empty and _is_next(sides, gap.stored, gap.transcript, gap):
        sides.found[gap.transcript] = gap.stored
        gap = gap._replace(stored=gap.stored + 1, transcript=gap.transcript + 1, after_anchor=True)
    return gap


def _trim_back(sides: Sides, gap: Gap) -> Gap:
    while not gap.is_empty and _is_next(sides, gap.stored_stop - 1, gap.transcript_stop - 1, gap):
        sides.found[gap.transcript_stop - 1] = gap.stored_stop - 1
        gap = gap._replace(stored_stop=gap.stored_stop - 1, transcript_stop=gap.transcript_stop - 1)
    return gap


def _is_next(sides: Sides, stored: int, transcript: int, gap: Gap) -> bool:
    return sides.same_text(stored, transcript, gap) or sides.same_calls_in_place(stored, transcript, gap)


def _pairs(sides: Sides, gap: Gap) -> list[Pair]:
    """Pairs of equal text in ascending order: texts that occur once first, then what fits between them."""
    found: list[Pair] = []
    open_gaps = [gap]
    while open_gaps:
        part = open_gaps.pop()
        anchors = _unique_pairs(sides, part, gap)
        if not anchors:
            found += _common_pairs(sides, part, gap)
            continue
        found += anchors
        stored, transcript = part.stored, part.transcript
        for s, t in [*anchors, (part.stored_stop, part.transcript_stop)]:
            between = part._replace(stored=stored, stored_stop=s, transcript=transcript, transcript_stop=t)
            if not between.is_empty:
                open_gaps.append(between)
            stored, transcript = s + 1, t + 1
    return sorted(found)


def _unique_pairs(sides: Sides, part: Gap, gap: Gap) -> list[Pair]:
    stored = _once((sides.stored[i].keys.text, i) for i in range(part.stored, part.stored_stop))
    seen = _once((sides.transcript[i].keys.text, i) for i in range(part.transcript, part.transcript_stop))
    pairs: list[Pair] = []
    for text, t in seen.items():
        s = stored.get(text, -1)
        if s >= 0 and t >= 0 and sides.same_text(s, t, gap):
            pairs.append((s, t))
    return [pairs[position] for position in rising([s for s, _ in pairs])] if pairs else pairs


def _once(texts: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The index of each text, -1 for one that occurs again."""
    found: dict[int, int] = {}
    for text, index in texts:
        found[text] = -1 if text in found or text == 0 else index
    return found


def _common_pairs(sides: Sides, part: Gap, gap: Gap) -> list[Pair]:
    """A longest common subsequence, leaning to the anchor in front of the gap, otherwise to the end."""
    late = not gap.after_anchor
    stored = range(part.stored, part.stored_stop)
    transcript = range(part.transcript, part.transcript_stop)
    if len(stored) * len(transcript) > MAX_CELLS:
        room = max(1, MAX_CELLS // len(transcript))
        stored = stored[-room:] if late else stored[:room]
        transcript = transcript[: MAX_CELLS // len(stored)]
    if late:
        stored, transcript = stored[::-1], transcript[::-1]
    matches = _match_bits(sides, stored, transcript, gap.is_enclosed)
    if not any(matches):
        return []
    return [(stored[column], transcript[row]) for row, column in common_subsequence(len(stored), matches)]


def _match_bits(sides: Sides, stored: Sequence[int], transcript: Sequence[int], enclosed: bool) -> list[int]:
    """For each message of the transcript the stored ones it may equal, as bits by place in `stored`."""
    texts: dict[int, int] = {}
    stamps: dict[int, int] = {}
    inner: dict[str | None, int] = {}
    hosts: dict[str | None, int] = {}
    for place, index in enumerate(stored):
        item = sides.stored[index]
        bit = 1 << place
        if item.keys.text:
            texts[item.keys.text] = texts.get(item.keys.text, 0) | bit
        stamps[item.keys.stamp] = stamps.get(item.keys.stamp, 0) | bit
        inner[item.inner_id] = inner.get(item.inner_id, 0) | bit
        hosts[item.host_id] = hosts.get(item.host_id, 0) | bit
    rows: list[int] = []
    for index in transcript:
        item = sides.transcript[index]
        row = texts.get(item.keys.text, 0)
        if row and item.message_id is not None:
            row &= hosts.get(None, 0) | hosts.get(item.message_id, 0)
        if row and item.inner_id is not None:
            row &= inner.get(None, 0) | inner.get(item.inner_id, 0)
        if row and item.keys.stamp and not enclosed:
            row &= stamps.get(0, 0) | stamps.get(item.keys.stamp, 0)
        rows.append(row)
    return rows


def _believable(sides: Sides, gap: Gap, pairs: list[Pair]) -> list[Pair]:
    """The runs among `pairs` that are no chance, where the gap does not lie between two anchors.

    Either enough is said, or something is said that is said once, and more than one message agrees, or the
    run starts with the first message that the transcript has behind the anchor (ends with the last one before
    it): then the host merely lacks messages.
    """
    if gap.is_enclosed or not pairs:
        return pairs
    once = {sides.transcript[t].keys.text for _, t in _unique_pairs(sides, gap, gap)}
    backwards = gap.before_anchor
    due = gap.transcript_stop - 1 if backwards else gap.transcript
    kept: list[Pair] = []
    runs = _runs(pairs)
    for run in reversed(runs) if backwards else runs:
        first, last = (run[-1][1], run[0][1]) if backwards else (run[0][1], run[-1][1])
        telling = any(sides.transcript[t].keys.text in once for _, t in run)
        telling = telling and (first == due or len(run) > 1)
        if telling or sum(sides.transcript[t].size for _, t in run) >= _TELLING:
            kept += run
            due = last - 1 if backwards else last + 1
    return kept


def _runs(pairs: list[Pair]) -> list[list[Pair]]:
    """Stretches of pairs that directly follow each other on both sides."""
    runs: list[list[Pair]] = []
    for stored, transcript in pairs:
        if runs and runs[-1][-1] == (stored - 1, transcript - 1):
            runs[-1].append((stored, transcript))
        else:
            runs.append([(stored, transcript)])
    return runs


def _overlap(sides: Sides, gap: Gap) -> list[Pair]:
    """The longest beginning of the transcript that is also the end of the stored history."""
    if gap.stored_stop != len(sides.stored):
        return []
    for length in range(min(gap.stored_stop - gap.stored, gap.transcript_stop - gap.transcript), 0, -1):
        start = gap.stored_stop - length
        if all(sides.same_text(start + n, gap.transcript + n, gap) for n in range(length)):
            return [(start + n, gap.transcript + n) for n in range(length)]
    return []


def _take(sides: Sides, pairs: list[Pair]) -> None:
    for stored, transcript in pairs:
        sides.found[transcript] = stored
