"""Messages and requests that the checks share, in the dialect `openai`."""

from __future__ import annotations

import json

from sidecar.conformance.kit import Violation, expect_equal
from sidecar.conformance.server.host import Host
from sidecar.conformance.wire import Json, Message, Object, shown


def user(text: str) -> Object:
    """A user message."""
    return {"role": "user", "content": text}


def assistant(text: str) -> Object:
    """An assistant message."""
    return {"role": "assistant", "content": text}


def call(*ids: str, name: str = "read_file", arguments: str = '{"path":"notes.txt"}') -> Object:
    """An assistant message that calls a tool once for each id."""
    calls: list[Json] = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}} for id in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def tool(id: str, text: str) -> Object:
    """The result of a tool call."""
    return {"role": "tool", "tool_call_id": id, "content": text}


def chat(turns: int, *, words: int = 40, topic: str = "river") -> list[Json]:
    """`turns` pairs of question and answer; each message has `words` words of filler, no two are alike."""
    messages: list[Json] = []
    for turn in range(1, turns + 1):
        filler = " ".join(f"{topic}{(turn * 31 + word) % 97}" for word in range(words))
        messages += [user(f"Question {turn} about {filler}?"), assistant(f"Answer {turn}: {filler}.")]
    return messages


def ingest(host: Host, session: str, message: Json, **members: Json) -> Message:
    """Store one message and return the answer, which must be a result."""
    return host.result("context/ingest", {"sessionId": session, "message": message, **members})


def store(host: Host, session: str, messages: list[Json]) -> Message:
    """Store messages in one request and return the answer, which must be a result."""
    return host.result("context/ingestBatch", {"sessionId": session, "messages": messages})


def assemble(host: Host, session: str, **members: Json) -> Message:
    """Assemble a context and return the answer, which must be a result."""
    return host.result("context/assemble", {"sessionId": session, **members})


def exported(host: Host, session: str) -> list[Object]:
    """Every entry of `session/export`, read page by page."""
    entries: list[Object] = []
    cursor: Json = None
    while True:
        members: Object = {} if cursor is None else {"cursor": cursor}
        page = host.result("session/export", {"sessionId": session, **members})
        entries += page.objects("/messages")
        cursor = page.at("/result/nextCursor", None)
        if cursor is None:
            return entries


def history(host: Host, session: str) -> list[Json]:
    """Every stored message of a session."""
    return [entry["message"] for entry in exported(host, session)]


def expect_unknown(host: Host, session: str) -> None:
    """Require that the server does not know a session.

    Raises:
        Violation: the session exists.
    """
    expect_equal(host.request("session/get", {"sessionId": session}).code, 1003, "code of session/get")


def text_of(message: Json) -> str:
    """The text of a message in the dialect `openai`."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def require_valid(messages: list[Object]) -> None:
    """Require that chat completion APIs accept a list of messages.

    Raises:
        Violation: the list has a result without its call, a message between a call and its results, or an
            empty message.
    """
    open_calls: set[str] = set()
    for index, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            id = message.get("tool_call_id")
            if id not in open_calls:
                raise Violation(f"messages[{index}] is a result without its call")
            open_calls.discard(str(id))
            continue
        if open_calls:
            raise Violation(f"messages[{index}] comes before the results of {sorted(open_calls)}")
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            open_calls = {str(item.get("id")) for item in calls if isinstance(item, dict)}
        if not calls and not message.get("content"):
            raise Violation(f"messages[{index}] is empty: {shown(json.dumps(message).encode())}")
