"""What importing a transcript yields."""

from __future__ import annotations

from typing import IO, Literal, NamedTuple, Protocol

from msgspec import Struct, field


class TranscriptError(ValueError):
    """Raised when a file holds no transcript that can be read, or not of the format that was named."""


class Source(Protocol):
    """Where a transcript is read from: a path, or text that is not in a file."""

    def open(self, mode: Literal["rb"], /) -> IO[bytes]:
        """The bytes of the transcript as a stream."""
        ...

    def read_bytes(self) -> bytes:
        """All bytes of the transcript."""
        ...


class Span(NamedTuple):
    """A piece of the source, as offsets in bytes."""

    start: int
    end: int
    """Of the first byte behind the piece."""


class Imported(NamedTuple):
    """One message of a transcript, in the dialect of its format."""

    message: bytes
    """One line of JSON."""
    message_id: str | None
    """The id that the runtime gave the message or its row."""
    timestamp_ms: int | None
    span: Span
    """What the message was read from: its line, or its object in a document."""


class Transcript(Struct):
    """The conversation of one file, in order."""

    message_format: str
    """The dialect of the messages, a `messageFormat`."""
    items: list[Imported] = field(default_factory=list[Imported])
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    """How many rows were left out, by reason: a kind of row, or what is wrong with it."""

    def skip(self, reason: str) -> None:
        """Count one row that is left out."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
