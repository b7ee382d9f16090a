"""Compaction, and the choice of an engine."""

from __future__ import annotations

from sidecar.conformance.kit import NotDeclared, expect, expect_equal
from sidecar.conformance.server.conversation import (
    assemble,
    chat,
    history,
    ingest,
    require_valid,
    store,
    text_of,
    user,
)
from sidecar.conformance.server.host import Host
from sidecar.conformance.server.subject import METHOD_NAMES, Server, check
from sidecar.conformance.wire import Json, Message, Object

_COMPACT = "context/compact"
_BATCH = "context/ingestBatch"


@check("compacting", "CEP-HIST-10", "CEP-HIST-12", "CEP-PREFIX-3", needs=(_COMPACT, _BATCH, "session/export"))
def compacting_to_a_budget(server: Server) -> None:
    """A forced compaction shrinks the context, raises the epoch, and keeps the history unchanged."""
    host, session = server.shared(), server.name()
    messages = chat(60)
    store(host, session, messages)
    before = assemble(host, session, tokenBudget=20_000)
    params: Json = {"sessionId": session, "tokenBudget": 3000, "force": True, "compactionTarget": "budget"}
    answer = host.result(_COMPACT, params)
    expect_equal((answer.result("/ok"), answer.result("/compacted")), (True, True), "ok and compacted")
    expect(
        answer.number("/result/tokensBefore") > answer.number("/result/tokensAfter"),
        "tokensAfter is not below tokensBefore",
    )
    after = assemble(host, session, tokenBudget=20_000)
    expect(after.number("/contextEpoch") > before.number("/contextEpoch"), "the epoch did not rise")
    expect(after.number("/estimatedTokens") < before.number("/estimatedTokens"), "the context did not shrink")
    require_valid(after.objects("/messages"))
    expect_equal(history(host, session), messages, "what is stored")


@check("compacting", "CEP-HIST-11", needs=(_COMPACT, "context/ingest"))
def declining(server: Server) -> None:
    """An unnecessary compaction is declined with a reason."""
    host, session = server.shared(), server.name()
    ingest(host, session, user("short"))
    answer = host.result(_COMPACT, {"sessionId": session, "tokenBudget": 100_000})
    expect_equal((answer.result("/ok"), answer.result("/compacted")), (True, False), "ok and compacted")
    answer.text("/reason")


@check("compacting", "CEP-HIST-15", "CEP-HOST-5", needs=(_COMPACT, _BATCH))
def models_that_fail(server: Server) -> None:
    """If the host's model fails or returns no text, the compaction succeeds without it."""
    failures: tuple[Object, ...] = (
        {"error": {"code": -32000, "message": "overloaded"}},
        {"result": {"text": ""}},
    )
    for failure in failures:
        with server.connect(hostCapabilities=["runtime/complete"]) as host:
            session = server.name()
            store(host, session, chat(60))
            host.answers["runtime/complete"] = lambda _, answer=failure: answer
            params: Json = {"sessionId": session, "tokenBudget": 3000, "force": True}
            answer = host.result(_COMPACT, params)
            expect_equal(answer.result("/ok"), True, f"ok after {failure}")
            require_valid(assemble(host, session, tokenBudget=20_000).objects("/messages"))


@check("compacting", "CEP-ORDER-3", "CEP-ORDER-4", needs=(_COMPACT, _BATCH, "session/export"))
def a_compaction_does_not_hold_the_session(server: Server) -> None:
    """While a compaction waits for the host, messages can be stored and assembled, and none is lost."""
    with server.connect(hostCapabilities=["runtime/complete"]) as host:
        session = server.name()
        messages = chat(60)
        store(host, session, messages)
        host.answers["runtime/complete"] = lambda _: {}
        host.begin(_COMPACT, {"sessionId": session, "tokenBudget": 3000, "force": True}, id="compact")
        waiting = _completion_requested(host, "compact")
        ingest(host, session, user("in between"))
        sent = [text_of(m) for m in assemble(host, session, tokenBudget=30_000).objects("/messages")]
        expect("in between" in sent, "the context lacks the message stored meanwhile")
        host.answers.pop("runtime/complete")
        if waiting is not None:
            host.write({"jsonrpc": "2.0", "id": waiting.id, "error": {"code": -32000, "message": "no"}})
            host.answer("compact").result()
        expect_equal(history(host, session), [*messages, user("in between")], "what is stored")
        after = assemble(host, session, tokenBudget=30_000).objects("/messages")
        expect_equal(text_of(after[-1]), "in between", "the last message after the compaction")


@check("compacting", "CEP-HIST-14", "CEP-HOST-6", "CEP-ENG-4", needs=(_COMPACT,))
def legacy_delegates(server: Server) -> None:
    """`legacy` passes the request to the host and returns its answer; without the capability it gets 1004."""
    result: Object = {
        "ok": True,
        "compacted": True,
        "result": {"tokensBefore": 900, "summary": "of the host"},
    }
    with server.connect(engine="legacy", hostCapabilities=["runtime/compact"]) as host:
        host.answers["runtime/compact"] = lambda _: {"result": result}
        answer = host.result(
            _COMPACT, {"sessionId": "s", "customInstructions": "keep names", "tokenBudget": 500}
        )
        expect_equal(answer.result("/result/summary"), "of the host", "summary")
        delegated = host.wait_for_request("runtime/compact")
        expect_equal(delegated.at("/params/customInstructions"), "keep names", "customInstructions passed on")
        host.answers["runtime/compact"] = lambda _: {"error": {"code": -32603, "message": "no"}}
        failed = host.result(_COMPACT, {"sessionId": "s"})
        expect_equal((failed.result("/ok"), failed.result("/compacted")), (False, False), "ok and compacted")
        failed.text("/reason")
    with server.connect(engine="legacy") as host:
        expect_equal(host.request(_COMPACT, {"sessionId": "s"}).code, 1004, "code without the capability")


@check("compacting", "CEP-BUDGET-6", needs=("context/assemble", "context/ingest"))
def legacy_leaves_all_to_the_host(server: Server) -> None:
    """`legacy` stores nothing and returns `messages` as they came, over any budget."""
    with server.connect(engine="legacy", hostCapabilities=["runtime/compact"]) as host:
        session = server.name()
        expect_equal(ingest(host, session, user("x")).result("/ingested"), False, "ingested")
        messages = chat(5)
        answer = assemble(host, session, messages=messages, tokenBudget=10)
        expect_equal(answer.objects("/messages"), messages, "messages")
        expect(answer.number("/estimatedTokens") > 10, "the estimate is not honest")


@check("compacting", "CEP-HIST-17", needs=("context/preflight", _BATCH))
def preflight(server: Server) -> None:
    """`preflight` says whether context and pending tokens fit, and changes nothing."""
    host, session = server.shared(), server.name()
    store(host, session, chat(20))
    fits = host.result("context/preflight", {"sessionId": session, "tokenBudget": 100_000})
    expect_equal((fits.result("/fits"), fits.result("/action")), (True, "none"), "fits and action")
    params: Json = {"sessionId": session, "tokenBudget": 100_000, "pendingTokens": 100_000}
    full = host.result("context/preflight", params)
    expect_equal(full.result("/fits"), False, "fits with many pending tokens")
    epoch = assemble(host, session).number("/contextEpoch")
    host.result("context/preflight", params)
    expect_equal(assemble(host, session).number("/contextEpoch"), epoch, "epoch after preflight")


@check("compacting", "CEP-HIST-18", "CEP-HIST-19", needs=("context/explain", _BATCH))
def explaining(server: Server) -> None:
    """`explain` reports the decision on each message; an unknown result gets -32602."""
    host, session = server.shared(), server.name()
    store(host, session, [*chat(40), user("now")])
    answer = assemble(host, session, tokenBudget=1500)
    explained = host.result("context/explain", {"sessionId": session, "resultId": answer.text("/resultId")})
    decisions = [entry["decision"] for entry in explained.objects("/decisions")]
    expect(
        "sent" in decisions and len(set(decisions)) > 1, f"decisions are {sorted(map(str, set(decisions)))}"
    )
    wrong = host.request("context/explain", {"sessionId": session, "resultId": "no such"})
    expect_equal(wrong.code, -32602, "code of the answer to an unknown result")


@check("compacting", "CEP-HIST-20", "CEP-HIST-21", "CEP-ORDER-8", needs=("context/dispose", "context/ingest"))
def disposing(server: Server) -> None:
    """`dispose` may follow open requests and be repeated; stored messages remain."""
    host, session = server.shared(), server.name()
    ids = [host.begin("context/ingest", {"sessionId": session, "message": user(str(n))}) for n in range(10)]
    ids += [host.begin("context/dispose"), host.begin("context/dispose")]
    for id in ids:
        host.answer(id).result()
    expect_equal(len(assemble(host, session).objects("/messages")), 10, "number of messages")


@check(
    "subagents", "CEP-SUB-2", "CEP-SUB-5", needs=("subagent/prepareSpawn", "subagent/rollbackSpawn", _BATCH)
)
def forks_are_snapshots(server: Server) -> None:
    """A fork is a snapshot of its parent; a spawn can be rolled back once."""
    host, parent, child = server.shared(), server.name(), server.name("child")
    key = server.name("key")
    host.result(_BATCH, {"sessionId": parent, "sessionKey": key, "messages": chat(2)})
    params: Json = {
        "parentSessionKey": key,
        "childSessionKey": f"{key}-child",
        "childSessionId": child,
        "contextMode": "fork",
    }
    prepared = host.result("subagent/prepareSpawn", params).text("/preparationId")
    ingest(host, parent, user("later"))
    sent = [text_of(m) for m in assemble(host, child).objects("/messages")]
    expect("later" not in sent and len(sent) == 4, f"the child begins with {len(sent)} messages")
    for expected in (True, False):
        back = host.result("subagent/rollbackSpawn", {"preparationId": prepared})
        expect_equal(back.result("/rolledBack"), expected, "rolledBack")


def _completion_requested(host: Host, id: str) -> Message | None:
    """The server's request for a completion; `None` if the compaction is answered without one."""
    while not host.server_requests and not any(message.id == id for message in host.early()):
        host.step()
    return host.server_requests[0] if host.server_requests else None


_HOST_COMPACT = "runtime/compact"
_ASSEMBLE = "context/assemble"


@check("engines", "CEP-INIT-16")
def default_engine(server: Server) -> None:
    """The default engine is `legacy` if the host owns the history and compacts, else `default`."""
    both = [_HOST_COMPACT, "ownsHistory"]
    for capabilities, expected in ((both, "legacy"), ([_HOST_COMPACT], "default"), ([], "default")):
        with server.connect(hostCapabilities=list[Json](capabilities)) as host:
            engine = host.offer.get("engine")
            expect(isinstance(engine, dict), "the answer names no engine")
            assert isinstance(engine, dict)
            expect_equal(engine.get("id"), expected, f"the engine for a host that declares {capabilities}")


@check("engines", "CEP-ENG-3")
def every_method_of_every_engine(server: Server) -> None:
    """Every declared `context/*` method is answered, even by an engine that implements few of them."""
    with server.connect(engine="legacy", hostCapabilities=[_HOST_COMPACT]) as host:
        host.answers[_HOST_COMPACT] = lambda _: {
            "result": {"ok": True, "compacted": False, "reason": "small"}
        }
        session = server.name()
        for method, members in _CALLS.items():
            if host.declares(method):
                answer = host.request(method, {"sessionId": session, **members})
                expect(answer.code in (None, 1003), f"{method} of legacy is answered with {answer.code}")


@check("engines", "CEP-ENG-15", "CEP-INIT-14", needs=(_ASSEMBLE,))
def fallback_to_legacy(server: Server) -> None:
    """With `onEngineFailure: legacy`, answers name the engine that failed, and the reason."""
    config: Json = {"plugins": {"onEngineFailure": "legacy"}}
    with server.connect(engine="no-such-engine", config=config) as host:
        engine = host.offer.get("engine")
        failed = engine.get("fallbackFor") if isinstance(engine, dict) else None
        expect(
            isinstance(failed, dict) and failed.get("id") == "no-such-engine", f"the answer names {engine}"
        )
        answer = assemble(host, server.name(), messages=[user("x")])
        expect_equal(answer.at("/result/fallbackFor/id"), "no-such-engine", "fallbackFor.id")
        answer.text("/fallbackFor/reason")


@check("engines", "CEP-ENG-12", needs=("engine/list",))
def engine_list_despite_a_missing_plugin(server: Server) -> None:
    """`engine/list` is answered even if a configured plugin does not exist."""
    config: Json = {"plugins": {"entries": {"no-such-engine": {"enabled": True, "config": {}}}}}
    with server.connect(config=config) as host:
        listed = host.result("engine/list").objects("/engines")
        available = [engine["id"] for engine in listed if engine["available"]]
        expect(available, "no engine is available")
        expect("no-such-engine" not in available, "an engine that does not exist is listed as available")


@check("engines", "CEP-BUDGET-7", needs=(_ASSEMBLE, _BATCH))
def full_drops_whole_turns(server: Server) -> None:
    """`full` sends everything if it fits; otherwise it drops whole turns, oldest first."""
    with _with_engine(server, "full") as host:
        session = server.name()
        messages = chat(30)
        store(host, session, messages)
        sent = assemble(host, session, tokenBudget=2000).objects("/messages")
        small = list[Json](message for message in sent if message in messages)
        expect(0 < len(small) < len(messages), f"{len(small)} of {len(messages)} messages in 2 000 tokens")
        expect_equal(small, messages[len(messages) - len(small) :], "the remaining messages")
        expect_equal(len(small) % 2, 0, "messages of an incomplete turn")
        fresh = server.name()
        store(host, fresh, messages)
        whole = assemble(host, fresh, tokenBudget=100_000).objects("/messages")
        expect_equal(whole, messages, "the messages if everything fits")


@check("engines", "CEP-SESS-19", needs=("session/configure", "tools/list", "context/ingest"))
def changed_tools_are_announced(server: Server) -> None:
    """If switching the engine changes the tools, the server sends `tools/listChanged`."""
    with _with_engine(server, "full") as host:
        session = server.name()
        ingest(host, session, user("x"))
        before = _tools(host, session)
        for engine in _others(host):
            host.result("session/configure", {"sessionId": session, "engine": engine})
            if _tools(host, session) != before:
                host.alive()
                methods = [message.method for message in host.notifications]
                expect(
                    "tools/listChanged" in methods, f"{engine} has other tools, but the server sent {methods}"
                )
                return
    raise NotDeclared("all engines have the same tools")


_CALLS: dict[str, Object] = {
    "context/bootstrap": {"messages": [user("x")]},
    "context/ingest": {"message": user("x")},
    "context/ingestBatch": {"messages": [user("x")]},
    "context/assemble": {"messages": [user("x")]},
    "context/afterTurn": {"messages": [user("x")]},
    "context/commitTurn": {"advancementKey": "k", "messages": [user("x")]},
    "context/preflight": {"tokenBudget": 1000},
    "context/maintain": {},
    "context/compact": {},
}
assert set(_CALLS) <= METHOD_NAMES


def _with_engine(server: Server, engine: str) -> Host:
    """Connect a host with this engine.

    Raises:
        NotDeclared: the engine is not available.
    """
    listed = server.shared().result("engine/list").objects("/engines")
    if engine not in [entry["id"] for entry in listed if entry["available"]]:
        raise NotDeclared(f"there is no engine {engine}")
    return server.connect(engine=engine)


def _others(host: Host) -> list[str]:
    listed = host.result("engine/list").objects("/engines")
    return [str(e["id"]) for e in listed if e["available"] and not e["active"] and e["id"] != "legacy"]


def _tools(host: Host, session: str) -> list[str]:
    tools = host.result("tools/list", {"sessionId": session}).objects("/tools")
    return sorted(str(tool["name"]) for tool in tools)
