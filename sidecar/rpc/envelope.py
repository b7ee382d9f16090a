"""The JSON-RPC 2.0 envelope; params, results and errors inside it stay undecoded."""

from codecs import utf_8_decode
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from sidecar.rpc.errors import ErrorBody, InvalidRequest, ParseError, RpcError

JsonId = int | str
"""A request id."""

NO_VALUE = Raw()
"""Placeholder for an absent member."""

_PIECE = 65536


class Envelope(Struct, gc=False):
    """Any well-formed message: a request, a notification or an answer."""

    jsonrpc: Literal["2.0"]
    method: str | None = None
    id: JsonId | UnsetType | None = UNSET
    params: Raw = NO_VALUE
    result: Raw = NO_VALUE
    error: Raw = NO_VALUE


class Result(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    """An answer with a result."""

    id: JsonId
    result: object


class Failure(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    """An answer with an error; `id` is null if the request's id could not be read."""

    id: JsonId | None
    error: ErrorBody


class Request(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    """An outgoing request."""

    id: JsonId
    method: str
    params: object


class Notification(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    """An outgoing notification."""

    method: str
    params: object


class RemoteErrorBody(Struct):
    """The `error` member of an answer to an outgoing request."""

    code: int
    message: str = ""
    data: Raw = NO_VALUE


class Refusal(Exception):
    """Raised when a body is not a valid message; `error` is the answer, sent under `id`."""

    def __init__(self, error: RpcError, id: JsonId | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.id = id


decode = msgspec.json.Decoder(Envelope).decode
"""Decodes a well-formed envelope; `diagnose` explains whatever it refuses."""

encode = msgspec.json.Encoder().encode
"""Encodes any of the envelopes above."""

_decode_id = msgspec.json.Decoder(JsonId).decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_any = msgspec.json.Decoder(Raw).decode


def is_utf8(body: bytes) -> bool:
    """Whether the body is UTF-8, checked piecewise to avoid a decoded copy."""
    view = memoryview(body)
    position, size = 0, len(body)
    try:
        while position < size:
            end = position + _PIECE
            position += utf_8_decode(view[position:end], "strict", end >= size)[1]
    except UnicodeDecodeError:
        return False
    return True


def diagnose(body: bytes) -> Refusal:
    """Why `decode` refused the body (UTF-8 without lone surrogates), and the id to answer under."""
    if not body.strip(b" \t\r\n"):
        return Refusal(ParseError("the body is empty"))
    try:
        _decode_any(body)
    except RecursionError:
        return Refusal(ParseError("the JSON text is nested too deeply", hint="send flatter data"))
    except msgspec.DecodeError as problem:
        return Refusal(ParseError(f"the body is not valid JSON: {problem}"))
    if body.lstrip(b" \t\r\n").startswith(b"["):
        return Refusal(InvalidRequest("batches are not supported", hint="send the messages one by one"))
    try:
        members = _decode_members(body)
    except (msgspec.DecodeError, RecursionError):
        return Refusal(InvalidRequest("a message must be a JSON object"))
    return _diagnose_members(members)


def raw_id(body: bytes) -> bytes:
    """The id of a well-formed message exactly as written; empty if it has none."""
    return bytes(_decode_members(body).get("id", b""))


def missing_method(envelope: Envelope) -> Refusal:
    """The refusal of an envelope that is no request, notification or answer."""
    id = envelope.id if isinstance(envelope.id, (int, str)) else None
    return Refusal(InvalidRequest("the message has no method"), id)


def null_id() -> Refusal:
    """The refusal of a request whose id is null."""
    return Refusal(InvalidRequest("the id must be a string or an integer, got null"))


def _diagnose_members(members: dict[str, Raw]) -> Refusal:
    id: JsonId | None = None
    if "id" in members:
        try:
            id = _decode_id(members["id"])
        except msgspec.DecodeError:
            return Refusal(InvalidRequest("the id must be a string or an integer"))
    if "method" not in members:
        id = None
    if bytes(members.get("jsonrpc", b"")) != b'"2.0"':
        return Refusal(InvalidRequest('jsonrpc must be "2.0"'), id)
    return Refusal(InvalidRequest("the method must be a string"), id)
