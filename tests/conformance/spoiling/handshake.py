"""Servers that are broken in what `initialize` settles."""

from pathlib import Path

from tests.conformance.spoiling.changes import (
    GONE,
    at,
    refuses,
    replies,
    takes,
)
from tests.conformance.spoiling.proxy import Message, Proxy, Spoilt

_OPTIONS = "/params/initializationOptions/contextEngine"
_HELLO = "initialize"
_OFFER = "/result/capabilities/experimental/contextEngine"


def _option(name: str) -> str:
    return f"/initializationOptions/contextEngine/{name}"


def _empties_the_store(_: Proxy, message: Message, request: Message) -> Message:
    if at(message, "/error/code") == 1006:
        Path(at(request, f"{_OPTIONS}/config/store/path")).write_bytes(b"")
    return message


def _asks_anyway(proxy: Proxy, message: Message, request: Message) -> Message:
    if request.get("method") == "context/compact":
        proxy.say({"jsonrpc": "2.0", "id": 987, "method": "runtime/complete", "params": {}})
    return message


SPOILT = {
    "handshake/answer_to_initialize": replies(
        "does not tell all its limits", f"{_OFFER}/limits/maxParkedBytes", GONE, _HELLO
    ),
    "handshake/declared_methods": replies(
        "does not declare all its methods", f"{_OFFER}/methods", lambda names: names[:-1], _HELLO
    ),
    "handshake/unknown_version": replies("does not tell its versions", "/error/data/supported", GONE),
    "handshake/every_supported_version": replies(
        "has one version whatever is asked for", f"{_OFFER}/protocolVersion", "0.9", _HELLO
    ),
    "handshake/defaults_and_unknown_capabilities": refuses(
        "refuses capabilities it does not know",
        -32602,
        lambda request: "no/such" in (at(request, f"{_OPTIONS}/hostCapabilities") or ()),
    ),
    "handshake/unknown_message_format": replies(
        "does not say which option is wrong", "/error/message", "A wrong option.", _HELLO
    ),
    "handshake/unknown_engine": takes("takes another engine in silence", _option("engine"), GONE, _HELLO),
    "handshake/wrong_setting": takes("overlooks wrong settings", _option("config/limits"), GONE, _HELLO),
    "handshake/state_folder": takes(
        "keeps its state wherever it is told", _option("config/stateDir"), GONE, _HELLO
    ),
    "handshake/unknown_setting": refuses(
        "refuses settings it does not know",
        -32602,
        lambda request: at(request, f"{_OPTIONS}/config/noSuchKey") is not None,
    ),
    "handshake/code_cannot_be_loaded_from_the_wire": refuses(
        "fails over paths of engines",
        -32603,
        lambda request: at(request, f"{_OPTIONS}/config/plugins") is not None,
    ),
    "handshake/store_that_cannot_be_opened": Spoilt("empties a damaged store", reply=_empties_the_store),
    "handshake/namespaces": takes("has one namespace for all", _option("namespace"), "one", _HELLO),
    "handshake/undeclared_requests_are_not_sent": Spoilt(
        "asks for what no host has declared", reply=_asks_anyway
    ),
}
