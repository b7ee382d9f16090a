"""Finds the messages of a host's transcript again in the stored history.

The rules of Identity are tried from the strongest to the weakest: message id, inner id, tool-call ids, time
stamp with text, text alone. What a rule finds exactly once on both sides becomes an anchor; of anchors that
cross, as many as possible stay (longest increasing subsequence), and the next rule works in the gaps between
them. Text alone is trusted next to an anchor or between two of them; elsewhere only where enough of it
agrees, so that an "ok" never makes the alignment jump.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from sidecar.messages.contract import IdentityKeys
from sidecar.messages.sequences import rising
from sidecar.messages.sides import Gap, Sides, StoredItem, TranscriptItem
from sidecar.messages.textruns import match_text

__all__ = ["LeadingKeys", "StoredItem", "TranscriptItem", "align"]

LeadingKeys = Callable[[int], Sequence[IdentityKeys]]
_Keys = Sequence[Hashable | None]
_REACH = 8
"""How many stored messages in front of an anchor may be the one that a host has merged others into."""


def align(
    stored: Sequence[StoredItem],
    transcript: Sequence[TranscriptItem],
    *,
    whole: bool = True,
    from_start: bool = True,
    leading_keys: LeadingKeys | None = None,
) -> list[int | None]:
    """For each message of `transcript` its index in `stored`, ascending, or `None` for an unknown message.

    `whole` says that the transcript starts where the history does, or later; otherwise it is a piece that was
    added at the end, and text alone counts only where the piece overlaps the end of what is stored.
    `from_start` is false where `stored` lacks the beginning of the history, so that the first messages of
    both sides need not be the same.
    `leading_keys` gives, for an index of the transcript, the fingerprints of the message's beginnings
    (`identity.leading_keys`): so a message is found into which the host has merged the one behind it.
    """
    known = [index for index, item in enumerate(transcript) if _identifies(item)]
    sides = Sides(stored, [transcript[index] for index in known])
    _anchor(sides, *_message_ids(sides), sides.ids_agree)
    _anchor(sides, *_inner_ids(sides), sides.ids_agree)
    _anchor(sides, *_calls_with_text(sides), sides.may_be_same)
    _anchor_calls_in_place(sides)
    _anchor(sides, *_stamps(sides), sides.ids_agree)
    for _ in range(2):
        # What the first round was not sure of may stand next to an anchor in the second.
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
    """Whether there is anything to find the message by; synthetic ones have nothing."""
    return item.message_id is not None or item.inner_id is not None or any(item.keys)


def _message_ids(sides: Sides) -> tuple[_Keys, _Keys]:
    return [item.message_id for item in sides.stored], [item.message_id for item in sides.transcript]


def _inner_ids(sides: Sides) -> tuple[_Keys, _Keys]:
    return [item.inner_id for item in sides.stored], [item.inner_id for item in sides.transcript]


def _stamps(sides: Sides) -> tuple[_Keys, _Keys]:
    stored = [item.keys.stamp or None for item in sides.stored]
    return stored, [item.keys.stamp or None for item in sides.transcript]


def _calls_with_text(sides: Sides) -> tuple[_Keys, _Keys]:
    """Some providers use an id again in every turn; what is called, or answered, tells such calls apart."""
    stored = [(item.keys.call, item.keys.text) if item.keys.call else None for item in sides.stored]
    transcript = [(item.keys.call, item.keys.text) if item.keys.call else None for item in sides.transcript]
    return stored, transcript


def _anchor_calls_in_place(sides: Sides) -> None:
    """Matches equal call ids although the host changed the text, where an anchor vouches for the place."""
    stored = [item.keys.call or None for item in sides.stored]
    transcript = [item.keys.call or None for item in sides.transcript]
    _anchor(sides, stored, transcript, sides.same_calls_in_place)


def _anchor(sides: Sides, stored: _Keys, transcript: _Keys, agree: Callable[[int, int, Gap], bool]) -> None:
    """Matches what has a key that occurs once on both sides of a gap, in every gap."""
    if all(key is None for key in transcript):
        return
    for gap in sides.gaps():
        kept = _once(stored, gap.stored, gap.stored_stop)
        pairs: list[tuple[int, int]] = []
        for key, t in _once(transcript, gap.transcript, gap.transcript_stop).items():
            s = kept.get(key, -1)
            if s >= 0 and t >= 0 and agree(s, t, gap):
                pairs.append((s, t))
        if pairs:
            for position in rising([s for s, _ in pairs]):
                s, t = pairs[position]
                sides.found[t] = s


def _once(keys: _Keys, start: int, stop: int) -> dict[Hashable, int]:
    """The index of each key between `start` and `stop`, -1 for one that occurs again."""
    found: dict[Hashable, int] = {}
    for index in range(start, stop):
        key = keys[index]
        if key is not None:
            found[key] = -1 if key in found else index
    return found


def _match_merged(sides: Sides, leading_keys: LeadingKeys, *, from_start: bool) -> None:
    """Matches a message whose beginning is the stored message that is due at its place."""
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
