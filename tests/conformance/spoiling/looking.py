"""Servers that are broken in their tools, and in what they have of memory."""

from typing import Any

from tests.conformance.spoiling.changes import GONE, asked, codes, put, refuses, replies, sends, takes
from tests.conformance.spoiling.proxy import Message, Proxy, Spoilt

_CALL, _COMPILE = "tools/call", "memory/compile"
_ASSEMBLE = "context/assemble"
_TEXT = "/result/content/*/text"


def _by_letter(_: Proxy, message: Message, request: Message) -> Message:
    if asked(_CALL, "/arguments/query", "STRASSE")(request):
        put(message, _TEXT, "Nothing found.")
    return message


def _again(proxy: Proxy, message: Message, request: Message) -> Message:
    if request.get("method") == _ASSEMBLE and "result" in message:
        append = message["result"].get("userMessageAppend") or proxy.memory.get("append")
        proxy.memory["append"] = append
        put(message, "/result/userMessageAppend", append)
    return message


def _ranges_apart(text: str) -> str:
    return text.replace("--- messages 1-6 of 10 ---", "--- messages 1-3 of 10 ---")


def _without_its_last_line(text: Any) -> str:
    return str(text).rstrip().rpartition("\n")[0]


SPOILT = {
    "tools/tools_and_their_schemas": replies(
        "has tools without a schema", "/result/tools/*/inputSchema", "none", "tools/list"
    ),
    "tools/search_finds_what_was_just_stored": Spoilt("searches letter by letter", reply=_by_letter),
    "tools/ranges_that_touch_are_merged": replies("does not merge ranges", _TEXT, _ranges_apart, _CALL),
    "tools/relevant_hits": replies("has hits as text alone", "/result/structuredContent", GONE, _CALL),
    "tools/tool_output_is_bounded": replies(
        "does not say what it left out", _TEXT, _without_its_last_line, _CALL
    ),
    "tools/tools_read_their_session_alone": takes("has tools for everyone", "/agentId", GONE, _CALL),
}

MEMORY = {
    "memory/sources_need_the_capability": codes("takes a missing capability for bad params", 1004, -32602),
    "memory/compiling": replies("includes what does not fit", "/result/fragments/*/included", True, _COMPILE),
    "memory/wrong_token_counts": replies(
        "believes in no tokens", "/result/fragments/*/included", True, _COMPILE
    ),
    "memory/sources_that_fail": refuses("fails with its sources", -32603, asked(_COMPILE)),
    "memory/sources_receive_the_agent": sends(
        "asks for another agent", "/params/agentId", "nobody", "memory/getContext"
    ),
}

INJECTING = {
    "injecting/verbatim_fragments": replies(
        "has every fragment rewritten", "/result/finalContent", "A Roman with a cat and a code.", _COMPILE
    ),
    "injecting/memory_goes_to_its_injection_point": replies(
        "forgets the prompt of the system", "/result/systemPromptAddition", GONE, _ASSEMBLE
    ),
    "injecting/injected_text_is_fenced": replies(
        "injects bare text", "/result/userMessageAppend", "marigold tea", _ASSEMBLE
    ),
    "injecting/memory_is_injected_once": Spoilt("injects the same with every turn", reply=_again),
}
