"""Engines: which one serves, and what holds for every one of them."""

from __future__ import annotations

from sidecar.conformance.expecting import NotDeclared, expect, expect_equal
from sidecar.conformance.server.conversation import assemble, chat, ingest, store, user
from sidecar.conformance.server.host import Host
from sidecar.conformance.server.subject import Server
from sidecar.conformance.server.suite import METHOD_NAMES, check
from sidecar.conformance.server.wire import Json, Object

_COMPACT = "runtime/compact"
_BATCH = "context/ingestBatch"
_ASSEMBLE = "context/assemble"


@check("engines", "CEP-INIT-16")
def without_a_choice(server: Server) -> None:
    """With no engine chosen it is `legacy` where the host compacts, and `default` where it does not."""
    for capabilities, expected in (([_COMPACT], "legacy"), ([], "default")):
        with server.connect(hostCapabilities=list[Json](capabilities)) as host:
            engine = host.offer.get("engine")
            expect(isinstance(engine, dict), "the answer names no engine")
            assert isinstance(engine, dict)
            expect_equal(engine.get("id"), expected, f"the engine for a host that declares {capabilities}")


@check("engines", "CEP-ENG-3")
def every_method_of_every_engine(server: Server) -> None:
    """Every declared `context/*` method is answered, also by an engine that implements little of it."""
    with server.connect(engine="legacy", hostCapabilities=[_COMPACT]) as host:
        host.answers[_COMPACT] = lambda _: {"result": {"ok": True, "compacted": False, "reason": "small"}}
        session = server.name()
        for method, members in _CALLS.items():
            if host.declares(method):
                answer = host.request(method, {"sessionId": session, **members})
                expect(answer.code in (None, 1003), f"{method} of legacy is answered with {answer.code}")


@check("engines", "CEP-ENG-15", "CEP-INIT-14", needs=(_ASSEMBLE,))
def one_that_stands_in(server: Server) -> None:
    """Where `legacy` is wanted in the place of an engine that fails, the answers name it and the reason."""
    config: Json = {"plugins": {"onEngineFailure": "legacy"}}
    with server.connect(engine="no-such-engine", config=config) as host:
        engine = host.offer.get("engine")
        told = engine.get("fallbackFor") if isinstance(engine, dict) else None
        expect(isinstance(told, dict) and told.get("id") == "no-such-engine", f"the answer names {engine}")
        answer = assemble(host, server.name(), messages=[user("x")])
        expect_equal(answer.at("/result/fallbackFor/id"), "no-such-engine", "fallbackFor.id")
        answer.text("/fallbackFor/reason")


@check("engines", "CEP-ENG-12", needs=("engine/list",))
def a_list_in_spite_of_bad_plugins(server: Server) -> None:
    """`engine/list` is answered where a plugin is configured that is not there."""
    config: Json = {"plugins": {"entries": {"no-such-engine": {"enabled": True, "config": {}}}}}
    with server.connect(config=config) as host:
        listed = host.result("engine/list").objects("/engines")
        available = [engine["id"] for engine in listed if engine["available"]]
        expect(available, "no engine is available")
        expect("no-such-engine" not in available, "an engine that is not there is available")


@check("engines", "CEP-BUDGET-7", needs=(_ASSEMBLE, _BATCH))
def full_drops_whole_turns(server: Server) -> None:
    """`full` sends everything that fits; where it does not, whole turns are missing, the oldest first."""
    with _with_engine(server, "full") as host:
        session = server.name()
        messages = chat(30)
        store(host, session, messages)
        small = list[Json](assemble(host, session, tokenBudget=2000).objects("/messages"))
        expect(0 < len(small) < len(messages), f"{len(small)} of {len(messages)} messages in 2 000 tokens")
        expect_equal(small, messages[len(messages) - len(small) :], "the messages that are left")
        expect_equal(len(small) % 2, 0, "messages of a turn that was cut")
        fresh = server.name()
        store(host, fresh, messages)
        whole = assemble(host, fresh, tokenBudget=100_000).objects("/messages")
        expect_equal(whole, messages, "the messages where everything fits")


@check("engines", "CEP-SESS-19", needs=("session/configure", "tools/list", "context/ingest"))
def other_tools_are_told(server: Server) -> None:
    """Where another engine brings other tools, `tools/listChanged` is sent."""
    with _with_engine(server, "full") as host:
        session = server.name()
        ingest(host, session, user("x"))
        before = _tools(host, session)
        for engine in _others(host):
            host.result("session/configure", {"sessionId": session, "engine": engine})
            if _tools(host, session) != before:
                host.alive()
                told = [message.method for message in host.notifications]
                expect("tools/listChanged" in told, f"{engine} has other tools, and the server sent {told}")
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
    """A host with this engine.

    Raises:
        NotDeclared: the server does not have it.
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
