"""Servers that are broken in cancellation, order, and how much they do at once."""

from tests.conformance.spoiling.changes import at, codes, error, put, refuses, replies, sends
from tests.conformance.spoiling.proxy import Message, Proxy, Spoilt

_OFFER = "/result/capabilities/experimental/contextEngine"
_HELLO = "initialize"


def _gives_up_waiting(proxy: Proxy, message: Message) -> Message:
    if message.get("method") == "context/preflight":
        proxy.say(error("slow", -32603))
    return message


def _every_hundredth_twice(proxy: Proxy, message: Message, request: Message) -> Message:
    if request.get("method") == "session/list" and message["id"] % 100 == 0:
        proxy.say(message)
    return message


def _swapped(status: str) -> str:
    return "committed" if status == "duplicate" else "duplicate"


def _is_odd(request: Message) -> bool:
    text = at(request, "/params/message/content")
    return isinstance(text, str) and text.startswith("text ") and text[-1] in "13579"


def _hears_no_cancelling(_: Proxy, message: Message) -> Message | None:
    return None if message.get("method") == "$/cancelRequest" else message


def _cancelled(_: Proxy, message: Message, request: Message) -> Message:
    return error(message["id"], -32800) if _is_odd(request) else message


def _rising(proxy: Proxy, message: Message, _: Message) -> Message:
    proxy.memory["epoch"] = proxy.memory.get("epoch", 0) + 1
    put(message, "/result/contextEpoch", lambda _: proxy.memory["epoch"])
    return message


SPOILT = {
    "flow/cancelling_a_request_that_waits_for_the_host": sends(
        "cancels another request than the one that served", "/params/id", "another", "$/cancelRequest"
    ),
    "flow/cancelling_nothing": refuses(
        "lets initialize be cancelled", -32800, lambda request: request["id"] == "hello"
    ),
    "flow/cancelled_requests_have_no_effect": Spoilt(
        "tells the stored for cancelled", request=_hears_no_cancelling, reply=_cancelled
    ),
    "flow/a_cancelled_commit_keeps_its_key": replies(
        "mistakes keys that are used for keys that are not", "/result/status", _swapped
    ),
    "flow/effects_in_the_order_received": replies(
        "assembles what was there a message before",
        "/result/messages",
        lambda messages: messages[:-1],
        "context/assemble",
    ),
    "flow/sessions_do_not_wait_for_each_other": Spoilt(
        "gives up one session for another", request=_gives_up_waiting
    ),
    "flow/assemble_is_repeatable": Spoilt("raises the epoch with every answer", reply=_rising),
    "flow/answers_are_read_however_many_requests_wait": refuses(
        "refuses what it has no room to work on", 1007, lambda request: request["id"] == "c11"
    ),
    "flow/busy": replies("has nobody try again", "/error/data/retryable", False),
    "flow/hosts_that_do_not_answer": sends(
        "cancels another request than the one that took too long", "/params/id", "another", "$/cancelRequest"
    ),
    "flow/cancelling_a_queued_request": codes("takes what was cancelled for failed", -32800, -32603),
    "flow/every_request_is_answered_once": Spoilt(
        "answers some requests twice", reply=_every_hundredth_twice
    ),
    "schema/every_message_keeps_the_schema": replies(
        "tells a limit in words", f"{_OFFER}/limits/maxInFlight", "many", _HELLO
    ),
}
