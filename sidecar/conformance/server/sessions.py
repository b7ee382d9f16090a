"""Sessions, and the tools that read them."""

from __future__ import annotations

from sidecar.conformance.kit import NotDeclared, expect, expect_equal
from sidecar.conformance.server.conversation import (
    assemble,
    assistant,
    call,
    chat,
    expect_unknown,
    exported,
    history,
    ingest,
    store,
    text_of,
    tool,
    user,
)
from sidecar.conformance.server.host import Host
from sidecar.conformance.server.subject import Server, check
from sidecar.conformance.wire import Json, Message, Object

_BATCH = "context/ingestBatch"


@check(
    "sessions",
    "CEP-SESS-3",
    "CEP-SESS-25",
    "CEP-SEC-5",
    needs=("context/ingest", "session/export", "session/list"),
)
def agents_do_not_see_each_other(server: Server) -> None:
    """A session belongs to the first agent that uses it, and does not exist for others."""
    host, session = server.shared(), server.name()
    ingest(host, session, user("secret of anna"), agentId="anna")
    others: tuple[tuple[str, Object], ...] = (
        ("session/get", {}),
        ("session/export", {}),
        ("context/ingest", {"message": user("intruder")}),
        ("context/ingestBatch", {"messages": [user("intruder")]}),
        ("context/bootstrap", {"messages": [user("intruder")]}),
        ("context/afterTurn", {"messages": [user("intruder")]}),
        ("context/commitTurn", {"advancementKey": "k", "messages": [user("intruder")]}),
        ("context/assemble", {"messages": [user("intruder")]}),
        ("context/assemble", {}),
        ("context/compact", {}),
    )
    for method, members in others:
        if not host.declares(method):
            continue
        params: Json = {"sessionId": session, "agentId": "bert", **members}
        expect_equal(host.request(method, params).code, 1003, f"code of {method} by another agent")
    if host.declares("session/delete"):
        deleted = host.result("session/delete", {"sessionId": session, "agentId": "bert"})
        expect_equal(deleted.at("/result/deleted"), False, "whether another agent deleted the session")
    listed = host.result("session/list", {"agentId": "bert"}).objects("/sessions")
    expect(session not in [entry["sessionId"] for entry in listed], "another agent lists the session")
    expect_equal(len(history(host, session)), 1, "number of stored messages")


@check("sessions", "CEP-SESS-2", needs=("context/ingest", "subagent/prepareSpawn"))
def the_latest_alias_wins(server: Server) -> None:
    """A `sessionKey` refers to the session most recently named with it."""
    host, key, child = server.shared(), server.name("key"), server.name("child")
    ingest(host, server.name(), user("old"), sessionKey=key)
    ingest(host, server.name(), user("new"), sessionKey=key)
    params: Json = {
        "parentSessionKey": key,
        "childSessionKey": child,
        "childSessionId": child,
        "contextMode": "fork",
    }
    host.result("subagent/prepareSpawn", params)
    sent = [text_of(message) for message in assemble(host, child).objects("/messages")]
    expect_equal(sent, ["new"], "the messages of a fork of the key")


@check("sessions", "CEP-SESS-13", needs=("session/list", "context/ingest"))
def lists_are_paginated(server: Server) -> None:
    """`session/list` has each session once, latest change first; invalid cursors and limits get -32602."""
    with server.connect(namespace=server.name("space")) as host:
        names = [f"s{number}" for number in range(7)]
        for name in names:
            ingest(host, name, user("x"))
        seen: list[Json] = []
        cursor: Json = None
        for _ in names:
            page = host.result("session/list", {"limit": 3, "cursor": cursor})
            seen += [entry["sessionId"] for entry in page.objects("/sessions")]
            cursor = page.at("/result/nextCursor", None)
            if cursor is None:
                break
        expect_equal(seen, names[::-1], "the sessions in order")
        expect_equal(
            host.request("session/list", {"cursor": "made up"}).code, -32602, "code for an invalid cursor"
        )
        for limit in (0, 1001):
            expect_equal(
                host.request("session/list", {"limit": limit}).code, -32602, f"code for limit {limit}"
            )


@check("sessions", "CEP-SESS-15", needs=("session/export", _BATCH))
def exports_are_complete(server: Server) -> None:
    """`session/export` returns every message once and in order, over as many pages as needed."""
    host, session = server.shared(), server.name()
    messages = chat(300)
    store(host, session, messages)
    expect(history(host, session) == messages, "the export differs from the stored messages")


@check("sessions", "CEP-SESS-11", needs=("session/truncate", _BATCH, "session/export"))
def truncating(server: Server) -> None:
    """`session/truncate` removes the messages after one; an unknown one gets -32602 and changes nothing."""
    host, session = server.shared(), server.name()
    ids = store(host, session, [user("a"), assistant("b"), user("c")]).result("/messageIds")
    assert isinstance(ids, list)
    host.result("session/truncate", {"sessionId": session, "afterMessageId": ids[1]})
    expect_equal([text_of(m) for m in history(host, session)], ["a", "b"], "what is left")
    wrong = host.request("session/truncate", {"sessionId": session, "afterMessageId": "no such"})
    expect_equal(wrong.code, -32602, "code of the answer to an unknown message")
    expect_equal(len(history(host, session)), 2, "number of stored messages")


@check("sessions", "CEP-SESS-12", needs=("session/fork", _BATCH, "session/export"))
def forking(server: Server) -> None:
    """A fork starts with the history up to a message; afterwards both sessions are independent."""
    host, session, fork = server.shared(), server.name(), server.name("fork")
    ids = store(host, session, [user("a"), assistant("b"), user("c")]).result("/messageIds")
    assert isinstance(ids, list)
    params: Json = {"sessionId": session, "newSessionId": fork, "atMessageId": ids[1]}
    host.result("session/fork", params)
    ingest(host, fork, user("fork only"))
    ingest(host, session, user("parent only"))
    expect_equal([text_of(m) for m in history(host, fork)], ["a", "b", "fork only"], "the fork")
    expect_equal([text_of(m) for m in history(host, session)], ["a", "b", "c", "parent only"], "the parent")
    expect_equal(host.request("session/fork", params).code, -32602, "code for a name that is taken")


@check("sessions", "CEP-SESS-17", "CEP-DUR-5", "CEP-SEC-10", needs=("session/delete", "context/ingest"))
def deleting(server: Server) -> None:
    """A deleted session is gone; deleting it again is not an error."""
    host, session = server.shared(), server.name()
    ingest(host, session, user("quixotically unique"))
    expect_equal(host.result("session/delete", {"sessionId": session}).result("/deleted"), True, "deleted")
    expect_unknown(host, session)
    again = host.result("session/delete", {"sessionId": session})
    expect_equal(again.result("/deleted"), False, "deleted of the second request")
    ingest(host, session, user("new life"))
    expect_equal([text_of(m) for m in history(host, session)], ["new life"], "the recreated session")


@check(
    "sessions", "CEP-SESS-8", "CEP-SESS-10", needs=("session/pin", "session/unpin", "session/pins", _BATCH)
)
def pins(server: Server) -> None:
    """A pinned message stays in the context under a small budget; a pin can be removed once."""
    host, session = server.shared(), server.name()
    ids = store(host, session, [user("The password is swordfish."), *chat(40)]).result("/messageIds")
    assert isinstance(ids, list)
    pin = host.result("session/pin", {"sessionId": session, "messageId": ids[0]}).text("/pinId")
    sent = assemble(host, session, tokenBudget=1200)
    expect("swordfish" in sent.raw.decode(), "the pinned message is not in the context")
    listed = host.result("session/pins", {"sessionId": session}).objects("/pins")
    expect_equal([entry["pinId"] for entry in listed], [pin], "the pins")
    for expected in (True, False):
        off = host.result("session/unpin", {"sessionId": session, "pinId": pin})
        expect_equal(off.result("/unpinned"), expected, "unpinned")
    for members in ({}, {"messageId": ids[0], "text": "both"}, {"messageId": "no such"}):
        wrong = host.request("session/pin", {"sessionId": session, **members})
        expect_equal(wrong.code, -32602, f"code of the answer to {sorted(members)}")


@check(
    "sessions", "CEP-SESS-5", "CEP-SESS-6", "CEP-SESS-7", needs=("session/configure", "engine/list", _BATCH)
)
def configuring(server: Server) -> None:
    """Switching the engine keeps the history and raises the epoch; an unknown engine gets 1001."""
    host, session = server.shared(), server.name()
    store(host, session, [user("one"), assistant("two"), user("three")])
    before = assemble(host, session)
    wrong = host.request("session/configure", {"sessionId": session, "engine": "no-such-engine"})
    expect_equal(wrong.code, 1001, "code of the answer to an unknown engine")
    other = _another_engine(host)
    answer = host.result("session/configure", {"sessionId": session, "engine": other})
    expect_equal(answer.result("/engine"), other, "engine")
    after = assemble(host, session)
    expect(after.number("/contextEpoch") > before.number("/contextEpoch"), "the epoch did not rise")
    expect_equal(len(history(host, session)), 3, "number of stored messages")
    expect_equal(host.request("session/configure", {}).code, -32602, "code without session and agent")


@check("sessions", "CEP-ENG-1", needs=("engine/list",))
def engines(server: Server) -> None:
    """`engine/list` marks exactly one engine as active, the one that `initialize` named."""
    host = server.shared()
    listed = host.result("engine/list").objects("/engines")
    active = [engine["id"] for engine in listed if engine["active"]]
    engine = host.offer.get("engine")
    assert isinstance(engine, dict)
    expect_equal(active, [engine["id"]], "active engines")


@check("sessions", "CEP-HIST-22", needs=("session/get",))
def unknown_sessions(server: Server) -> None:
    """Methods that need a stored session get 1003 without one; `preflight` reports 0 tokens."""
    host = server.shared()
    for method in ("context/compact", "context/maintain", "context/explain", "session/get", "session/export"):
        if host.declares(method):
            answer = host.request(method, {"sessionId": server.name("never")})
            expect_equal(answer.code, 1003, f"code of {method}")
    if host.declares("context/preflight"):
        answer = host.result("context/preflight", {"sessionId": server.name("never"), "tokenBudget": 10})
        expect_equal((answer.result("/fits"), answer.result("/estimatedTokens")), (True, 0), "preflight")


@check("sessions", "CEP-SESS-15", level="should", needs=("session/export", _BATCH))
def exports_say_when_and_in_which_turn(server: Server) -> None:
    """Every exported message has a unique id and its turn id."""
    host, session = server.shared(), server.name()
    store(host, session, [user("a"), assistant("b"), user("c")])
    entries = exported(host, session)
    expect_equal([entry["turnId"] for entry in entries], ["t1", "t1", "t2"], "turns")
    expect(len({str(entry["messageId"]) for entry in entries}) == 3, "ids are not unique")


def _another_engine(host: Host) -> str:
    listed = host.result("engine/list").objects("/engines")
    names = [str(e["id"]) for e in listed if e["available"] and not e["active"] and e["id"] != "legacy"]
    if not names:
        raise NotDeclared("there is no second engine")
    return "full" if "full" in names else names[0]


_CALL = "tools/call"


@check("tools", "CEP-TOOL-1", "CEP-TOOL-2", needs=("tools/list", _CALL, "context/ingest"))
def tools_and_their_schemas(server: Server) -> None:
    """Tools have object schemas; unknown tools and invalid arguments get -32602 with the path."""
    host, session = server.shared(), server.name()
    ingest(host, session, user("x"))
    for entry in host.result("tools/list").objects("/tools"):
        schema = entry["inputSchema"]
        expect(
            isinstance(schema, dict) and schema.get("type") == "object",
            f"the schema of {entry['name']} is not an object schema",
        )
    unknown = host.request(_CALL, {"sessionId": session, "name": "no_such_tool", "arguments": {}})
    expect_equal(unknown.code, -32602, "code of an unknown tool")
    expect(str(unknown.at("/error/data/path")).startswith("/name"), "data.path of an unknown tool")
    _need_search(host)
    wrong = host.request(_CALL, {"sessionId": session, "name": "context_search", "arguments": {"mode": 7}})
    expect_equal(wrong.code, -32602, "code of wrong arguments")
    expect(str(wrong.at("/error/data/path")).startswith("/arguments"), "data.path of wrong arguments")


@check("tools", "CEP-TOOL-7", "CEP-TOOL-11", "CEP-TOOL-6", needs=(_CALL, _BATCH))
def search_finds_what_was_just_stored(server: Server) -> None:
    """`search` is literal, ignores case, covers text, calls and results, and finds new messages at once."""
    host, session = server.shared(), server.name()
    messages: list[Json] = [
        user("Straße nach Rom"),
        call("c1", name="fetch_invoice", arguments='{"number":"INV-7731"}'),
        tool("c1", "total 42 EUR"),
        user("预算是五千元"),
    ]
    store(host, session, messages)
    for query in ("STRASSE", "inv-7731", "fetch_invoice", "42 eur", "五千"):
        found = _search(host, session, {"mode": "search", "query": query, "before": 0, "after": 0})
        expect("--- messages" in _text(found), f"{query!r} was not found: {_text(found)[:200]}")
    expect_equal(history(host, session), messages, "what is stored")


@check("tools", "CEP-TOOL-8", "CEP-TOOL-9", needs=(_CALL, _BATCH))
def ranges_that_touch_are_merged(server: Server) -> None:
    """Ranges that overlap or touch are merged, with heading and lines in the form of the specification."""
    host, session = server.shared(), server.name()
    texts = ["zero", "needle one", "two", "three", "needle four", "five", "six", "seven", "eight", "nine"]
    store(host, session, [user(text) if n % 2 == 0 else assistant(text) for n, text in enumerate(texts)])
    text = _text(_search(host, session, {"mode": "search", "query": "needle", "before": 1, "after": 1}))
    expect("--- messages 1-6 of 10 ---" in text, f"no merged heading in {text}")
    expect(
        "[user t1] zero" in text and "[assistant t1] needle one" in text, f"unexpected line format: {text}"
    )


@check("tools", "CEP-TOOL-10", needs=(_CALL, _BATCH))
def relevant_hits(server: Server) -> None:
    """`relevant` answers a question with ranked hits in `structuredContent`."""
    host, session = server.shared(), server.name()
    store(host, session, [*chat(10), user("The harbour master is called Ingeborg."), *chat(10, topic="hill")])
    answer = _search(
        host, session, {"mode": "relevant", "query": "What is the harbour master called?", "limit": 3}
    )
    hits = answer.objects("/structuredContent/hits")
    expect(1 <= len(hits) <= 3, f"{len(hits)} hits for a limit of 3")
    expect("Ingeborg" in str(hits[0].get("text")), f"the best hit is {hits[0]}")


@check("tools", "CEP-TOOL-4", needs=(_CALL, _BATCH))
def tool_output_is_bounded(server: Server) -> None:
    """The text of a result has at most 16 000 characters; its last line reports what was left out."""
    host, session = server.shared(), server.name()
    store(host, session, [user(f"needle {n} " + "long " * 300) for n in range(40)])
    text = _text(_search(host, session, {"mode": "search", "query": "needle"}))
    expect(len(text) <= 16_000, f"{len(text)} characters")
    last = text.rstrip().rsplit("\n", 1)[-1]
    expect(last.startswith("---") and last.endswith("---"), f"the last line is {last!r}")


@check("tools", "CEP-TOOL-5", "CEP-SEC-5", needs=(_CALL, _BATCH))
def tools_read_their_session_alone(server: Server) -> None:
    """A tool reads only its session, and gets 1003 for another agent."""
    host, mine, other = server.shared(), server.name(), server.name()
    ingest(host, mine, user("xylophone mine"), agentId="anna")
    ingest(host, other, user("xylophone other"), agentId="anna")
    text = _text(_search(host, mine, {"mode": "search", "query": "xylophone"}))
    expect("xylophone mine" in text and "xylophone other" not in text, f"found: {text}")
    params: Json = {
        "sessionId": mine,
        "agentId": "bert",
        "name": "context_search",
        "arguments": {"mode": "search", "query": "xylophone"},
    }
    expect_equal(host.request(_CALL, params).code, 1003, "code for another agent")


def _need_search(host: Host) -> None:
    tools = host.offer.get("tools")
    if not isinstance(tools, list) or "context_search" not in tools:
        raise NotDeclared("context_search is not among the tools")


def _search(host: Host, session: str, arguments: Json) -> Message:
    _need_search(host)
    return host.result(_CALL, {"sessionId": session, "name": "context_search", "arguments": arguments})


def _text(answer: Message) -> str:
    return "\n".join(str(part.get("text", "")) for part in answer.objects("/content"))
