"""Recognises messages that a host has changed since they were stored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sidecar.messages.contract import Reading

ALIKE = 0.95
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

    Looked for behind the first message that was found (`from_start`: also in front of it). As many unknown
    messages as stored ones between two known ones, of the same roles, are the stored ones; elsewhere most of
    the text has to be the same. Ids and time stamps that differ speak against it. System messages at the very
    beginning of both sides (`from_start`) are one that the host makes anew.
    """
    if from_start and stored and seen and _is_same_system(stored[0], seen[0], found):
        found[0] = 0
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


def same_stamps(stored: Sequence[Reading], seen: Sequence[Reading]) -> dict[int, int]:
    """Indices in `seen` and `stored` of messages of one role whose time stamp occurs once on each side."""
    kept = _once(stored)
    if not kept:
        return {}
    pairs = ((t, kept.get(key, -1)) for key, t in _once(seen).items())
    return {t: s for t, s in pairs if s >= 0 and t >= 0 and _may_be(stored[s], seen[t])}


def _once(readings: Sequence[Reading]) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for index, reading in enumerate(readings):
        if reading.timestamp_ms is not None:
            key = (reading.wire_role, reading.timestamp_ms)
            found[key] = -1 if key in found else index
    return found


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


def _is_same_system(kept: Reading, seen: Reading, found: Sequence[int | None]) -> bool:
    return kept.role == "system" and found[0] is None and 0 not in found and _may_be(kept, seen)


def _is_like(kept: Reading, seen: Reading) -> bool:
    ours, theirs = set(_WORD.findall(kept.text)), set(_WORD.findall(seen.text))
    fewer = min(len(ours), len(theirs))
    return fewer >= 3 and len(ours & theirs) >= ALIKE * fewer
