"""The messages of a host's own list, and what is remembered of the list."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from sidecar.engine.entry import Entry
from sidecar.messages.alignment import TranscriptItem
from sidecar.messages.contract import Dialect, IdentityKeys, Reading
from sidecar.messages.fence import OPENING_BYTES
from sidecar.messages.identity import keys, size, stub_refs
from sidecar.server.sessions.timeline import ENTRY_OVERHEAD, made_up_name


class HostMessage:
    """One message of a host's list; it is read when somebody asks what it says."""

    __slots__ = ("_dialect", "_keys", "_reading", "fenced", "raw")

    def __init__(self, raw: bytes, dialect: Dialect) -> None:
        self.raw = raw
        self.fenced = OPENING_BYTES in raw
        """True where text of ours may stand in the message."""
        self._dialect = dialect
        self._reading: Reading | None = None
        self._keys: IdentityKeys | None = None

    @property
    def reading(self) -> Reading:
        """What the message says.

        Raises:
            MessageError: it is no message.
        """
        if self._reading is None:
            self._reading = self._dialect.read(self.raw)
        return self._reading

    def take_for(self, reading: Reading) -> None:
        """Say what the message says, where not all that seemed ours is."""
        self._reading, self._keys = reading, None

    @property
    def stub_of(self) -> str | None:
        """The id of the stored message whose results or images are stubs in this one."""
        return next(iter(stub_refs(self.reading)), None) if self.fenced else None

    @property
    def has_appendix(self) -> bool:
        """True where memory stands behind the words of the user."""
        if not self.fenced or self.reading.role != "user" or self.reading.results:
            return False
        from sidecar.messages.identity import has_appendix

        return has_appendix(self.reading)

    @property
    def ours(self) -> bool:
        """True for a text that an engine or the guard made, and that is not to be taken for a message."""
        if not self.fenced:
            return False
        mark = self.reading.mark
        return mark is not None and mark.kind != "stub"

    @property
    def is_stub(self) -> bool:
        """True where a stub is all that is left of the message."""
        return self.fenced and self.reading.mark is not None

    @property
    def made_up_id(self) -> str:
        """A name for the message until it is stored."""
        return made_up_name(self.reading, self.keys)

    @property
    def keys(self) -> IdentityKeys:
        """The fingerprints of Identity."""
        if self._keys is None:
            self._keys = keys(self.reading)
        return self._keys

    @property
    def item(self) -> TranscriptItem:
        """The message as alignment sees it."""
        reading = self.reading
        return TranscriptItem(
            self.stub_of, reading.inner_id, self.keys, size(reading), reading.role == "system"
        )


class Aligned(NamedTuple):
    """A host's message with the stored one that it is, if it is one."""

    message: HostMessage
    stored: Entry | None


class HostTranscript(NamedTuple):
    """A host's list after alignment, synthetic messages left out."""

    raws: Sequence[bytes]
    aligned: list[Aligned]
    counts: list[int]
    """For each raw message, how many of `aligned` come from it and those before."""
    version: tuple[int, int, int]
    """The history it was aligned with: uid, revision, message count."""

    size: int
    """Bytes of all messages."""

    @property
    def weight(self) -> int:
        """Memory that the list takes, in bytes, roughly."""
        return 2 * self.size + ENTRY_OVERHEAD * len(self.raws)

    def raws_before(self, index: int) -> Sequence[bytes]:
        """The raw messages in front of the one at `index` of `aligned`."""
        return self.raws[: bisect_right(self.counts, index)]

    def index_of_raw(self, raw: int) -> int:
        """How many of `aligned` come from the first `raw` raw messages."""
        return self.counts[min(raw, len(self.counts)) - 1] if raw > 0 and self.counts else 0


class Shown(NamedTuple):
    """The part of a host's list that is in front of the open turn."""

    raws: Sequence[bytes]
    newest: str | None
    """Id of the newest message that was stored by then; what came later belongs behind the list."""
    size: int
    """Bytes of the messages."""
