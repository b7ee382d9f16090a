"""Servers that are broken somewhere between the start of a connection and the end of its process."""

from tests.conformance.spoiling.changes import GONE, asked, codes, error, refuses, replies
from tests.conformance.spoiling.proxy import Message, Proxy, Spoilt


def _before_initialized(proxy: Proxy, message: Message) -> Message:
    if message.get("method") == "initialized":
        proxy.memory["initialized"] = True
    return message


def _waiting(proxy: Proxy, message: Message, request: Message) -> Message:
    early = request and request["method"] != "initialize" and "initialized" not in proxy.memory
    return error(message["id"], -32002) if early else message


def _failed_once(proxy: Proxy, message: Message, request: Message) -> Message:
    if request.get("method") == "initialize":
        if "failed" in proxy.memory:
            return error(message["id"], -32600)
        proxy.memory["failed"] = True
    return message


def _hasty(proxy: Proxy, message: Message) -> Message:
    if message.get("method") == "shutdown":
        proxy.say({"jsonrpc": "2.0", "id": message["id"], "result": None})
        proxy.memory["shut down"] = message["id"]
    return message


def _but_not_twice(proxy: Proxy, message: Message, _: Message) -> Message | None:
    return None if message.get("id") == proxy.memory.get("shut down", GONE) else message


def _loses_the_last(_: Proxy, message: Message, __: Message) -> Message | None:
    return None if message.get("id") == "i19" else message


def _asks_for_progress(proxy: Proxy, message: Message, request: Message) -> Message:
    if request.get("method") == "context/compact":
        params = {"token": "another"}
        create = "window/workDoneProgress/create"
        proxy.say({"jsonrpc": "2.0", "id": 987, "method": create, "params": params})
    return message


def _ends_at_odd_traces(proxy: Proxy, message: Message) -> Message:
    if asked("$/setTrace", "/value", "nonsense")(message):
        proxy.end(1)
    return message


SPOILT = {
    "lifecycle/requests_before_initialize": codes("knows no order of requests", -32002, -32600),
    "lifecycle/initialize_is_a_barrier": refuses(
        "refuses what is sent behind initialize", -32002, lambda request: request["id"] == "behind"
    ),
    "lifecycle/after_a_failed_initialize": Spoilt("fails for ever after it failed once", reply=_failed_once),
    "lifecycle/second_initialize": codes("takes a second initialize for an unknown method", -32600, -32601),
    "lifecycle/initialized_is_optional": Spoilt(
        "waits for initialized", request=_before_initialized, reply=_waiting
    ),
    "lifecycle/bare_initialize": refuses(
        "wants params of initialize", -32602, lambda request: not request.get("params")
    ),
    "lifecycle/shutdown_then_exit": replies("answers shutdown with an object", "/result", {}, "shutdown"),
    "lifecycle/exit_alone": Spoilt("ends with status 0 without shutdown", status=lambda _: 0),
    "lifecycle/shutdown_comes_last": Spoilt(
        "answers shutdown before all else", request=_hasty, reply=_but_not_twice
    ),
    "lifecycle/end_of_input_between_messages": Spoilt("loses the last answer", reply=_loses_the_last),
    "lifecycle/end_of_input_inside_a_message": Spoilt(
        "ends with status 0 inside a message", status=lambda _: 0
    ),
    "lifecycle/sigterm": Spoilt("ends by SIGTERM", status=lambda _: 143),
    "lifecycle/death_of_the_host": Spoilt("ends with status 0 when its host has died", status=lambda _: 0),
    "lifecycle/own_process_id": refuses(
        "refuses a process id", -32602, lambda request: "processId" in (request.get("params") or {})
    ),
    "lifecycle/set_trace": Spoilt("ends at an unknown trace value", request=_ends_at_odd_traces),
    "lifecycle/progress": Spoilt("asks for progress unasked", reply=_asks_for_progress),
}
