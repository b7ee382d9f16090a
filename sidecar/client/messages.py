"""Messages as the client accepts and returns them: encoding, results that hold them, and edits of lists."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast

import msgspec
from msgspec import Raw, Struct

from sidecar.client.errors import UnexpectedAnswer
from sidecar.protocol.assemble import AssembleContextResult, MessageEdit
from sidecar.protocol.context import IngestContextResult
from sidecar.protocol.session import ExportedMessage, ExportSessionResult

Message = bytes | bytearray | Raw | Mapping[str, object] | Struct
"""A message of a caller: its JSON bytes, which are sent unchanged, or an object to encode."""

_decode_any = msgspec.json.Decoder(Raw).decode


def encode_message(message: Message) -> Raw:
    """The JSON of one message; bytes are validated and returned unchanged.

    Raises:
        ValueError: the bytes are not a JSON object.
        TypeError: the message has a type that cannot be encoded.
    """
    if isinstance(message, (bytes, bytearray, Raw)):
        return Raw(_checked(bytes(message)))
    if isinstance(message, (Mapping, Struct)):  # pyright: ignore[reportUnnecessaryIsInstance]
        return Raw(_encoded(message))
    raise TypeError(f"a message is a mapping, a Struct or JSON bytes, not {type(message).__name__}")


def encode_messages(messages: Iterable[Message]) -> list[Raw]:
    """The JSON of each message."""
    return [encode_message(message) for message in messages]


def decode_message(message: bytes | Raw) -> dict[str, object]:
    """The message as a dictionary; lone surrogates, which hosts produce by cutting text, survive."""
    try:
        return msgspec.json.decode(message, type=dict[str, object])
    except msgspec.DecodeError:
        return cast("dict[str, object]", json.loads(bytes(message)))


def encode_object(value: Mapping[str, object] | Struct | bytes | Raw) -> Raw:
    """The JSON of any other object, such as settings or arguments.

    Raises:
        ValueError: the bytes are not a JSON object.
    """
    return encode_message(value)


def encode_value(value: object) -> Raw:
    """The JSON of any value; bytes are taken as JSON."""
    return Raw(value) if isinstance(value, (bytes, Raw)) else Raw(_encoded(value))


def _encoded(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value) if isinstance(value, Struct) else value
        return json.dumps(plain, separators=(",", ":")).encode()


def _checked(message: bytes) -> bytes:
    """Validate the bytes: anything but one JSON object would break the request that carries it."""
    if message.lstrip(b" \t\r\n")[:1] != b"{":
        raise ValueError("a message must be a JSON object")
    try:
        message.decode()
        _decode_any(message)
    except UnicodeDecodeError:
        raise ValueError("a message must be UTF-8") from None
    except msgspec.DecodeError as problem:
        try:
            json.loads(message)
        except ValueError:
            raise ValueError(f"a message must be valid JSON: {problem}") from None
    return message


class AssembledContext(AssembleContextResult, frozen=True, kw_only=True):
    """An assembled context; edits are already applied, so `messages` is always set."""

    @property
    def bodies(self) -> list[bytes]:
        """Each message as its JSON bytes."""
        return [bytes(message) for message in self.messages or ()]

    @property
    def decoded(self) -> list[dict[str, object]]:
        """Each message as a dictionary."""
        return [decode_message(message) for message in self.messages or ()]


class IngestedMessage(IngestContextResult, frozen=True, kw_only=True):
    """The result of ingesting a message."""

    @property
    def decoded_display(self) -> dict[str, object] | None:
        """The message to display to people, if it differs from the stored one."""
        return decode_message(self.display_message) if self.display_message else None


class StoredMessage(ExportedMessage, frozen=True, kw_only=True):
    """A stored message with its metadata."""

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


REMEMBERED_SESSIONS = 64
"""Number of sessions whose newest answer is kept as the base of edits; others request whole lists."""


def apply_edits(previous: Sequence[Raw], edits: Sequence[MessageEdit]) -> list[Raw]:
    """The previous list with the edits applied.

    Raises:
        UnexpectedAnswer: the edits are not ascending, or reach beyond the previous list.
    """
    current: list[Raw] = []
    position = 0
    for edit in edits:
        end = edit.start + edit.delete_count
        if edit.start < position or end > len(previous):
            raise UnexpectedAnswer(
                f"an edit of messages {edit.start} to {end} does not fit a list of {len(previous)}"
            )
        current += previous[position : edit.start]
        current += edit.messages
        position = end
    current += previous[position:]
    return current


class Basis(NamedTuple):
    """An answer on which the next one's edits can be based."""

    result_id: str
    messages: list[Raw]


class AnswerMemory:
    """The newest answer of each session."""

    def __init__(self) -> None:
        self._newest: OrderedDict[str, Basis] = OrderedDict()

    def basis(self, session_id: str) -> Basis | None:
        """The newest answer of a session, on which edits can be based."""
        return self._newest.get(session_id)

    def keep(self, session_id: str, basis: Basis) -> None:
        """Remember the newest answer of a session; the least recently updated sessions are forgotten."""
        self._newest[session_id] = basis
        self._newest.move_to_end(session_id)
        if len(self._newest) > REMEMBERED_SESSIONS:
            self._newest.popitem(last=False)

    def forget(self, session_id: str) -> None:
        """Forget a session's answer, so that the next request gets a whole list."""
        self._newest.pop(session_id, None)
