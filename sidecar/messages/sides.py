"""The two sequences that alignment compares, and what is known of pairs of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sidecar.messages.contract import IdentityKeys


class StoredItem(NamedTuple):
    """A stored message, as alignment sees it."""

    message_id: str
    host_id: str | None
    """The message id if the host gave it, `None` where it was made up on this side."""
    inner_id: str | None
    keys: IdentityKeys


class TranscriptItem(NamedTuple):
    """A message of the host's transcript, as alignment sees it."""

    message_id: str | None
    """The id that came with the message, or that a stub in it names."""
    inner_id: str | None
    keys: IdentityKeys
    size: int = 0
    """Characters of text: a long text that agrees is evidence in itself."""


class Gap(NamedTuple):
    """A stretch of both sequences in which nothing is matched yet."""

    stored: int
    stored_stop: int
    transcript: int
    transcript_stop: int
    after_anchor: bool
    """The pair in front of the gap is matched."""
    before_anchor: bool
    """The pair behind the gap is matched."""

    @property
    def is_empty(self) -> bool:
        """True where one side has nothing left to match."""
        return self.stored >= self.stored_stop or self.transcript >= self.transcript_stop

    @property
    def is_enclosed(self) -> bool:
        """True between two matched pairs: order alone then says much."""
        return self.after_anchor and self.before_anchor


class Sides:
    """Both sequences with the matches found so far."""

    __slots__ = ("found", "stored", "transcript")

    def __init__(self, stored: Sequence[StoredItem], transcript: Sequence[TranscriptItem]) -> None:
        self.stored = stored
        self.transcript = transcript
        self.found: list[int | None] = [None] * len(transcript)
        """For each message of the transcript the index of its stored message."""

    def ids_agree(self, stored: int, transcript: int, gap: Gap) -> bool:
        """Whether a pair does not have two message ids that the host gave and that differ."""
        del gap
        seen = self.transcript[transcript].message_id
        kept = self.stored[stored]
        return seen is None or seen == kept.message_id or kept.host_id is None

    def may_be_same(self, stored: int, transcript: int, gap: Gap) -> bool:
        """Whether nothing speaks against a pair of equal text: other ids, or another time stamp.

        Between two anchors another time stamp does not count: some hosts stamp anew.
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
        """Whether a pair says the same, and nothing speaks against it."""
        text = self.transcript[transcript].keys.text
        if text == 0 or text != self.stored[stored].keys.text:
            return False
        return self.may_be_same(stored, transcript, gap)

    def same_calls_in_place(self, stored: int, transcript: int, gap: Gap) -> bool:
        """Whether a pair next to an anchor has the same tool-call ids, and no other ids that differ."""
        call = self.transcript[transcript].keys.call
        if call == 0 or call != self.stored[stored].keys.call:
            return False
        if not (gap.after_anchor or gap.before_anchor):
            return False
        return self.may_be_same(stored, transcript, gap._replace(after_anchor=True, before_anchor=True))

    def gaps(self) -> list[Gap]:
        """The stretches between the matches, in order, those with an empty side left out."""
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
