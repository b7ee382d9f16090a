"""Aligns the messages of a host's transcript with the stored history.

The rules of Identity apply from the strongest to the weakest: message id, inner id, tool-call ids, timestamp
with text, text alone. A key that occurs exactly once on both sides becomes an anchor. Of crossing anchors,
the longest increasing subsequence stays, and the next rule works in the gaps between anchors. Text alone is
trusted next to an anchor or between two; elsewhere only if enough of it agrees, so that an "ok" never makes
the alignment jump.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from sidecar.messages.contract import IdentityKeys

__all__ = ["LeadingKeys", "StoredItem", "TranscriptItem", "align"]

LeadingKeys = Callable[[int], Sequence[IdentityKeys]]
_Keys = Sequence[Hashable | None]
_REACH = 8
"""Stored messages before an anchor that are tried as the one that a host merged others into."""


def align(
    stored: Sequence[StoredItem],
    transcript: Sequence[TranscriptItem],
    *,
    whole: bool = True,
    from_start: bool = True,
    leading_keys: LeadingKeys | None = None,
) -> list[int | None]:
    """For each message of `transcript`, its index in `stored`, ascending, or `None` for an unknown message.

    `whole` means that the transcript starts at or after the start of the history; otherwise it is a piece
    appended to the end, and text alone counts only where the piece overlaps the end of the stored history.
    `from_start` is false if `stored` lacks the start of the history, so that the first messages of the two
    sides may differ.
    `leading_keys` returns, for an index of the transcript, the fingerprints of the message's beginnings
    (`identity.leading_keys`), which find a message that the host merged with the following one.
    """
    known = [index for index, item in enumerate(transcript) if _identifies(item)]
    sides = Sides(stored, [transcript[index] for index in known])
    _anchor(sides, *_message_ids(sides), sides.ids_agree)
    _anchor(sides, *_inner_ids(sides), sides.ids_agree)
    _anchor(sides, *_calls_with_text(sides), sides.may_be_same)
    _anchor_calls_in_place(sides)
    _anchor(sides, *_stamps(sides), sides.ids_agree)
    for _ in range(2):
        # A message left uncertain by the first round may be next to an anchor in the second.
        for gap in sides.gaps():
            match_text(sides, gap, whole=whole, from_start=from_start)
        _anchor_calls_in_place(sides)
        if leading_keys is not None:
            _match_merged(sides, lambda index: leading_keys(known[index]), from_start=whole and from_start)
    found: list[int | None] = [None] * len(transcript)
    for index, match in zip(known, sides.found, strict=True):
        found[index] = match
    return found


def _identifies(item: TranscriptItem) -> bool:
    """Whether the message has anything to match by; synthetic messages do not."""
    return item.message_id is not None or item.inner_id is not None or any(item.keys)


def _message_ids(sides: Sides) -> tuple[_Keys, _Keys]:
    return [item.message_id for item in sides.stored], [item.message_id for item in sides.transcript]


def _inner_ids(sides: Sides) -> tuple[_Keys, _Keys]:
    return [item.inner_id for item in sides.stored], [item.inner_id for item in sides.transcript]


def _stamps(sides: Sides) -> tuple[_Keys, _Keys]:
    stored = [item.keys.stamp or None for item in sides.stored]
    return stored, [item.keys.stamp or None for item in sides.transcript]


def _calls_with_text(sides: Sides) -> tuple[_Keys, _Keys]:
    """Call ids with text, because some providers reuse ids in every turn and only the text differs."""
    stored = [(item.keys.call, item.keys.text) if item.keys.call else None for item in sides.stored]
    transcript = [(item.keys.call, item.keys.text) if item.keys.call else None for item in sides.transcript]
    return stored, transcript


def _anchor_calls_in_place(sides: Sides) -> None:
    """Match equal call ids even if the host changed the text, provided that an anchor is adjacent."""
    stored = [item.keys.call or None for item in sides.stored]
    transcript = [item.keys.call or None for item in sides.transcript]
    _anchor(sides, stored, transcript, sides.same_calls_in_place)


def _anchor(sides: Sides, stored: _Keys, transcript: _Keys, agree: Callable[[int, int, Gap], bool]) -> None:
    """In every gap, match messages whose key occurs exactly once on both sides."""
    if all(key is None for key in transcript):
        return
    for gap in sides.gaps():
        kept = _unique_keys(stored, gap.stored, gap.stored_stop)
        pairs: list[tuple[int, int]] = []
        for key, t in _unique_keys(transcript, gap.transcript, gap.transcript_stop).items():
            s = kept.get(key, -1)
            if s >= 0 and t >= 0 and agree(s, t, gap):
                pairs.append((s, t))
        if pairs:
            for position in rising([s for s, _ in pairs]):
                s, t = pairs[position]
                sides.found[t] = s


def _unique_keys(keys: _Keys, start: int, stop: int) -> dict[Hashable, int]:
    """The index of each key between `start` and `stop`; -1 for a repeated key."""
    found: dict[Hashable, int] = {}
    for index in range(start, stop):
        key = keys[index]
        if key is not None:
            found[key] = -1 if key in found else index
    return found


def _match_merged(sides: Sides, leading_keys: LeadingKeys, *, from_start: bool) -> None:
    """Match a message that begins with the stored message expected at its place."""
    for gap in sides.gaps():
        is_first = gap.stored == 0 and gap.transcript == 0
        if gap.after_anchor or (is_first and from_start):
            _match_beginning(sides, gap, gap.transcript, [gap.stored], leading_keys)
        last = gap.transcript_stop - 1
        if gap.before_anchor and sides.found[last] is None:
            taken = sides.found[gap.transcript] is not None
            first = max(gap.stored + taken, gap.stored_stop - _REACH)
            _match_beginning(sides, gap, last, range(gap.stored_stop - 1, first - 1, -1), leading_keys)


def _match_beginning(
    sides: Sides, gap: Gap, transcript: int, due: Sequence[int], leading_keys: LeadingKeys
) -> None:
    for beginning in leading_keys(transcript):
        for stored in due:
            kept = sides.stored[stored].keys
            same = beginning.text != 0 and beginning.text == kept.text
            same = same or (beginning.call != 0 and beginning.call == kept.call)
            if same and sides.ids_agree(stored, transcript, gap):
                sides.found[transcript] = stored
                return


class StoredItem(NamedTuple):
    """A stored message, reduced to what alignment uses."""

    message_id: str
    host_id: str | None
    """The message id if the host assigned it; `None` if the sidecar did."""
    inner_id: str | None
    keys: IdentityKeys
    system: bool = False


class TranscriptItem(NamedTuple):
    """A message of the host's transcript, reduced to what alignment uses."""

    message_id: str | None
    """The id sent with the message, or named by a stub in it."""
    inner_id: str | None
    keys: IdentityKeys
    size: int = 0
    """Characters of text; a long matching text is evidence in itself."""
    system: bool = False


class Gap(NamedTuple):
    """A range of both sequences in which nothing is matched yet."""

    stored: int
    stored_stop: int
    transcript: int
    transcript_stop: int
    after_anchor: bool
    """The pair before the gap is matched."""
    before_anchor: bool
    """The pair after the gap is matched."""

    @property
    def is_empty(self) -> bool:
        """True if one side has nothing left to match."""
        return self.stored >= self.stored_stop or self.transcript >= self.transcript_stop

    @property
    def is_enclosed(self) -> bool:
        """True between two matched pairs, where order alone is strong evidence."""
        return self.after_anchor and self.before_anchor


class Sides:
    """Both sequences with the matches found so far."""

    __slots__ = ("found", "stored", "transcript")

    def __init__(self, stored: Sequence[StoredItem], transcript: Sequence[TranscriptItem]) -> None:
        self.stored = stored
        self.transcript = transcript
        self.found: list[int | None] = [None] * len(transcript)
        """For each message of the transcript, the index of its stored message."""

    def ids_agree(self, stored: int, transcript: int, gap: Gap) -> bool:
        """Whether a pair does not have two different message ids, both assigned by the host."""
        del gap
        seen = self.transcript[transcript].message_id
        kept = self.stored[stored]
        return seen is None or seen == kept.message_id or kept.host_id is None

    def may_be_same(self, stored: int, transcript: int, gap: Gap) -> bool:
        """Whether no differing id or timestamp contradicts a pair of equal text.

        Between two anchors a different timestamp is ignored, because some hosts renew timestamps.
        """
        if not self.ids_agree(stored, transcript, gap):
            return False
        kept = self.stored[stored]
        seen = self.transcript[transcript]
        if seen.keys.stamp and seen.keys.stamp == kept.keys.stamp:
            return True
        if seen.inner_id is not None and kept.inner_id is not None and seen.inner_id != kept.inner_id:
            return False
        return gap.is_enclosed or not (seen.keys.stamp and kept.keys.stamp)

    def same_text(self, stored: int, transcript: int, gap: Gap) -> bool:
        """Whether a pair has the same text and nothing contradicts the match."""
        text = self.transcript[transcript].keys.text
        if text == 0 or text != self.stored[stored].keys.text:
            return False
        return self.may_be_same(stored, transcript, gap)

    def same_calls_in_place(self, stored: int, transcript: int, gap: Gap) -> bool:
        """Whether a pair next to an anchor has the same tool-call ids and no conflicting other ids."""
        call = self.transcript[transcript].keys.call
        if call == 0 or call != self.stored[stored].keys.call:
            return False
        if not (gap.after_anchor or gap.before_anchor):
            return False
        return self.may_be_same(stored, transcript, gap._replace(after_anchor=True, before_anchor=True))

    def gaps(self) -> list[Gap]:
        """The gaps between matches, in order, without those that have an empty side."""
        gaps: list[Gap] = []
        stored = transcript = 0
        anchored = False
        for index, found in enumerate(self.found):
            if found is None:
                continue
            gaps.append(Gap(stored, found, transcript, index, anchored, True))
            stored, transcript, anchored = found + 1, index + 1, True
        gaps.append(Gap(stored, len(self.stored), transcript, len(self.transcript), anchored, False))
        return [gap for gap in gaps if not gap.is_empty]


_DISTINCTIVE = 24
"""Minimum characters of a run of equal texts to be trusted away from any anchor."""

Pair = tuple[int, int]
"""Index in the stored history, index in the transcript."""


def match_text(sides: Sides, gap: Gap, *, whole: bool, from_start: bool) -> None:
    """Match messages of equal text inside `gap`, the most certain first."""
    is_first = gap.stored == 0 and gap.transcript == 0
    if gap.after_anchor or (is_first and whole and from_start):
        gap = _trim_front(sides, gap)
        if is_first and not gap.is_empty:
            gap = _trim_talk(sides, gap)
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


def _trim_talk(sides: Sides, gap: Gap) -> Gap:
    """Trim the front after leading system messages, which hosts add, rewrite and often do not commit."""
    stored = _first_talk(sides.stored, gap.stored_stop)
    transcript = _first_talk(sides.transcript, gap.transcript_stop)
    if stored < gap.stored or transcript < gap.transcript:
        return gap
    trimmed = _trim_front(sides, gap._replace(stored=stored, transcript=transcript))
    return trimmed if trimmed.transcript > transcript else gap


def _first_talk(items: Sequence[StoredItem | TranscriptItem], stop: int) -> int:
    return next((index for index in range(stop) if not items[index].system), stop)


def _trim_back(sides: Sides, gap: Gap) -> Gap:
    while not gap.is_empty and _is_next(sides, gap.stored_stop - 1, gap.transcript_stop - 1, gap):
        sides.found[gap.transcript_stop - 1] = gap.stored_stop - 1
        gap = gap._replace(stored_stop=gap.stored_stop - 1, transcript_stop=gap.transcript_stop - 1)
    return gap


def _is_next(sides: Sides, stored: int, transcript: int, gap: Gap) -> bool:
    return sides.same_text(stored, transcript, gap) or sides.same_calls_in_place(stored, transcript, gap)


def _pairs(sides: Sides, gap: Gap) -> list[Pair]:
    """Pairs of equal text in ascending order: unique texts first, then matches between them."""
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
    stored = _unique_texts((sides.stored[i].keys.text, i) for i in range(part.stored, part.stored_stop))
    seen = _unique_texts(
        (sides.transcript[i].keys.text, i) for i in range(part.transcript, part.transcript_stop)
    )
    pairs: list[Pair] = []
    for text, t in seen.items():
        s = stored.get(text, -1)
        if s >= 0 and t >= 0 and sides.same_text(s, t, gap):
            pairs.append((s, t))
    return [pairs[position] for position in rising([s for s, _ in pairs])] if pairs else pairs


def _unique_texts(texts: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The index of each text; -1 for a repeated or empty text."""
    found: dict[int, int] = {}
    for text, index in texts:
        found[text] = -1 if text in found or text == 0 else index
    return found


def _common_pairs(sides: Sides, part: Gap, gap: Gap) -> list[Pair]:
    """A longest common subsequence, biased towards the anchor before the gap, else towards the end."""
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
    """For each message of the transcript, a bit set of places in `stored` that it may match."""
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
    """The runs among `pairs` that are unlikely to be a coincidence; all of them between two anchors.

    A run counts if it has enough text. It also counts if it contains a unique text, and either several
    messages agree or the run starts with the transcript's first message after the anchor (or ends with the
    last one before it): then the host merely lacks messages.
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
        distinctive = any(sides.transcript[t].keys.text in once for _, t in run)
        distinctive = distinctive and (first == due or len(run) > 1)
        if distinctive or sum(sides.transcript[t].size for _, t in run) >= _DISTINCTIVE:
            kept += run
            due = last - 1 if backwards else last + 1
    return kept


def _runs(pairs: list[Pair]) -> list[list[Pair]]:
    """Runs of pairs that are consecutive on both sides."""
    runs: list[list[Pair]] = []
    for stored, transcript in pairs:
        if runs and runs[-1][-1] == (stored - 1, transcript - 1):
            runs[-1].append((stored, transcript))
        else:
            runs.append([(stored, transcript)])
    return runs


def _overlap(sides: Sides, gap: Gap) -> list[Pair]:
    """Pairs of the longest prefix of the transcript that is also a suffix of the stored history."""
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


MAX_CELLS = 120_000_000
"""Limit for `common_subsequence`, which takes one bit per pair of positions: 15 MB."""


def rising(values: Sequence[int]) -> list[int]:
    """Positions of a longest strictly increasing subsequence of `values`."""
    if all(before < after for before, after in pairwise(values)):
        return list(range(len(values)))
    tails: list[int] = []
    tail_positions: list[int] = []
    previous: list[int] = []
    for position, value in enumerate(values):
        length = bisect_left(tails, value)
        previous.append(tail_positions[length - 1] if length else -1)
        if length == len(tails):
            tails.append(value)
            tail_positions.append(position)
        else:
            tails[length] = value
            tail_positions[length] = position
    chosen: list[int] = []
    position = tail_positions[-1]
    while position >= 0:
        chosen.append(position)
        position = previous[position]
    chosen.reverse()
    return chosen


def common_subsequence(columns: int, matches: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs `(row, column)` of a longest common subsequence, preferring low columns.

    `matches` has, for each row, a bit set of the columns that it matches. Each row of the usual table is one
    integer, whose zero bits are the columns in which the length increases.
    """
    everything = (1 << columns) - 1
    vector = everything
    table: list[int] = []
    for row in matches:
        hits = vector & row
        vector = ((vector + hits) | (vector - hits)) & everything
        table.append(vector)
    pairs: list[tuple[int, int]] = []
    row, column = len(table), columns
    while row and column:
        bit = 1 << (column - 1)
        if table[row - 1] & bit:
            column -= 1
            continue
        row -= 1
        if row and not table[row - 1] & bit:
            continue
        column -= 1
        pairs.append((row, column))
    pairs.reverse()
    return pairs
