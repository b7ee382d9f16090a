"""What the specification says about the members of a client's messages."""

from __future__ import annotations

import json

import msgspec

from sidecar.conformance.kit import Violation
from sidecar.conformance.server.wire import Json, Message, shown
from sidecar.protocol.methods import METHODS, Method

_SENT = {method.name: method for method in METHODS if method.direction != "serverToHost"}
_ANSWERED = {method.name: method for method in METHODS if method.direction == "serverToHost"}


def check_message(message: Message, answered: str | None) -> None:
    """Hold a message to what every message of a client must be; `answered` is the request that it answers.

    Raises:
        Violation: a member is missing, of the wrong type, or out of place.
    """
    if message.body.get("jsonrpc") != "2.0":
        raise Violation(f"no jsonrpc 2.0 in {shown(message.raw)}")
    if message.is_response:
        _check_answer(message, answered)
        return
    known = _SENT.get(message.method or "")
    if known is None:
        raise Violation(f"the client sent {message.method}, which is none of its methods")
    if (known.kind == "request") != ("id" in message.body):
        raise Violation(f"{known.name} is a {known.kind}: {shown(message.raw)}")
    if "id" in message.body and (isinstance(message.id, bool) or not isinstance(message.id, int | str)):
        raise Violation(f"an id is a string or an integer: {shown(message.raw)}")
    params = message.body.get("params")
    if params is not None and not isinstance(params, dict):
        raise Violation(f"params are an object: {shown(message.raw)}")
    _decode(known, known.params, params or {}, f"the params of {known.name}")


def _check_answer(message: Message, answered: str | None) -> None:
    if ("result" in message.body) == ("error" in message.body):
        raise Violation(f"neither result nor error, or both, in {shown(message.raw)}")
    if "error" in message.body:
        if not isinstance(message.code, int) or not isinstance(message.at("/error/message", None), str):
            raise Violation(f"an error needs a code and a message: {shown(message.raw)}")
        return
    known = _ANSWERED.get(answered or "")
    if known is not None and known.result is not None:
        _decode(known, known.result, message.body["result"], f"the result of {known.name}")


def _decode(method: Method, type_name: str, value: Json, what: str) -> None:
    try:
        # Lone surrogates, which hosts may send, have no UTF-8.
        raw = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        msgspec.json.decode(raw, type=method.load(type_name))
    except msgspec.ValidationError as error:
        raise Violation(f"{what}: {error}") from None
