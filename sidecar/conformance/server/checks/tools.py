"""The tools that look into a session."""

from __future__ import annotations

from sidecar.conformance.expecting import NotDeclared, expect, expect_equal
from sidecar.conformance.server.conversation import (
    assistant,
    call,
    chat,
    history,
    ingest,
    store,
    tool,
    user,
)
from sidecar.conformance.server.host import Host
from sidecar.conformance.server.subject import Server
from sidecar.conformance.server.suite import check
from sidecar.conformance.server.wire import Json, Message

_BATCH = "context/ingestBatch"
_CALL = "tools/call"


@check("tools", "CEP-TOOL-1", "CEP-TOOL-2", needs=("tools/list", _CALL, "context/ingest"))
def tools_and_their_schemas(server: Server) -> None:
    """Tools have object schemas; unknown ones and wrong arguments get -32602 with the path."""
    host, session = server.shared(), server.name()
    ingest(host, session, user("x"))
    for entry in host.result("tools/list").objects("/tools"):
        schema = entry["inputSchema"]
        expect(isinstance(schema, dict) and schema.get("type") == "object", f"the schema of {entry['name']}")
    unknown = host.request(_CALL, {"sessionId": session, "name": "no_such_tool", "arguments": {}})
    expect_equal(unknown.code, -32602, "code of an unknown tool")
    expect(str(unknown.at("/error/data/path")).startswith("/name"), "data.path of an unknown tool")
    _need_search(host)
    wrong = host.request(_CALL, {"sessionId": session, "name": "context_search", "arguments": {"mode": 7}})
    expect_equal(wrong.code, -32602, "code of wrong arguments")
    expect(str(wrong.at("/error/data/path")).startswith("/arguments"), "data.path of wrong arguments")


@check("tools", "CEP-TOOL-7", "CEP-TOOL-11", "CEP-TOOL-6", needs=(_CALL, _BATCH))
def search_finds_what_was_just_stored(server: Server) -> None:
    """`search` is literal, ignores case, covers text, calls and results, and sees what was just stored."""
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
    """Ranges that overlap or touch are one, with the heading and the lines that the specification shows."""
    host, session = server.shared(), server.name()
    texts = ["zero", "needle one", "two", "three", "needle four", "five", "six", "seven", "eight", "nine"]
    store(host, session, [user(text) if n % 2 == 0 else assistant(text) for n, text in enumerate(texts)])
    text = _text(_search(host, session, {"mode": "search", "query": "needle", "before": 1, "after": 1}))
    expect("--- messages 1-6 of 10 ---" in text, f"no merged heading in {text}")
    expect("[user t1] zero" in text and "[assistant t1] needle one" in text, f"lines of another form: {text}")


@check("tools", "CEP-TOOL-10", needs=(_CALL, _BATCH))
def relevant_hits(server: Server) -> None:
    """`relevant` answers a question with ranked hits, also in `structuredContent`."""
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
    """The text of a result has at most 16 000 characters; its last line says what was left out."""
    host, session = server.shared(), server.name()
    store(host, session, [user(f"needle {n} " + "long " * 300) for n in range(40)])
    text = _text(_search(host, session, {"mode": "search", "query": "needle"}))
    expect(len(text) <= 16_000, f"{len(text)} characters")
    last = text.rstrip().rsplit("\n", 1)[-1]
    expect(last.startswith("---") and last.endswith("---"), f"the last line is {last!r}")


@check("tools", "CEP-TOOL-5", "CEP-SEC-5", needs=(_CALL, _BATCH))
def tools_read_their_session_alone(server: Server) -> None:
    """A tool finds nothing of another session, and nothing for another agent."""
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
