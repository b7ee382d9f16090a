"""What becomes of memory that is put into a context."""

from __future__ import annotations

from sidecar.conformance.expecting import NotDeclared, expect, expect_equal
from sidecar.conformance.server.conversation import assemble, assistant, user
from sidecar.conformance.server.host import Host
from sidecar.conformance.server.subject import Server
from sidecar.conformance.server.suite import check
from sidecar.conformance.server.wire import Json, Message, Object

_NEEDS = ("memory/register", "context/assemble", "context/commitTurn")
_POINTS: list[Json] = ["per-message", "session-start"]
_QUESTION = "What do I like?"


def _remembering(server: Server, fragments: list[Json], points: list[Json], config: Json = None) -> Host:
    """A host with one source that has these fragments for every question."""
    answer: Object = {"result": {"fragments": fragments}}
    capabilities: list[Json] = ["memory/getContext", "runtime/complete"]
    host = server.connect(hostCapabilities=capabilities, config=config)
    host.answers["memory/getContext"] = lambda _: answer
    host.result("memory/register", {"name": "notes", "injectionPoints": points})
    return host


def _at_its_point(asked: Message) -> Object:
    point = str(asked.at("/params/injectionPoint"))
    text = "marigold tea" if point == "per-message" else "Rome in spring"
    fragment: Json = {"id": f"likes-{point}", "content": text, "tokens": 5, "priority": 50}
    return {"result": {"fragments": [fragment]}}


def _likes(text: str) -> list[Json]:
    return [{"id": "likes", "content": text, "tokens": 5, "priority": 50}]


@check("injecting", "CEP-MEM-10", needs=("memory/register", "memory/compile"))
def fragments_that_stay_as_they_are(server: Server) -> None:
    """A fragment with `synthesize: false` is in the content word for word, and no model sees it."""
    fragments: list[Json] = [
        {"id": "exact", "content": "code 7731-X", "tokens": 5, "priority": 50, "synthesize": False},
        {"id": "one", "content": "lives in Rome", "tokens": 5, "priority": 40},
        {"id": "two", "content": "has a cat", "tokens": 5, "priority": 40},
    ]
    config: Json = {"memory": {"enableSynthesis": True}}
    with _remembering(server, fragments, ["per-message"], config=config) as host:
        host.answers["runtime/complete"] = lambda _: {"result": {"text": "A Roman with a cat."}}
        answer = host.result("memory/compile", {"agentId": "anna", "injectionPoint": "per-message"})
        expect("code 7731-X" in answer.text("/finalContent"), "it is not in the content")
        shown = [message.raw for message in host.asked if message.method == "runtime/complete"]
        expect(not any(b"7731" in raw for raw in shown), "a model was shown it")


@check("injecting", "CEP-MEM-12", "CEP-ORDER-6", "CEP-ORDER-7", needs=_NEEDS)
def where_memory_goes(server: Server) -> None:
    """It goes where its injection point says, is told before, and is the same for all of a turn."""
    with _remembering(server, [], _POINTS) as host:
        session = server.name()
        host.answers["memory/getContext"] = _at_its_point
        first = assemble(host, session, messages=[user(_QUESTION)], prompt=_QUESTION)
        told = sum(message.method == "memory/contextInjected" for message in host.notifications)
        expect_equal(told, 2, "number of memory/contextInjected before the answer")
        again = assemble(host, session, messages=[user(_QUESTION)], prompt=_QUESTION)
        for member, text in (
            ("systemPromptAddition", "Rome in spring"),
            ("userMessageAppend", "marigold tea"),
        ):
            place = f"/result/{member}"
            expect(text in str(first.at(place, "")), f"it is not in {member}")
            expect_equal(again.at(place, None), first.at(place), f"{member} of the second answer of the turn")


@check("injecting", "CEP-SEC-4", "CEP-MEM-14", needs=_NEEDS)
def injected_text_is_fenced(server: Server) -> None:
    """Memory is introduced and fenced: it stands between lines that are not the source's own."""
    with _remembering(server, _likes("marigold tea"), ["per-message"]) as host:
        answer = assemble(host, server.name(), messages=[user(_QUESTION)], prompt=_QUESTION)
        before, found, after = str(answer.at("/result/userMessageAppend", "")).partition("marigold tea")
        expect(found and before.strip() and after.strip(), "nothing stands before or behind it")


@check("injecting", "CEP-MEM-15", "CEP-MEM-14", needs=_NEEDS)
def once_is_enough(server: Server) -> None:
    """What was injected, and came back with the turn, is neither injected nor found again."""
    with _remembering(server, _likes("marigold tea"), ["per-message"]) as host:
        session = server.name()
        first = assemble(host, session, messages=[user(_QUESTION)], prompt=_QUESTION)
        appended = str(first.at("/result/userMessageAppend", ""))
        turn: list[Json] = [user(f"{_QUESTION}\n{appended}"), assistant("Tea.")]
        host.result("context/commitTurn", {"sessionId": session, "advancementKey": "1", "messages": turn})
        second = assemble(host, session, messages=[*turn, user("And now?")], prompt="And now?")
        again = str(second.at("/result/userMessageAppend", ""))
        expect("marigold" not in again, "it is injected again in the next turn")
        tools = host.offer.get("tools")
        if not isinstance(tools, list) or "context_search" not in tools:
            raise NotDeclared("context_search is not among the tools")
        arguments: Json = {"mode": "search", "query": "marigold"}
        params: Json = {"sessionId": session, "name": "context_search", "arguments": arguments}
        found = host.result("tools/call", params).raw.decode()
        expect("--- messages" not in found, "a search finds it in the message that it came back with")
