"""Broken clients: ours behind a proxy that spoils one thing, or in a driver that tells one untruth."""

import json
from collections.abc import Callable
from typing import NamedTuple

from tests.conformance.spoiling.changes import GONE, at, codes, error, put, replies, takes
from tests.conformance.spoiling.framing import counts_characters, is_cut
from tests.conformance.spoiling.proxy import Message, Proxy, Spoilt

_HELLO = "initialize"
_OPTIONS = "/initializationOptions/contextEngine"


class Untrue(NamedTuple):
    """A driver that changes what it tells; `None` in place of a line withholds it."""

    what: str
    told: Callable[[Message], Message | None]
    early: Callable[[Message], Message | None] = lambda _: None
    """What it tells already when it hears of an operation."""


def _gives_up(what: str, when: Callable[[bytes], bool]) -> Spoilt:
    """Leaves where `when` is true of bytes of the server that were read at once."""

    def heard(proxy: Proxy, data: bytes) -> bytes:
        if when(data):
            proxy.end(1)
        return data

    return Spoilt(what, heard=heard)


def _hasty(proxy: Proxy, message: Message) -> Message:
    if message.get("method") == _HELLO:
        proxy.ask("engine/list", {})
    return message


def _drops(method: str) -> Callable[[Proxy, Message], Message | None]:
    return lambda _, message: None if message.get("method") == method else message


def _first_come(proxy: Proxy, message: Message, asked: Message) -> Message:
    if asked.get("method") == "session/get":
        order = proxy.memory.setdefault("order", ["one", "two", "three"])
        put(message, "/result/sessionId", order.pop(0) if order else "none")
    return message


def _one_id(_: Proxy, message: Message) -> Message:
    if message.get("method") == "session/get":
        message["id"] = 1
    return message


def _in_answers(pointer: str, value: object) -> Callable[[Proxy, Message], Message]:
    """Changes the answers that the client gives."""

    def request(_: Proxy, message: Message) -> Message:
        if "method" not in message:
            put(message, pointer, value)
        return message

    return request


def _refuses_all(_: Proxy, message: Message) -> Message:
    return error(message["id"], -32603) if "result" in message else message


def _calls_failures_results(_: Proxy, message: Message) -> Message:
    if "method" in message or "error" not in message:
        return message
    return {"jsonrpc": "2.0", "id": message["id"], "result": {"text": ""}}


def _leaves_with_a_cancelled_result(proxy: Proxy, message: Message, asked: Message) -> Message:
    if "result" in message and asked.get("method") == "engine/list":
        proxy.end(1)
    return message


def _exits_first(proxy: Proxy, message: Message) -> Message:
    if message.get("method") == "shutdown":
        proxy.pass_on({"jsonrpc": "2.0", "method": "exit"})
    return message


def _strict(_: Proxy, message: Message, asked: Message) -> Message:
    return error(message["id"], -32603) if at(message, "/result/noSuchMember") is not None else message


def _strict_in_values(_: Proxy, message: Message, asked: Message) -> Message:
    known = "method" in message or '"to-come"' not in json.dumps(message.get("result"))
    return message if known else error(message["id"], -32603)


def _one_at_a_time(proxy: Proxy, message: Message, _: Message) -> Message | None:
    if message.get("method") != "runtime/complete":
        return message
    if proxy.memory.setdefault("first", message["id"]) == message["id"]:
        return message
    proxy.pass_on(error(message["id"], -32603))
    return None


def _stores_again(proxy: Proxy, message: Message) -> Message:
    if message.get("method") == "engine/list":
        proxy.ask("context/ingest", {"sessionId": "s", "message": {"role": "user", "content": "x"}})
    return message


def _for_success(line: Message) -> Message:
    return {"id": line["id"], "result": None} if "failure" in line and line["id"] == "lost" else line


def _as_other(kind: str) -> Callable[[Message], Message]:
    def told(line: Message) -> Message:
        if at(line, "/failure/kind") == kind:
            put(line, "/failure/kind", "other")
        return line

    return told


def _empty_params(line: Message) -> Message:
    if "heard" in line:
        line["params"] = {}
    return line


def _closed_at_once(line: Message) -> Message | None:
    return {"id": line["id"], "result": None} if line.get("do") == "close" else None


def _not_closed_again(line: Message) -> Message | None:
    return None if line.get("id") == "close" else line


_EDITS = "/result/edits/*/start"

BROKEN: dict[str, Spoilt | Untrue] = {
    "handshake/initialize_comes_first": Spoilt("asks before it says hello", request=_hasty),
    "handshake/initialized_follows": Spoilt("never says initialized", request=_drops("initialized")),
    "handshake/process_id": takes("does not name its process", "/processId", GONE, _HELLO),
    "handshake/declared_capabilities": takes(
        "declares what it cannot do", f"{_OPTIONS}/hostCapabilities", lambda _: ["runtime/compact"], _HELLO
    ),
    "handshake/refusals_reach_the_runtime": codes("takes every refusal for a defect", 1001, -32603),
    "handshake/answers_of_newer_servers": Spoilt("takes no members it does not know", reply=_strict),
    "reading/answers_in_any_order": Spoilt("takes answers in the order of requests", reply=_first_come),
    "reading/ids_of_requests": Spoilt("has one id for all requests", request=_one_id),
    "reading/frames_cut_anywhere": _gives_up("takes every read for one frame", is_cut),
    "reading/length_in_bytes": Spoilt("counts characters where bytes are meant", heard=counts_characters),
    "reading/header_names_in_any_case_and_order": _gives_up(
        "gives up at headers it does not know", lambda data: b"x-other" in data
    ),
    "reading/header_lines_that_end_with_lf": _gives_up(
        "gives up at a header line without CR", lambda data: b"\n\n{" in data
    ),
    "reading/large_answers": _gives_up("gives up at long answers", lambda data: len(data) > 20_000),
    "reading/null_and_unknown_members": Spoilt("takes no members it does not know", reply=_strict),
    "reading/unknown_notifications": _gives_up(
        "gives up at notifications it does not know", lambda data: b"future/thing" in data
    ),
    "reading/notifications_reach_the_runtime": Untrue("tells no params of notifications", _empty_params),
    "reading/progress_reaches_the_runtime": Untrue("tells no params of progress", _empty_params),
    "reading/future_values": Spoilt("takes no values it does not know", reply=_strict_in_values),
    "reading/answers_to_nothing": _gives_up(
        "gives up at answers to nothing", lambda data: b'"nobody"' in data
    ),
    "answering/requests_while_the_client_waits": Spoilt(
        "does not answer while it waits", request=_refuses_all
    ),
    "answering/concurrent_requests": Spoilt(
        "refuses a request while another is answered", reply=_one_at_a_time
    ),
    "answering/memory_fragments": Spoilt(
        "keeps its memory to itself", request=_in_answers("/result/fragments", [])
    ),
    "answering/unknown_requests": Spoilt(
        "takes unknown requests for defects", request=_in_answers("/error/code", -32603)
    ),
    "answering/runtime_failures": Spoilt("gives failures out for results", request=_calls_failures_results),
    "answering/requests_that_the_server_cancels": Spoilt(
        "takes cancelled requests for failed ones", request=_in_answers("/error/code", -32603)
    ),
    "waiting/errors_reach_the_runtime": replies("keeps data of errors to itself", "/error/data", GONE),
    "waiting/cancelling_requests": takes("cancels another request", "/id", "another", "$/cancelRequest"),
    "waiting/cancelling_too_late": Spoilt(
        "leaves when a result comes too late", reply=_leaves_with_a_cancelled_result
    ),
    "waiting/slow_servers": Untrue("does not tell that time is over", _as_other("timeout")),
    "waiting/crashes": Untrue("takes a crash for success", _for_success),
    "waiting/outputs_that_end": Untrue("takes the end of the output for success", _for_success),
    "waiting/invalid_frames": Untrue("takes garbage for success", _for_success),
    "waiting/standard_error_is_read": Spoilt("closes standard error", mute=True),
    "deltas/edits_make_whole_lists": replies(
        "counts places of edits from 1", _EDITS, lambda start: start + 1
    ),
    "deltas/whole_lists_in_place_of_edits": takes(
        "asks against the first result for ever",
        "/previousResultId",
        lambda id: id and "r1",
        "context/assemble",
    ),
    "deltas/sessions_apart": takes(
        "asks against results of other sessions", "/previousResultId", "r1", "context/assemble"
    ),
    "restarting/nothing_is_stored_again": Spoilt(
        "stores again what was lost with a server", request=_stores_again
    ),
    "restarting/edits_start_over": takes(
        "asks new servers against results of old ones", "/previousResultId", "r1", "context/assemble"
    ),
    "restarting/sources_are_offered_again": takes(
        "offers new servers other sources", "/name", "other", "memory/register"
    ),
    "ending/in_order": Spoilt("says exit before shutdown", request=_exits_first),
    "ending/by_force": Untrue(
        "says that it is closed before it is", _not_closed_again, early=_closed_at_once
    ),
    "schema/every_message_keeps_the_schema": takes(
        "names sessions by numbers", "/sessionId", lambda _: 7, "context/ingest"
    ),
}
