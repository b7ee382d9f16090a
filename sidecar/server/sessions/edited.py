"""Recognises messages that a host has changed since they were stored."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.messages.contract import Reading


def match_edited(
    stored: Sequence[Reading], seen: Sequence[Reading], found: list[int | None], *, from_start: bool
) -> None:
    """Complete `found`, the index in `stored` for each message of `seen`, by messages with another text.

    Between two messages that were found (`from_start`: also in front of the first), as many unknown messages
    as stored ones, of the same roles and with nothing else against it, are the stored ones with a new text.
    """
    kept, at = (-1, -1) if from_start else (None, -1)
    for index, match in enumerate(found):
        if match is None:
            continue
        if kept is not None and index - at == match - kept > 1:
            pairs = list(zip(range(kept + 1, match), range(at + 1, index), strict=True))
            if all(_may_be_edited(stored[s], seen[t]) for s, t in pairs):
                for s, t in pairs:
                    found[t] = s
        kept, at = match, index


def _may_be_edited(kept: Reading, seen: Reading) -> bool:
    """Whether nothing but the text of a message speaks against it being the stored one."""
    if kept.role != seen.role or kept.wire_role != seen.wire_role or seen.mark is not None:
        return False
    if kept.inner_id is not None and seen.inner_id is not None and kept.inner_id != seen.inner_id:
        return False
    if kept.timestamp_ms is not None and seen.timestamp_ms is not None:
        return kept.timestamp_ms == seen.timestamp_ms
    return len(kept.calls) == len(seen.calls) and len(kept.results) == len(seen.results)
