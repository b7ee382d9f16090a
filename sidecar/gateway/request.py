"""What the gateway reads from a request to a model's API, and what each API must offer."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from _blake2 import blake2b
from collections.abc import Mapping, Sequence
from hmac import compare_digest
from typing import Literal, NamedTuple

import msgspec
from msgspec import Raw, Struct

from sidecar.protocol.base import MessageFormat

HANDLE = "context-sidecar.1."
"""Begins every compaction handle."""
SIGNATURE_BYTES = 16
SYSTEM_ROLES = frozenset(("developer", "system"))
"""Roles of the program's own instructions in OpenAI's APIs."""

_object = msgspec.json.Decoder(dict[str, Raw])
_list = msgspec.json.Decoder(list[Raw])
_text = msgspec.json.Decoder(str)
_ID = re.compile(r"[!-~]{1,200}")


class Handle(Struct, frozen=True, rename={"session": "s", "summary": "t"}):
    """Stands in a program's history for everything before it; the store has the messages themselves."""

    session: str
    """Empty where another gateway wrote the handle, or nobody did: then only its summary can be used."""
    summary: str
    """Read by the model where the store no longer has the session, or the sidecar is down."""

    def encoded(self, key: bytes) -> str:
        """The handle as a program keeps it: opaque, of letters, digits, `-` and `_`."""
        packed = zlib.compress(msgspec.json.encode(self))
        return HANDLE + base64.urlsafe_b64encode(_signature(key, packed) + packed).decode().rstrip("=")

    @classmethod
    def decoded(cls, text: str, key: bytes) -> Handle | None:
        """The handle that `text` is, `None` where it has no such form."""
        if not text.startswith(HANDLE):
            return None
        letters = text[len(HANDLE) :]
        try:
            raw = base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4))
            signature, packed = raw[:SIGNATURE_BYTES], raw[SIGNATURE_BYTES:]
            found = msgspec.json.decode(zlib.decompressobj().decompress(packed, 1 << 22), type=cls)
        except (binascii.Error, zlib.error, ValueError, msgspec.MsgspecError):
            return None
        is_ours = compare_digest(signature, _signature(key, packed))
        return found if is_ours else msgspec.structs.replace(found, session="")


def _signature(key: bytes, packed: bytes) -> bytes:
    return blake2b(packed, digest_size=SIGNATURE_BYTES, key=key).digest()


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
    in_full: list[bytes] = []
    """The history with the handle's summary, for a store that lacks what the handle stands for."""

    @classmethod
    def of(
        cls,
        members: dict[str, Raw],
        session: str,
        history: list[bytes],
        *,
        fixed: Sequence[str],
        output: Sequence[str],
        is_compaction: bool = False,
    ) -> ModelRequest:
        """A request by the names that its API has for what is `fixed`, and for the limit of the `output`."""
        limits = (number_of(members.get(name)) for name in output)
        return cls(
            kind="compaction" if is_compaction else "turn",
            session=session,
            members=members,
            history=history,
            fixed=[bytes(members[name]) for name in fixed if name in members],
            model=text_of(members.get("model")),
            output_tokens=next(filter(None, limits), 0),
            streams=flag_of(members.get("stream")),
        )


class Usage(NamedTuple):
    """Tokens of a prompt as the provider counted them."""

    prompt: int
    """All of them, those from the cache included."""
    cache_read: int
    cache_written: int


class _Details(Struct):
    cached_tokens: int | None = None


class _Counts(Struct):
    """Usage as any of the APIs reports it: Anthropic's counts leave out what was cached, OpenAI's do not."""

    input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    input_tokens_details: _Details | None = None
    prompt_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Counted(Struct):
    usage: _Counts | None = None


class _Answer(_Counted):
    """An answer, or an event of a stream, which may hold the answer as a member."""

    message: _Counted | None = None
    response: _Counted | None = None


_answer = msgspec.json.Decoder(_Answer)


class Rewrite(Struct, frozen=True, kw_only=True):
    """What the engine wants the model to see."""

    messages: Sequence[bytes]
    stable: int
    """How many of them the next answer will repeat."""
    system_addition: str = ""
    user_addition: str = ""


class ModelApi:
    """One API of a model provider; `key` signs what stands for a history that was compacted."""

    message_format: MessageFormat

    def __init__(self, key: bytes) -> None:
        self.key = key

    def read(self, headers: Mapping[str, str], body: bytes) -> ModelRequest | None:
        """The request taken apart, `None` where it is to go upstream unread."""
        raise NotImplementedError

    def write(self, request: ModelRequest, answer: Rewrite) -> bytes:
        """The body with the messages that the engine chose."""
        raise NotImplementedError

    def without_sidecar(self, request: ModelRequest) -> bytes | None:
        """The body that can go upstream when no engine can be asked; `None` for the body as it came."""
        del request
        return None

    def compacted(self, request: ModelRequest, handle: Handle) -> tuple[str, bytes]:
        """Content type and body of the answer to a compaction request, where the API has such requests."""
        raise NotImplementedError


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


def id_in(headers: Mapping[str, str], *names: str) -> str:
    """The id in the first of these headers that has one: at most 200 printable characters of ASCII."""
    return next((found for name in names if _ID.fullmatch(found := headers.get(name, ""))), "")


def number_of(raw: Raw | None) -> int:
    """The whole number, 0 where there is none."""
    return int(raw_text) if raw and (raw_text := bytes(raw)).isdigit() and len(raw_text) < 12 else 0


def flag_of(raw: Raw | None) -> bool:
    """Whether the member is `true`."""
    return raw is not None and bytes(raw) == b"true"


def role_of(message: bytes | Raw) -> str:
    """The message's role, empty where it has none."""
    found = members_of(message) if b'"role"' in bytes(message) else None
    return text_of(found.get("role")) if found is not None else ""


def usage_of(event: bytes) -> Usage | None:
    """The usage of the prompt that an event of a stream, or the whole body of an answer, reports."""
    try:
        answer = _answer.decode(event)
    except msgspec.MsgspecError:
        return None
    found = (answer.message or answer.response or answer).usage
    if found is None:
        return None
    read, written = found.cache_read_input_tokens or 0, found.cache_creation_input_tokens or 0
    prompt = (found.input_tokens or found.prompt_tokens or 0) + read + written
    if details := found.input_tokens_details or found.prompt_tokens_details:
        read = details.cached_tokens or 0
    return Usage(prompt, read, written) if prompt else None


def error_body(status: int, message: str) -> bytes:
    """An error of our own, in a form that clients of every API read."""
    kind = "invalid_request_error" if status < 500 else "api_error"
    error = {"type": kind, "message": message, "code": None, "param": None}
    return msgspec.json.encode({"type": "error", "error": error})


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
