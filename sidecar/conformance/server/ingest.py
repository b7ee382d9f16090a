"""Storing messages: once, durably, and byte for byte."""

from __future__ import annotations

from sidecar.conformance.kit import expect, expect_equal
from sidecar.conformance.server.conversation import (
    assistant,
    call,
    expect_unknown,
    exported,
    history,
    ingest,
    store,
    text_of,
    tool,
    user,
)
from sidecar.conformance.server.subject import Server, check
from sidecar.conformance.wire import Json

_EXPORT = "session/export"
_INGEST = "context/ingest"
_COMMIT = "context/commitTurn"


@check("storing", "CEP-HIST-1", "CEP-HIST-4", "CEP-ID-8", needs=(_INGEST, _EXPORT))
def ingest_creates_the_session(server: Server) -> None:
    """The first message creates the session; each message gets its own id and a turn."""
    host, session = server.shared(), server.name()
    first = ingest(host, session, user("one"))
    second = ingest(host, session, user("one"))
    expect_equal(first.result("/ingested"), True, "ingested")
    expect(first.text("/messageId") != second.text("/messageId"), "two messages have one id")
    expect_equal((first.text("/turnId"), second.text("/turnId")), ("t1", "t2"), "turns")
    expect_equal(len(history(host, session)), 2, "number of stored messages")


@check("storing", "CEP-MSG-4", needs=(_INGEST, _EXPORT))
def messages_come_back_byte_for_byte(server: Server) -> None:
    """Unknown members, member order, number formats and escapes survive."""
    host, session = server.shared(), server.name()
    spelled = (
        '{"role":"user","zeta":1.50,"content":"\\u00e9 \\/ 你好 \\ud83d\\ude00","alpha":{"b":1e2,"a":-0.0}}',
        '{"role":"user","content":"a number","n":12345678901234567890}',
        '{"content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],"role":"user"}',
        '{"role":"assistant" , "content" : "spaces" }',
    )
    for number, message in enumerate(spelled):
        host.write(
            f'{{"jsonrpc":"2.0","id":"bytes-{number}","method":"context/ingest",'
            f'"params":{{"sessionId":"{session}","message":{message}}}}}'
        )
        host.answer(f"bytes-{number}").result()
    raw = host.result(_EXPORT, {"sessionId": session}).raw
    for message in spelled:
        expect(message.encode() in raw, f"it came back changed: {message}")


@check("storing", "CEP-MSG-5", "CEP-MSG-7", needs=(_INGEST, _EXPORT))
def unknown_roles_and_odd_members(server: Server) -> None:
    """Messages with unknown roles or members of unexpected types are stored and returned."""
    host, session = server.shared(), server.name()
    odd: list[Json] = [
        {"role": "oracle", "content": "unknown role"},
        {"role": "user", "content": {"not": "text"}},
        {"role": "assistant", "content": None, "tool_calls": "none"},
        {"role": "tool", "tool_call_id": 7, "content": [1, 2]},
        {"role": "user", "content": 42},
    ]
    for message in odd:
        ingest(host, session, message)
    expect_equal(history(host, session), odd, "what is stored")


@check("storing", "CEP-ID-6", needs=(_INGEST, _EXPORT))
def one_id_one_message(server: Server) -> None:
    """A repeated `messageId` is a duplicate if the text is the same, else a conflict; the first one stays."""
    host, session = server.shared(), server.name()
    first = ingest(host, session, user("original"), messageId="m1")
    again = ingest(host, session, user("original"), messageId="m1")
    other = ingest(host, session, user("changed"), messageId="m1")
    for answer, reason in ((again, "duplicate"), (other, "conflict")):
        expect_equal(answer.result("/ingested"), False, f"ingested of the {reason}")
        expect_equal(answer.result("/reason"), reason, "reason")
        expect_equal(answer.result("/messageId"), "m1", "messageId")
        expect_equal(answer.result("/turnId"), first.result("/turnId"), "turnId")
    expect_equal(history(host, session), [user("original")], "what is stored")


@check("storing", "CEP-ID-2", needs=(_INGEST,))
def texts_are_compared_normalized(server: Server) -> None:
    """Text is compared in NFC with white space folded."""
    host, session = server.shared(), server.name()
    ingest(host, session, user("caf\u00e9 au  lait"), messageId="m1")
    again = ingest(host, session, user("cafe\u0301 au\n lait"), messageId="m1")
    expect_equal(again.result("/reason"), "duplicate", "reason")


@check("storing", "CEP-ID-3", needs=("context/ingestBatch", _EXPORT))
def batches_without_ids_append(server: Server) -> None:
    """Messages without ids are appended, even if the same text is already stored."""
    host, session = server.shared(), server.name()
    messages: list[Json] = [user("yes"), assistant("done"), user("yes")]
    store(host, session, messages)
    answer = store(host, session, messages)
    expect_equal(answer.number("/ingestedCount"), 3, "ingestedCount")
    expect_equal(history(host, session), messages * 2, "what is stored")


@check("storing", "CEP-HIST-5", "CEP-DUR-3", needs=("context/ingestBatch", "session/get"))
def batches_are_all_or_nothing(server: Server) -> None:
    """A batch with an invalid message or too few ids stores nothing."""
    host, session = server.shared(), server.name()
    wrong: tuple[dict[str, Json], ...] = (
        {"messages": [user("a"), user("b"), 3]},
        {"messages": [user("a"), user("b")], "messageIds": ["only one"]},
    )
    for members in wrong:
        answer = host.request("context/ingestBatch", {"sessionId": session, **members})
        expect_equal(answer.code, -32602, "code of the answer")
    expect_unknown(host, session)


@check("storing", "CEP-ID-7", needs=(_COMMIT, _EXPORT))
def turns_are_committed_once(server: Server) -> None:
    """A commit with a known `advancementKey` is a duplicate, whatever its messages are."""
    host, session = server.shared(), server.name()
    turn: list[Json] = [user("question"), assistant("answer")]
    params: dict[str, Json] = {"sessionId": session, "advancementKey": "turn-1"}
    first = host.result(_COMMIT, {**params, "messages": turn})
    expect_equal(first.result("/status"), "committed", "status of the first")
    second = host.result(_COMMIT, {**params, "messages": [*turn, user("more")]})
    expect_equal(second.result("/status"), "duplicate", "status of the second")
    expect_equal(history(host, session), turn, "what is stored")


@check("storing", "CEP-HIST-8", needs=(_COMMIT, _EXPORT))
def receipts_are_not_read(server: Server) -> None:
    """`admission` and `terminal` of a commit may have any value."""
    host, session = server.shared(), server.name()
    odd: tuple[Json, ...] = (7, "text", [1, {"jsonrpc": "1.0"}], {"sessionId": 3})
    for number, receipt in enumerate(odd):
        params: dict[str, Json] = {"sessionId": session, "advancementKey": str(number)}
        turn: list[Json] = [user(f"turn {number}")]
        answer = host.result(_COMMIT, {**params, "messages": turn, "admission": receipt, "terminal": receipt})
        expect_equal(answer.result("/status"), "committed", "status")
    expect_equal(len(history(host, session)), len(odd), "number of stored messages")


@check("storing", "CEP-ID-4", "CEP-ID-5", needs=(_COMMIT, _EXPORT))
def whole_transcripts_are_aligned(server: Server) -> None:
    """A commit of the whole transcript stores only new messages, even if the host has changed old ones."""
    host, session = server.shared(), server.name()
    listing: list[Json] = [user("list the files"), call("call_1"), tool("call_1", "a.txt b.txt")]
    first: list[Json] = [*listing, assistant("Two.")]
    host.result(_COMMIT, {"sessionId": session, "advancementKey": "1", "messages": first})
    shortened = [first[0], first[1], tool("call-1", "[cut]"), first[3]]
    second: list[Json] = [user("and now?"), assistant("Still two.")]
    host.result(_COMMIT, {"sessionId": session, "advancementKey": "2", "messages": [*shortened, *second]})
    expect_equal(history(host, session), [*first, *second], "what is stored")


@check("storing", "CEP-HIST-2", "CEP-ID-4", needs=("context/bootstrap", _EXPORT))
def bootstrap_imports_what_is_new(server: Server) -> None:
    """`bootstrap` may be sent every turn: it imports new messages, and reports `false` without any."""
    host, session = server.shared(), server.name()
    messages: list[Json] = [user("one"), assistant("two")]
    params: dict[str, Json] = {"sessionId": session}
    first = host.result("context/bootstrap", {**params, "messages": messages})
    expect_equal(
        (first.result("/bootstrapped"), first.result("/importedMessages")), (True, 2), "the first answer"
    )
    again = host.result("context/bootstrap", {**params, "messages": messages})
    seen = (again.result("/bootstrapped"), again.result("/importedMessages"))
    expect_equal(seen, (False, 0), "the second answer")
    more = host.result("context/bootstrap", {**params, "messages": [*messages, user("three")]})
    expect_equal(more.number("/importedMessages"), 1, "importedMessages of the third answer")
    expect_equal(len(history(host, session)), 3, "number of stored messages")


@check("storing", "CEP-HIST-3", "CEP-SEC-3", needs=("context/bootstrap",))
def unreadable_session_files(server: Server) -> None:
    """An unreadable `sessionFile` is not an error: `bootstrapped` is `false`, with a reason."""
    host = server.shared()
    for place in ("no/such/file.jsonl", "host://transcript/7", "/dev/null", str(server.folder)):
        answer = host.result("context/bootstrap", {"sessionId": server.name(), "sessionFile": place})
        expect_equal(answer.result("/bootstrapped"), False, f"bootstrapped of {place}")
        answer.text("/reason")


@check("storing", "CEP-HIST-6", needs=("context/afterTurn", _EXPORT))
def after_turn_stores_the_turn(server: Server) -> None:
    """`afterTurn` stores the new messages, whether it gets these alone or the whole transcript."""
    host, session = server.shared(), server.name()
    first: list[Json] = [user("one"), assistant("two")]
    host.result("context/afterTurn", {"sessionId": session, "messages": first})
    whole: list[Json] = [*first, user("three"), assistant("four")]
    host.result("context/afterTurn", {"sessionId": session, "messages": whole, "prePromptMessageCount": 2})
    expect_equal(history(host, session), whole, "what is stored")


@check("storing", "CEP-TURN-1", "CEP-TURN-2", "CEP-TURN-3", needs=(_INGEST,))
def turns_open_at_user_messages(server: Server) -> None:
    """A user message opens a turn, a tool result does not, and the host may name a turn by `turnId`."""
    host, session = server.shared(), server.name()
    script: tuple[tuple[Json, dict[str, Json], str], ...] = (
        ({"role": "system", "content": "Be brief."}, {}, "t1"),
        (user("one"), {}, "t1"),
        (call("c1"), {}, "t1"),
        (tool("c1", "result"), {}, "t1"),
        (assistant("done"), {}, "t1"),
        (user("two"), {}, "t2"),
        (user("three"), {"turnId": "mine"}, "mine"),
        (user("three and a half"), {"turnId": "mine"}, "mine"),
    )
    for message, members, turn in script:
        answer = ingest(host, session, message, **members)
        expect_equal(answer.result("/turnId"), turn, f"turn of {text_of(message) or 'a call'}")


@check("storing", "CEP-TURN-4", needs=(_INGEST, "context/assemble", _EXPORT))
def heartbeats_leave(server: Server) -> None:
    """A heartbeat is stored, opens no turn, and leaves the context once a newer real turn exists."""
    host, session = server.shared(), server.name()
    ingest(host, session, user("real"))
    beat = ingest(host, session, user("heartbeat-text"), isHeartbeat=True)
    expect_equal(beat.result("/turnId"), "t1", "turn of the heartbeat")
    ingest(host, session, user("real again"))
    texts = [text_of(m) for m in host.result("context/assemble", {"sessionId": session}).objects("/messages")]
    expect("heartbeat-text" not in texts, "the heartbeat is still in the context")
    expect_equal(len(history(host, session)), 3, "number of stored messages")


@check("storing", "CEP-BASE-8", needs=(_INGEST, _EXPORT))
def times_are_rfc_3339(server: Server) -> None:
    """Times in any zone are accepted, and returned in UTC with milliseconds."""
    host, session = server.shared(), server.name()
    ingest(host, session, user("then"), timestamp="2024-01-15T12:30:00.123456+02:00")
    expect_equal(exported(host, session)[0]["timestamp"], "2024-01-15T10:30:00.123Z", "timestamp")
    answer = host.request(_INGEST, {"sessionId": session, "message": user("x"), "timestamp": "yesterday"})
    expect_equal(answer.code, -32602, "code of the answer to an invalid time")


@check("storing", "CEP-MSG-2", "CEP-MSG-3", needs=(_INGEST, _EXPORT))
def sessions_have_one_dialect(server: Server) -> None:
    """With another dialect, engine methods get -32602 with the session's dialect; `session/*` still works."""
    session = server.name()
    server.shared().expect_format("anthropic")
    ingest(server.shared(), session, user("in openai"))
    with server.connect(messageFormat="anthropic") as host:
        answer = host.request(_INGEST, {"sessionId": session, "message": user("in anthropic")})
        expect_equal(answer.code, -32602, "code of the answer")
        expect_equal(answer.at("/error/data/messageFormat"), "openai", "data.messageFormat")
        export = host.result(_EXPORT, {"sessionId": session})
        expect_equal(export.result("/messageFormat"), "openai", "messageFormat")


@check("storing", "CEP-DUR-1", "CEP-DUR-2", "CEP-LIFE-12", "CEP-ID-9", needs=(_INGEST, _EXPORT, _COMMIT))
def acknowledged_means_durable(server: Server) -> None:
    """Acknowledged messages survive SIGKILL, exist once, and are recognised by the next process."""
    session = server.name()
    config: Json = {"store": {"kind": "sqlite"}}
    acknowledged: list[str] = []
    for round in range(5):
        with server.connect(config=config) as host:
            for number in range(30):
                text = f"{round}-{number}"
                host.begin(_INGEST, {"sessionId": session, "message": user(text), "messageId": text}, id=text)
            for answer in host.answers_in_order(10 + round):
                answer.result()
                acknowledged.append(str(answer.id))
            host.process.kill()
    with server.connect(config=config) as host:
        texts = [text_of(message) for message in history(host, session)]
        expect(set(acknowledged) <= set(texts), f"lost: {sorted(set(acknowledged) - set(texts))}")
        expect_equal(len(texts), len(set(texts)), "number of stored messages, all of which differ")
        again = ingest(host, session, user(acknowledged[0]), messageId=acknowledged[0])
        expect_equal(again.result("/reason"), "duplicate", "reason of a message sent again")


@check("storing", "CEP-SESS-1", "CEP-SEC-2", needs=(_INGEST, "session/get", "session/delete"))
def odd_names(server: Server) -> None:
    """Session ids are opaque keys: they may hold paths, patterns, quotes and any script."""
    host = server.shared()
    odd = (
        "../../etc/passwd",
        "a/b\\c",
        "%' OR 1=1 --",
        "*",
        "会话-😀",
        " lead",
        "trail ",
        "\u202e",
        "x" * 1024,
    )
    for name in odd:
        ingest(host, name, user(f"in {name[:20]}"))
    for name in odd:
        expect_equal(host.result("session/get", {"sessionId": name}).result("/sessionId"), name, "sessionId")
        expect_equal(history(host, name), [user(f"in {name[:20]}")], "what is stored")
        host.result("session/delete", {"sessionId": name})
    for name in ("", "x" * 1025, "a\u0000b"):
        answer = host.request(_INGEST, {"sessionId": name, "message": user("x")})
        expect_equal(answer.code, -32602, f"code of the answer to the id {name[:10]!r}")
