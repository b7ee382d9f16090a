"""One short conversation as the transcript files of every format that is imported."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]

ASK, CALL, OUTPUT, ANSWER, THANKS = "你好, list 😀 the files", "bash", "a.txt\nb.txt", "Two files.", "thanks"
STAMP = "2026-01-02T03:04:05.678Z"
ARGUMENTS = json.dumps({"command": "ls"})


def lines(*rows: Json) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def document(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def openai() -> list[Json]:
    call = {"id": "c1", "type": "function", "function": {"name": CALL, "arguments": ARGUMENTS}}
    return [
        {"role": "user", "content": ASK},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": OUTPUT},
        {"role": "assistant", "content": ANSWER},
        {"role": "user", "content": THANKS},
    ]


def anthropic() -> list[Json]:
    return [
        {"role": "user", "content": ASK},
        {"role": "assistant", "content": [use("tool_use", id="c1", name=CALL, input={"command": "ls"})]},
        {"role": "user", "content": [use("tool_result", tool_use_id="c1", content=OUTPUT)]},
        {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
        {"role": "user", "content": THANKS},
    ]


def use(kind: str, **members: object) -> Json:
    return {"type": kind, **members}


def claude_code() -> str:
    rows: list[Json] = [{"type": "file-history-snapshot", "messageId": "m0", "snapshot": {}}]
    for number, message in enumerate(anthropic()):
        parent = f"u{number - 1}" if number else None
        rows.append(
            {
                "parentUuid": parent,
                "uuid": f"u{number}",
                "type": message["role"],
                "isSidechain": False,
                "timestamp": STAMP,
                "message": message,
            }
        )
    return lines(*rows)


def codex() -> str:
    def said(role: str, kind: str, text: str) -> Json:
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    items: list[Json] = [
        said("user", "input_text", ASK),
        {"type": "function_call", "name": CALL, "arguments": ARGUMENTS, "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": OUTPUT},
        said("assistant", "output_text", ANSWER),
        said("user", "input_text", THANKS),
    ]
    head = {"timestamp": STAMP, "type": "session_meta", "payload": {"id": "s1", "cwd": "/w"}}
    return lines(head, *({"timestamp": STAMP, "type": "response_item", "payload": item} for item in items))


def pi(**header: object) -> str:
    def blocks(text: str) -> list[Json]:
        return [{"type": "text", "text": text}]

    call = {"type": "toolCall", "id": "c1", "name": CALL, "arguments": {"command": "ls"}}
    messages: list[Json] = [
        {"role": "user", "content": blocks(ASK), "timestamp": 1},
        {"role": "assistant", "content": [call], "timestamp": 2},
        {
            "role": "toolResult",
            "toolCallId": "c1",
            "toolName": CALL,
            "content": blocks(OUTPUT),
            "timestamp": 3,
        },
        {"role": "assistant", "content": blocks(ANSWER), "timestamp": 4},
        {"role": "user", "content": blocks(THANKS), "timestamp": 5},
    ]
    rows: list[Json] = [
        {"type": "session", "version": 3, "id": "s1", "timestamp": STAMP, "cwd": "/w", **header}
    ]
    for number, message in enumerate(messages):
        parent = f"e{number - 1}" if number else None
        place = {"type": "message", "id": f"e{number}", "parentId": parent, "timestamp": STAMP}
        rows.append({**place, "message": message})
    return lines(*rows)


def swe_agent() -> str:
    history: list[Json] = [
        {"role": "user", "content": ASK, "agent": "main"},
        {"role": "assistant", "content": "", "tool_calls": openai()[1]["tool_calls"], "agent": "main"},
        {"role": "tool", "content": OUTPUT, "tool_call_ids": ["c1"], "agent": "main"},
        {"role": "assistant", "content": ANSWER, "agent": "main"},
        {"role": "user", "content": THANKS, "agent": "main"},
    ]
    return document({"trajectory": [], "history": history, "info": {"exit_status": "submitted"}})


FILES = {
    "openai-chat": document({"model": "m", "messages": openai()}),
    "openai-chat lines": lines(*openai()),
    "anthropic-messages": document({"model": "m", "messages": anthropic()}),
    "claude-code": claude_code(),
    "codex": codex(),
    "pi": pi(),
    "openclaw": pi(agent="openclaw"),
    "swe-agent": swe_agent(),
}
"""Text of the conversation, by format."""
