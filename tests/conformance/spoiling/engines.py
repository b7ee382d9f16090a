"""Servers that are broken in which engines they have, and in what they keep to themselves."""

import sys

from tests.conformance.spoiling.changes import GONE, asked, at, refuses, replies
from tests.conformance.spoiling.proxy import Message, Proxy, Spoilt

_ENGINE = "/result/capabilities/experimental/contextEngine/engine/id"


def _quietly(_: Proxy, message: Message, __: Message) -> Message | None:
    return None if message.get("method") == "tools/listChanged" else message


def _without_a_question(messages: list[Message]) -> list[Message]:
    return messages[1:]


def _logs_bodies(_: Proxy, message: Message) -> Message:
    if message.get("method") == "context/ingest":
        print("stored", at(message, "/params/message"), file=sys.stderr, flush=True)
    return message


def _tells_urls(_: Proxy, message: Message, request: Message) -> Message:
    if "error" in message:
        url = at(request, "/params/initializationOptions/contextEngine/config/store/url")
        message["error"]["message"] = f"cannot reach {url}"
    return message


SPOILT = {
    "engines/default_engine": replies("has one engine for all hosts", _ENGINE, "default", "initialize"),
    "engines/every_method_of_every_engine": refuses(
        "maintains with some engines alone", -32601, asked("context/maintain")
    ),
    "engines/fallback_to_legacy": replies(
        "does not tell who stands in for whom", "/result/fallbackFor", GONE, "context/assemble"
    ),
    "engines/engine_list_despite_a_missing_plugin": refuses(
        "has no list where one engine is bad", -32603, asked("engine/list")
    ),
    "engines/full_drops_whole_turns": replies(
        "cuts turns in the middle", "/result/messages", _without_a_question, "context/assemble"
    ),
    "engines/changed_tools_are_announced": Spoilt("changes tools in silence", reply=_quietly),
    "logging/bodies_are_not_logged": Spoilt("logs what it stores", request=_logs_bodies),
    "logging/passwords_are_not_disclosed": Spoilt("tells whole URLs", reply=_tells_urls),
}
