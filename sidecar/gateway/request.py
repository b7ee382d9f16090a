"""What the gateway reads from a request to a model's API, and what each API must offer."""

from __future__ import annotations

import base64
import binascii
import zlib
from _blake2 import blake2b
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec
from msgspec import Raw, Struct

from sidecar.protocol.base import MessageFormat

HANDLE = "context-sidecar.1."
"""Begins every compaction handle."""

_object = msgspec.json.Decoder(dict[str, Raw])
_list = msgspec.json.Decoder(list[Raw])
_text = msgspec.json.Decoder(str)


class Handle(Struct, frozen=True, rename={"session": "s", "summary": "t"}):
    """Stands in a program's history for everything before it; the store has the messages themselves."""

    session: str
    summary: str
    """Read by the model where the store no longer has the session, or the sidecar is down."""

    def encoded(self) -> str:
        """The handle as a program keeps it: opaque, of letters, digits, `-` and `_`."""
        return HANDLE + base64.urlsafe_b64encode(zlib.compress(msgspec.json.encode(self))).decode().rstrip(
            "="
        )

    @classmethod
    def decoded(cls, text: str) -> Handle | None:
        """The handle that `text` is, `None` where it is none of ours."""
        if not text.startswith(HANDLE):
            return None
        packed = text[len(HANDLE) :]
        try:
            raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
            unpacker = zlib.decompressobj()
            return msgspec.json.decode(unpacker.decompress(raw, 1 << 22), type=cls)
        except (binascii.Error, zlib.error, ValueError, msgspec.MsgspecError):
            return None


class ModelRequest(Struct, kw_only=True):
    """One request of a program, taken apart."""

    kind: Literal["turn", "compaction"]
    session: str
    """The session whose history it is."""
    members: dict[str, Raw]
    """The body's members, in their order."""
    history: list[bytes]
    """The messages in the form in which the sidecar gets them: without cache markers."""
    fixed: list[bytes]
    """Parts that take room in the window in addition to the messages: system prompt, tools, `lead`."""
    model: str
    output_tokens: int
    """The most tokens that the model may answer with; 0 where the request does not say."""
    streams: bool
    lead: list[Raw] = []
    """Messages of the program that belong at the beginning whatever the engine keeps."""
    handle: Handle | None = None
    """The handle in the history; the messages that it stands for were left out of `history`."""


class Usage(NamedTuple):
    """Tokens of a prompt as the provider counted them."""

    prompt: int
    """All of them, those from the cache included."""
    cache_read: int
    cache_written: int


class ModelApi(Protocol):
    """One API of a model provider."""

    message_format: MessageFormat

    def read(self, headers: Mapping[str, str], body: bytes) -> ModelRequest | None:
        """The request taken apart, `None` where it is to go upstream unread."""
        ...

    def write(self, request: ModelRequest, answer: Rewrite) -> bytes:
        """The body with the messages that the engine chose."""
        ...

    def without_sidecar(self, request: ModelRequest) -> bytes | None:
        """The body that can go upstream when no engine can be asked; `None` for the body as it came."""
        ...

    def compacted(self, request: ModelRequest, handle: Handle) -> tuple[str, bytes]:
        """Content type and body of the answer to a compaction request."""
        ...

    def usage(self, event: bytes) -> Usage | None:
        """The usage that an event of the stream, or the whole body of an answer, reports."""
        ...

    def error(self, status: int, message: str) -> bytes:
        """The body of an error of our own."""
        ...


class Rewrite(Struct, frozen=True, kw_only=True):
    """What the engine wants the model to see."""

    messages: Sequence[bytes]
    stable: int
    """How many of them the next answer will repeat."""
    system_addition: str = ""
    user_addition: str = ""


def members_of(raw: bytes | Raw) -> dict[str, Raw] | None:
    """The members of a JSON object; `None` where it is no object."""
    try:
        return _object.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None


def items_of(raw: bytes | Raw) -> list[Raw] | None:
    """The items of a JSON array; `None` where it is no array."""
    try:
        return _list.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None


def text_of(raw: Raw | None) -> str:
    """The string, empty where there is none."""
    try:
        return _text.decode(raw) if raw else ""
    except msgspec.MsgspecError:
        return ""


def number_of(raw: Raw | None) -> int:
    """The whole number, 0 where there is none."""
    return int(raw_text) if raw and (raw_text := bytes(raw)).isdigit() and len(raw_text) < 12 else 0


def flag_of(raw: Raw | None) -> bool:
    """Whether the member is `true`."""
    return raw is not None and bytes(raw) == b"true"


def fingerprint(*parts: bytes) -> str:
    """Twelve characters that tell texts apart."""
    digest = blake2b(digest_size=6)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def sse(events: Sequence[Mapping[str, object]]) -> bytes:
    """Events of a stream; each is named by its `type`."""
    return b"".join(
        b"event: " + str(event["type"]).encode() + b"\ndata: " + msgspec.json.encode(event) + b"\n\n"
        for event in events
    )
