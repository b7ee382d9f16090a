"""Results that hold messages, with ways to read them."""

from msgspec import Raw

from sidecar.client.message_bytes import decode_message
from sidecar.protocol.assemble import AssembleContextResult
from sidecar.protocol.context import IngestContextResult
from sidecar.protocol.session import ExportedMessage, ExportSessionResult


class AssembledContext(AssembleContextResult, frozen=True, kw_only=True):
    """What the model is to see; `messages` is always there, edits have been applied."""

    @property
    def bodies(self) -> list[bytes]:
        """Each message as its JSON bytes."""
        return [bytes(message) for message in self.messages or ()]

    @property
    def decoded(self) -> list[dict[str, object]]:
        """Each message as a dictionary."""
        return [decode_message(message) for message in self.messages or ()]


class IngestedMessage(IngestContextResult, frozen=True, kw_only=True):
    """What became of an ingested message."""

    @property
    def decoded_display(self) -> dict[str, object] | None:
        """The message as people should see it, where that differs."""
        return decode_message(self.display_message) if self.display_message else None


class StoredMessage(ExportedMessage, frozen=True, kw_only=True):
    """A stored message with what was noted about it."""

    @property
    def body(self) -> bytes:
        """The message as its JSON bytes."""
        return bytes(self.message)

    @property
    def decoded(self) -> dict[str, object]:
        """The message as a dictionary."""
        return decode_message(self.message)


class ExportedPage(ExportSessionResult, frozen=True, kw_only=True):
    """One page of the stored messages of a session."""

    messages: list[StoredMessage]  # pyright: ignore[reportIncompatibleVariableOverride]  frozen, so covariant
    """One page of messages, oldest first."""


def owned(message: Raw) -> Raw:
    """The message without a hold on the answer that it came in."""
    return Raw(bytes(message))
