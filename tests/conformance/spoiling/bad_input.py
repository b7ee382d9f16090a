"""Servers that are broken in what they answer to messages that cannot be used."""

from tests.conformance.spoiling.changes import (
    GONE,
    codes,
    replies,
    takes,
)
from tests.conformance.spoiling.proxy import Message, Proxy, Spoilt


def _any_version(_: Proxy, message: Message) -> Message:
    return {**message, "jsonrpc": "2.0"}


def _as_a_fraction(_: Proxy, raw: bytes, __: Message) -> bytes:
    changed = raw.replace(b'"id":900001', b'"id":900001.0')
    size = len(changed) - len(raw)
    return changed.replace(b": %d\r" % _length(raw), b": %d\r" % (_length(raw) + size), 1)


def _length(raw: bytes) -> int:
    return int(raw[16 : raw.index(b"\r")])


def _crashes(proxy: Proxy, data: bytes) -> bytes:
    if b"[" * 1000 in data:
        proxy.end(139)
    return data


def _with_an_id(proxy: Proxy, message: Message) -> Message | None:
    if message["method"] == "context/ingest" and "id" not in message:
        proxy.ask(message["method"], message["params"])
        return None
    return message


def _ends_at_strangers(proxy: Proxy, message: Message) -> Message:
    if "method" not in message:
        proxy.end(1)
    return message


def _cut(_: Proxy, raw: bytes, __: Message) -> bytes:
    return raw.replace(b"\\ud83d", b"\\ufffd")


SPOILT = {
    "bad input/invalid_json": codes("takes bad JSON for a bad envelope", -32700, -32600),
    "bad input/empty_bodies": codes("takes an empty body for a fault of its own", -32700, -32603),
    "bad input/invalid_envelopes": Spoilt("takes any version of JSON-RPC", request=_any_version),
    "bad input/ids_of_a_wrong_type": codes("takes a wrong id for a wrong param", -32600, -32602),
    "bad input/ids_come_back_as_they_were": Spoilt("writes integers as fractions", written=_as_a_fraction),
    "bad input/ids_in_flight": codes("does not notice an id that is in flight", -32600, -32601),
    "bad input/deep_nesting": Spoilt("crashes at deep nesting", data=_crashes),
    "bad input/params_that_are_not_objects": replies(
        "tells a path where none is", "/error/data/path", "/params"
    ),
    "bad input/members_of_a_wrong_type": replies(
        "tells paths that are no JSON Pointers", "/error/data/path", lambda path: path.replace("/", ".")
    ),
    "bad input/messages_of_a_wrong_type": replies(
        "does not tell which message is wrong", "/error/data/path", "/messages"
    ),
    "bad input/null_and_unknown_members": takes(
        "takes null for a value", "/turnId", lambda value: 7 if value is None else value, "context/ingest"
    ),
    "bad input/unknown_methods": codes("takes unknown methods for bad requests", -32601, -32600),
    "bad input/requests_sent_as_notifications": Spoilt("runs requests without an id", request=_with_an_id),
    "bad input/answers_to_nothing": Spoilt("ends at answers to nothing", request=_ends_at_strangers),
    "bad input/errors_say_what_to_do": replies("gives no hints", "/error/data/hint", GONE),
    "bad input/lone_surrogates": Spoilt("replaces lone surrogates", written=_cut),
}
