"""Injected memory and its events, and subagents."""

from __future__ import annotations

from sidecar.conformance.kit import NotDeclared, expect, expect_equal
from sidecar.conformance.server.conversation import (
    assemble,
    assistant,
    expect_unknown,
    ingest,
    text_of,
    user,
)
from sidecar.conformance.server.host import Host
from sidecar.conformance.server.subject import Server, check
from sidecar.conformance.wire import Json, Message, Object

_COMPILE = "memory/compile"


@check("memory", "CEP-MEM-1", needs=("memory/register",))
def sources_need_the_capability(server: Server) -> None:
    """A host that does not declare `memory/getContext` gets 1004."""
    params: Json = {"name": "notes", "injectionPoints": ["per-message"]}
    expect_equal(server.shared().request("memory/register", params).code, 1004, "code of the answer")


@check("memory", "CEP-MEM-3", "CEP-MEM-5", "CEP-MEM-6", "CEP-MEM-17", "CEP-MEM-18", needs=(_COMPILE,))
def compiling(server: Server) -> None:
    """Fragments are included by priority, whole or not at all; the host is notified before the answer."""
    fragments: list[Json] = [
        {"id": "low", "content": "low priority", "tokens": 30, "priority": 1},
        {"id": "big", "content": "too big", "tokens": 500, "priority": 99},
        {"id": "high", "content": "high priority", "tokens": 40, "priority": 90},
    ]
    with _remembering(server, {"result": {"fragments": fragments}}) as host:
        answer = host.result(
            _COMPILE, {"agentId": "anna", "injectionPoint": "per-message", "tokenBudget": 100}
        )
        taken = {str(f["content"]): f["included"] for f in answer.objects("/fragments")}
        expect_equal(taken, {"too big": False, "high priority": True, "low priority": True}, "included")
        content = answer.text("/finalContent")
        expect(content.index("high priority") < content.index("low priority"), "not in order of priority")
        expect("too big" not in content, "the content has a fragment that does not fit")
        expect(
            any(m.method == "memory/contextInjected" for m in host.notifications),
            "memory/contextInjected did not precede the answer",
        )


@check("memory", "CEP-MEM-7", "CEP-MEM-19", needs=(_COMPILE,))
def wrong_token_counts(server: Server) -> None:
    """Token counts that are missing, not positive or far too low are replaced by an estimate."""
    fragments: list[Json] = [
        {"id": str(n), "content": f"part {n} " + "word " * 400, "tokens": tokens, "priority": 50}
        for n, tokens in enumerate((0, -5, None, 1))
    ]
    with _remembering(server, {"result": {"fragments": fragments}}) as host:
        answer = host.result(_COMPILE, {"agentId": "a", "injectionPoint": "per-message", "tokenBudget": 200})
        expect(not any(f["included"] for f in answer.objects("/fragments")), "400 words fit into 200 tokens")


@check("memory", "CEP-MEM-3", needs=(_COMPILE,))
def sources_that_fail(server: Server) -> None:
    """A source that fails contributes nothing and causes no error."""
    with _remembering(server, {"error": {"code": -32000, "message": "down"}}) as host:
        answer = host.result(_COMPILE, {"agentId": "a", "injectionPoint": "per-message"})
        expect_equal(answer.objects("/fragments"), [], "fragments")


@check("memory", "CEP-MEM-16", needs=(_COMPILE,))
def sources_receive_the_agent(server: Server) -> None:
    """A source gets its name, and the agent and injection point of the request."""
    with _remembering(server, {"result": {"fragments": []}}) as host:
        host.result(_COMPILE, {"agentId": "anna", "injectionPoint": "per-message", "prompt": "who?"})
        request = host.wait_for_request("memory/getContext")
        expect_equal(request.at("/params/agentId"), "anna", "agentId")
        expect_equal(request.at("/params/name"), "notes", "name")
        expect_equal(request.at("/params/injectionPoint"), "per-message", "injectionPoint")


def _remembering(server: Server, answer: Object) -> Host:
    """A host with one memory source, which always gives this answer."""
    host = server.connect(hostCapabilities=["memory/getContext"])
    host.answers["memory/getContext"] = lambda _: answer
    host.result("memory/register", {"name": "notes", "injectionPoints": ["per-message"]})
    return host


_NEEDS = ("memory/register", "context/assemble", "context/commitTurn")
_POINTS: list[Json] = ["per-message", "session-start"]
_QUESTION = "What do I like?"


def _injecting(server: Server, fragments: list[Json], points: list[Json], config: Json = None) -> Host:
    """A host with one memory source, which always returns these fragments."""
    answer: Object = {"result": {"fragments": fragments}}
    capabilities: list[Json] = ["memory/getContext", "runtime/complete"]
    host = server.connect(hostCapabilities=capabilities, config=config)
    host.answers["memory/getContext"] = lambda _: answer
    host.result("memory/register", {"name": "notes", "injectionPoints": points})
    return host


def _at_its_point(request: Message) -> Object:
    point = str(request.at("/params/injectionPoint"))
    text = "marigold tea" if point == "per-message" else "Rome in spring"
    fragment: Json = {"id": f"likes-{point}", "content": text, "tokens": 5, "priority": 50}
    return {"result": {"fragments": [fragment]}}


def _likes(text: str) -> list[Json]:
    return [{"id": "likes", "content": text, "tokens": 5, "priority": 50}]


@check("injecting", "CEP-MEM-10", needs=("memory/register", "memory/compile"))
def verbatim_fragments(server: Server) -> None:
    """A fragment with `synthesize: false` appears verbatim in the content and is not sent to a model."""
    fragments: list[Json] = [
        {"id": "exact", "content": "code 7731-X", "tokens": 5, "priority": 50, "synthesize": False},
        {"id": "one", "content": "lives in Rome", "tokens": 5, "priority": 40},
        {"id": "two", "content": "has a cat", "tokens": 5, "priority": 40},
    ]
    config: Json = {"memory": {"enableSynthesis": True}}
    with _injecting(server, fragments, ["per-message"], config=config) as host:
        host.answers["runtime/complete"] = lambda _: {"result": {"text": "A Roman with a cat."}}
        answer = host.result("memory/compile", {"agentId": "anna", "injectionPoint": "per-message"})
        expect("code 7731-X" in answer.text("/finalContent"), "the content lacks the fragment")
        shown = [message.raw for message in host.server_requests if message.method == "runtime/complete"]
        expect(not any(b"7731" in raw for raw in shown), "the fragment was sent to a model")


@check("injecting", "CEP-MEM-12", "CEP-ORDER-6", "CEP-ORDER-7", needs=_NEEDS)
def memory_goes_to_its_injection_point(server: Server) -> None:
    """Memory goes where its injection point says, is announced first, and is the same throughout a turn."""
    with _injecting(server, [], _POINTS) as host:
        session = server.name()
        host.answers["memory/getContext"] = _at_its_point
        first = assemble(host, session, messages=[user(_QUESTION)], prompt=_QUESTION)
        announced = sum(message.method == "memory/contextInjected" for message in host.notifications)
        expect_equal(announced, 2, "number of memory/contextInjected before the answer")
        again = assemble(host, session, messages=[user(_QUESTION)], prompt=_QUESTION)
        for member, text in (
            ("systemPromptAddition", "Rome in spring"),
            ("userMessageAppend", "marigold tea"),
        ):
            place = f"/result/{member}"
            expect(text in str(first.at(place, "")), f"{member} lacks {text!r}")
            expect_equal(again.at(place, None), first.at(place), f"{member} of the second answer of the turn")


@check("injecting", "CEP-SEC-4", "CEP-MEM-14", needs=_NEEDS)
def injected_text_is_fenced(server: Server) -> None:
    """Memory is fenced: the server adds text before and after it."""
    with _injecting(server, _likes("marigold tea"), ["per-message"]) as host:
        answer = assemble(host, server.name(), messages=[user(_QUESTION)], prompt=_QUESTION)
        before, found, after = str(answer.at("/result/userMessageAppend", "")).partition("marigold tea")
        expect(found and before.strip() and after.strip(), "no text before or after the memory")


@check("injecting", "CEP-MEM-15", "CEP-MEM-14", needs=_NEEDS)
def memory_is_injected_once(server: Server) -> None:
    """Memory that came back with the turn is not injected again, and searches do not find it."""
    with _injecting(server, _likes("marigold tea"), ["per-message"]) as host:
        session = server.name()
        first = assemble(host, session, messages=[user(_QUESTION)], prompt=_QUESTION)
        appended = str(first.at("/result/userMessageAppend", ""))
        turn: list[Json] = [user(f"{_QUESTION}\n{appended}"), assistant("Tea.")]
        host.result("context/commitTurn", {"sessionId": session, "advancementKey": "1", "messages": turn})
        second = assemble(host, session, messages=[*turn, user("And now?")], prompt="And now?")
        again = str(second.at("/result/userMessageAppend", ""))
        expect("marigold" not in again, "the memory is injected again in the next turn")
        tools = host.offer.get("tools")
        if not isinstance(tools, list) or "context_search" not in tools:
            raise NotDeclared("context_search is not among the tools")
        arguments: Json = {"mode": "search", "query": "marigold"}
        params: Json = {"sessionId": session, "name": "context_search", "arguments": arguments}
        found = host.result("tools/call", params).raw.decode()
        expect("--- messages" not in found, "a search finds the memory in the message it came back with")


@check("subagents", "CEP-SUB-3", needs=("subagent/prepareSpawn",))
def forks_need_a_parent(server: Server) -> None:
    """A fork of an unknown parent gets 1003; an isolated child needs none."""
    host = server.shared()
    params: Object = {"parentSessionKey": server.name("none"), "childSessionKey": server.name("child")}
    forked = host.request("subagent/prepareSpawn", {**params, "contextMode": "fork"})
    expect_equal(forked.code, 1003, "code of a fork")
    host.result("subagent/prepareSpawn", {**params, "contextMode": "isolated"})


def _prepare(host: Host, parent_key: str, child: str, **members: Json) -> None:
    """Prepare a spawn of the session `child` with the key `key-{child}`."""
    names: Object = {
        "parentSessionKey": parent_key,
        "childSessionKey": f"key-{child}",
        "childSessionId": child,
    }
    host.result("subagent/prepareSpawn", {"contextMode": "isolated", **names, **members})


@check("subagents", "CEP-SUB-7", needs=("subagent/ended", "subagent/prepareSpawn", "context/ingest"))
def ended_erases_only_spawned_sessions(server: Server) -> None:
    """`ended` with `deleted` erases only sessions that the calling agent has spawned."""
    host, plain, spawned = server.shared(), server.name(), server.name()
    ingest(host, plain, user("x"), sessionKey=f"key-{plain}")
    host.result("subagent/ended", {"childSessionKey": f"key-{plain}", "reason": "deleted"})
    _prepare(host, server.name("key"), spawned, agentId="anna")
    ingest(host, spawned, user("x"), agentId="anna")
    ended: Object = {"childSessionKey": f"key-{spawned}", "reason": "deleted"}
    host.result("subagent/ended", {**ended, "agentId": "bert"})
    for session in (plain, spawned):
        host.result("session/get", {"sessionId": session})


@check("subagents", "CEP-SESS-2", "CEP-SUB-3", needs=("subagent/prepareSpawn", "context/ingest"))
def keys_belong_to_their_agent(server: Server) -> None:
    """An agent can neither rebind another agent's key nor fork another agent's session."""
    host, key, child = server.shared(), server.name("key"), server.name("child")
    parent = server.name()
    for agent, session in (("anna", parent), ("bert", server.name())):
        ingest(host, session, user(f"of {agent}"), sessionKey=key, agentId=agent)
    _prepare(host, key, child, contextMode="fork", agentId="anna")
    sent = assemble(host, child, agentId="anna").objects("/messages")
    expect_equal([text_of(message) for message in sent], ["of anna"], "the messages of a fork of the key")
    stolen: Object = {"parentSessionKey": server.name("key"), "childSessionKey": server.name("child")}
    forked = {**stolen, "parentSessionId": parent, "contextMode": "fork", "agentId": "bert"}
    expect_equal(host.request("subagent/prepareSpawn", forked).code, 1003, "code of a fork by another agent")


@check("subagents", "CEP-SUB-9", needs=("subagent/prepareSpawn", "context/ingest"))
def children_belong_to_their_agent(server: Server) -> None:
    """A child belongs to the agent `childAgentId` as soon as it is prepared."""
    host, child = server.shared(), server.name("child")
    _prepare(host, server.name("key"), child, agentId="anna", childAgentId="carl")
    for agent, code in (("bert", 1003), ("anna", 1003), ("carl", None)):
        params: Object = {"sessionId": child, "message": user("x"), "agentId": agent}
        expect_equal(host.request("context/ingest", params).code, code, f"code of a message of {agent}")


@check(
    "subagents", "CEP-SUB-7", "CEP-DUR-5", needs=("subagent/ended", "subagent/prepareSpawn", "context/ingest")
)
def ending_a_child(server: Server) -> None:
    """`ended` is idempotent, even for unknown children; only the reason `deleted` erases the session."""
    host, kept, erased = server.shared(), server.name(), server.name()
    for session, reason in ((kept, "completed"), (erased, "deleted")):
        _prepare(host, server.name("key"), session)
        ingest(host, session, user("x"), sessionKey=f"key-{session}")
        for _ in range(2):
            host.result("subagent/ended", {"childSessionKey": f"key-{session}", "reason": reason})
    host.result("subagent/ended", {"childSessionKey": server.name("never"), "reason": "released"})
    host.result("session/get", {"sessionId": kept})
    expect_unknown(host, erased)


@check("subagents", "CEP-SUB-11", needs=("subagent/prepareSpawn", "context/ingest"))
def child_ids_already_in_use(server: Server) -> None:
    """The `childSessionId` of a session with messages gets -32602."""
    host, taken, key = server.shared(), server.name(), server.name("key")
    ingest(host, taken, user("x"))
    params: Object = {"parentSessionKey": key, "childSessionKey": f"{key}-child", "childSessionId": taken}
    answer = host.request("subagent/prepareSpawn", {**params, "contextMode": "isolated"})
    expect_equal(answer.code, -32602, "code of the answer")


@check("subagents", "CEP-SUB-12", needs=("subagent/prepareSpawn", "context/ingest", "context/assemble"))
def spawns_in_the_order_received(server: Server) -> None:
    """A message to the parent, a fork and a request of the child take effect in the order sent."""
    host, parent, child, key = server.shared(), server.name(), server.name("child"), server.name("key")
    ingest(host, parent, user("first"), sessionKey=key)
    host.begin("context/ingest", {"sessionId": parent, "message": user("second")})
    params: Object = {"parentSessionKey": key, "childSessionKey": f"{key}-child", "childSessionId": child}
    host.begin("subagent/prepareSpawn", {**params, "contextMode": "fork"})
    answer = host.request("context/assemble", {"sessionId": child})
    sent = [text_of(message) for message in answer.objects("/messages")]
    expect_equal(sent, ["first", "second"], "the messages of the child")
