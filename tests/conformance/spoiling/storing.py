"""Servers that are broken in what they store, and in whose sessions are whose."""

import json

from tests.conformance.spoiling.changes import (
    GONE,
    also,
    asked,
    at,
    codes,
    put,
    refuses,
    replies,
    runs,
    takes,
)
from tests.conformance.spoiling.proxy import Message, Proxy, Spoilt

_INGEST, _BATCH, _COMMIT = "context/ingest", "context/ingestBatch", "context/commitTurn"
_EXPORT = "session/export"
_MESSAGES = "/result/messages"


def _written_anew(_: Proxy, raw: bytes, request: Message) -> bytes:
    if request.get("method") != _EXPORT:
        return raw
    message = json.loads(raw[raw.index(b"{") :])
    body = json.dumps(message, separators=(",", ":")).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _of_known_roles(entries: list[Message]) -> list[Message]:
    return [entry for entry in entries if entry["message"].get("role") != "oracle"]


def _unique_keys(proxy: Proxy, message: Message) -> Message:
    put(message, "/params/advancementKey", str(message.get("id")))
    return message


def _turns_at_results(_: Proxy, message: Message, request: Message) -> Message:
    if at(request, "/params/message/role") == "tool":
        put(message, "/result/turnId", "t9")
    return message


def _forgets_keys(_: Proxy, message: Message) -> Message:
    if asked(_INGEST, "/message/content", "new")(message):
        put(message, "/params/sessionKey", GONE)
    return message


SPOILT = {
    "storing/ingest_creates_the_session": replies("opens no turns", "/result/turnId", "t1", _INGEST),
    "storing/messages_come_back_byte_for_byte": Spoilt("writes messages anew", written=_written_anew),
    "storing/unknown_roles_and_odd_members": replies(
        "keeps no messages of roles it does not know", _MESSAGES, _of_known_roles, _EXPORT
    ),
    "storing/one_id_one_message": replies(
        "takes other text under the same id for the same", "/result/reason", "duplicate", _INGEST
    ),
    "storing/texts_are_compared_normalized": replies(
        "compares text byte for byte", "/result/reason", "conflict", _INGEST
    ),
    "storing/batches_without_ids_append": replies(
        "counts equal texts once", "/result/ingestedCount", 0, _BATCH
    ),
    "storing/batches_are_all_or_nothing": also(
        "stores what comes before a wrong message",
        asked(_BATCH),
        _INGEST,
        lambda params: {"sessionId": params["sessionId"], "message": params["messages"][0]},
    ),
    "storing/turns_are_committed_once": Spoilt("takes every key for new", request=_unique_keys),
    "storing/receipts_are_not_read": refuses(
        "reads receipts", -32602, lambda request: at(request, "/params/admission") is not None
    ),
    "storing/whole_transcripts_are_aligned": also(
        "stores an old message again with every commit",
        asked(_COMMIT, "/advancementKey", "2"),
        _INGEST,
        lambda params: {"sessionId": params["sessionId"], "message": params["messages"][0]},
    ),
    "storing/bootstrap_imports_what_is_new": replies(
        "imports anew every time", "/result/bootstrapped", True, "context/bootstrap"
    ),
    "storing/unreadable_session_files": replies(
        "gives no reasons", "/result/reason", GONE, "context/bootstrap"
    ),
    "storing/after_turn_stores_the_turn": takes(
        "leaves the last message of a turn out",
        "/messages",
        lambda messages: messages[:-1],
        "context/afterTurn",
    ),
    "storing/turns_open_at_user_messages": Spoilt("opens turns at tool results", reply=_turns_at_results),
    "storing/heartbeats_leave": takes("takes heartbeats for messages", "/isHeartbeat", GONE, _INGEST),
    "storing/times_are_rfc_3339": replies(
        "writes times of its own form",
        f"{_MESSAGES}/*/timestamp",
        lambda time: time.replace("Z", "+00:00"),
        _EXPORT,
    ),
    "storing/sessions_have_one_dialect": takes(
        "reads every dialect as one",
        "/initializationOptions/contextEngine/messageFormat",
        "openai",
        "initialize",
    ),
    "storing/acknowledged_means_durable": takes(
        "keeps everything in memory",
        "/initializationOptions/contextEngine/config/store",
        lambda _: {"kind": "memory"},
        "initialize",
    ),
    "storing/odd_names": takes("trims names", "/sessionId", str.strip, _INGEST, "session/get", _EXPORT),
}

_EVERYTHING = ("context/assemble", "context/compact", _INGEST, "session/get", _EXPORT, "session/delete")

SESSIONS = {
    "sessions/agents_do_not_see_each_other": takes("knows no agents", "/agentId", GONE, *_EVERYTHING),
    "sessions/the_latest_alias_wins": Spoilt("keeps the first session of a key", request=_forgets_keys),
    "sessions/lists_are_paginated": replies(
        "ends every list at its first page", "/result/nextCursor", GONE, "session/list"
    ),
    "sessions/exports_are_complete": replies(
        "leaves out the last message of a page", _MESSAGES, lambda entries: entries[:-1], _EXPORT
    ),
    "sessions/truncating": runs("truncates nothing", "session/truncate", "session/get"),
    "sessions/forking": takes("forks the whole of a session", "/atMessageId", GONE, "session/fork"),
    "sessions/deleting": replies("tells of any session that it deleted it", "/result/deleted", True),
    "sessions/pins": takes("pins another message", "/messageId", lambda _: "m-none", "session/pin"),
    "sessions/configuring": takes("overlooks the engine", "/engine", "legacy", "session/configure"),
    "sessions/engines": replies("marks every engine as active", "/result/engines/*/active", True),
    "sessions/unknown_sessions": codes("takes unknown sessions for bad params", 1003, -32602),
    "sessions/exports_say_when_and_in_which_turn": replies(
        "exports everything as one turn", f"{_MESSAGES}/*/turnId", "t1", _EXPORT
    ),
}
