"""What the specification says about the members of a message."""

from __future__ import annotations

import json
from functools import cache

import msgspec

from sidecar.conformance.expecting import Violation
from sidecar.conformance.server.wire import Json, Message, Object, shown
from sidecar.protocol.errors import ERRORS
from sidecar.protocol.methods import METHODS, Method

_BY_NAME = {method.name: method for method in METHODS}
_SENT = {method.name: method for method in METHODS if method.direction != "hostToServer"}


def check_message(message: Message) -> None:
    """Hold a message to what every message of a server must be.

    Raises:
        Violation: a member is missing, of the wrong type, or out of place.
    """
    if message.body.get("jsonrpc") != "2.0":
        raise Violation(f"no jsonrpc 2.0 in {shown(message.raw)}")
    if not message.is_response:
        _check_sent(message)
        return
    if ("result" in message.body) == ("error" in message.body):
        raise Violation(f"neither result nor error, or both, in {shown(message.raw)}")
    if "error" in message.body:
        _check_error(message)


def check_result(method: str, message: Message) -> None:
    """Hold the result of a request to the type that the method table names.

    Raises:
        Violation: it is of another type.
    """
    known = _BY_NAME.get(method)
    if known is None or "error" in message.body:
        return
    if known.result is None:
        if message.body["result"] is not None:
            raise Violation(f"the result of {method} is null, not {shown(message.raw)}")
        return
    _decode(known, known.result, message.body["result"], f"the result of {method}")


def _check_sent(message: Message) -> None:
    method = message.method or ""
    if method.startswith("$/") and method not in _SENT:
        return
    known = _SENT.get(method)
    if known is None:
        raise Violation(f"the server sent {method}, which is none of its methods")
    if (known.kind == "request") != ("id" in message.body):
        raise Violation(f"{method} is a {known.kind}: {shown(message.raw)}")
    params: Json = message.body.get("params") or {}
    _decode(known, known.params, params, f"the params of {method}")


def _check_error(message: Message) -> None:
    error = message.body["error"]
    if not isinstance(error, dict):
        raise Violation(f"error is no object in {shown(message.raw)}")
    code, text, data = error.get("code"), error.get("message"), error.get("data")
    if not isinstance(code, int) or not isinstance(text, str) or not text:
        raise Violation(f"an error needs a code and a message: {shown(message.raw)}")
    if code not in _error_codes():
        raise Violation(f"error code {code} is not in the table of errors")
    if not isinstance(data, dict):
        raise Violation(f"error {code} has no data: {shown(message.raw)}")
    if not isinstance(data.get("retryable"), bool) or not isinstance(data.get("hint"), str):
        raise Violation(f"data of error {code} lacks retryable or hint: {shown(message.raw)}")


@cache
def _error_codes() -> frozenset[int]:
    return frozenset(error.code for error in ERRORS)


def _decode(method: Method, type_name: str, value: Json | Object, what: str) -> None:
    try:
        # Lone surrogates, which hosts send and get back, have no UTF-8.
        raw = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        msgspec.json.decode(raw, type=method.load(type_name))
    except msgspec.ValidationError as error:
        raise Violation(f"{what}: {error}") from None
