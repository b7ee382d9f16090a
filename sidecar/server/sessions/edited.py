"""Recognises messages that a host has changed since they were stored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sidecar.messages.contract import Reading

ALIKE = 0.8
"""Share of the words of the shorter text that the other one has to have too."""
WIDEST = 64
"""Messages on either side of a gap that are compared with each other."""

_WORD = re.compile(r"\w+")


class _Gap(NamedTuple):
    stored: range
    seen: range
    closed: bool
    """Known messages on both sides, so that nothing else can belong here."""


def match_edited(
    stored: Sequence[Reading], seen: Sequence[Reading], found: list[int | None], *, from_start: bool
) -> None:
    """Complete `found`, the index in `stored` for each message of `seen`, by messages with another text.

    The same time stamp is believed anywhere, the rest behind the first message that was found (`from_start`:
    also in front of it). As many unknown messages as stored ones between two known ones, of the same roles,
    are the stored ones; elsewhere most of the text has to be the same. Ids that differ speak against it.
    """
    _match_stamped(stored, seen, found)
    for gap in _gaps(len(stored), found, from_start):
        if gap.closed and len(gap.stored) == len(gap.seen):
            pairs = list(zip(gap.stored, gap.seen, strict=True))
            if all(_may_be(stored[s], seen[t]) for s, t in pairs):
                for s, t in pairs:
                    found[t] = s
                continue
        begin = gap.stored.start
        for t in gap.seen[:WIDEST]:
            for s in range(begin, min(gap.stored.stop, begin + WIDEST)):
                if _may_be(stored[s], seen[t]) and _is_like(stored[s], seen[t]):
                    found[t], begin = s, s + 1
                    break


def _match_stamped(stored: Sequence[Reading], seen: Sequence[Reading], found: list[int | None]) -> None:
    """Complete `found` by messages of one role that have the same time stamp, where it tells them apart."""
    taken = set(found)
    kept: dict[tuple[str, int], int] = {}
    for s, reading in enumerate(stored):
        if reading.timestamp_ms is not None and s not in taken:
            key = (reading.wire_role, reading.timestamp_ms)
            kept[key] = -1 if key in kept else s
    if not kept:
        return
    behind = -1
    ahead = [len(stored)] * (len(found) + 1)
    for t in range(len(found) - 1, -1, -1):
        match = found[t]
        ahead[t] = ahead[t + 1] if match is None else match
    for t, match in enumerate(found):
        if match is None and seen[t].timestamp_ms is not None:
            s = kept.get((seen[t].wire_role, seen[t].timestamp_ms or 0), -1)
            if behind < s < ahead[t] and _may_be(stored[s], seen[t]):
                found[t] = match = s
        behind = behind if match is None else match


def _gaps(count: int, found: Sequence[int | None], from_start: bool) -> list[_Gap]:
    gaps: list[_Gap] = []
    kept, at, open_ended = -1, -1, not from_start
    for index, match in enumerate(found):
        if match is not None:
            if not open_ended and match - kept > 1 and index - at > 1:
                gaps.append(_Gap(range(kept + 1, match), range(at + 1, index), True))
            kept, at, open_ended = match, index, False
    if kept >= 0 and count - kept > 1 and len(found) - at > 1:
        gaps.append(_Gap(range(kept + 1, count), range(at + 1, len(found)), False))
    return gaps


def _may_be(kept: Reading, seen: Reading) -> bool:
    """Whether nothing but the text of a message speaks against it being the stored one."""
    if kept.role != seen.role or kept.wire_role != seen.wire_role or seen.mark is not None:
        return False
    if kept.inner_id is not None and seen.inner_id is not None and kept.inner_id != seen.inner_id:
        return False
    if kept.timestamp_ms is not None and seen.timestamp_ms is not None:
        return kept.timestamp_ms == seen.timestamp_ms
    return len(kept.calls) == len(seen.calls) and len(kept.results) == len(seen.results)


def _is_like(kept: Reading, seen: Reading) -> bool:
    ours, theirs = set(_WORD.findall(kept.text)), set(_WORD.findall(seen.text))
    fewer = min(len(ours), len(theirs))
    return fewer >= 3 and len(ours & theirs) >= ALIKE * fewer
