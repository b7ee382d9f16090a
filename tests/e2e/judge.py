"""Judges lists of messages as their providers do, written without any code of the sidecar's."""

import json
from functools import cache
from itertools import groupby
from typing import Any

from rs_bpe.bpe import openai

Json = dict[str, Any]

MARK = "[ctx:"
"""Every synthetic text begins its fence with this."""


def problems(dialect: str, messages: list[Json]) -> list[str]:
    """What the provider behind a dialect would refuse."""
    judges = {"openai": _chat, "openclaw": _openclaw, "anthropic": _anthropic, "openai-responses": _items}
    return judges[dialect](messages)


def is_synthetic(message: Json) -> bool:
    """Whether a message carries the mark of synthetic text."""
    return MARK in json.dumps(message, ensure_ascii=False)


def exact_tokens(messages: list[Json]) -> int:
    """What the messages cost: 4 each, and the o200k tokens of text, calls and results."""
    encoder = _o200k()
    return sum(4 + encoder.count(said) if (said := _said(message)) else 4 for message in messages)


@cache
def _o200k() -> Any:
    return openai.o200k_base()


def _said(message: Json) -> str:
    parts = [*_texts(message.get("content")), *_texts(message.get("output"))]
    for call in message.get("tool_calls") or ():
        parts.append(f"{call['function']['name']}({call['function']['arguments']})")
    if message.get("type") == "function_call":
        parts.append(f"{message['name']}({message['arguments']})")
    return "\n".join(parts)


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    found: list[str] = []
    for block in content if isinstance(content, list) else ():
        if block.get("type") in ("tool_use", "toolCall"):
            arguments = json.dumps(block.get("input", block.get("arguments")), ensure_ascii=False)
            found.append(f"{block['name']}({arguments})")
        else:
            found += (
                _texts(block.get("content")) or _texts(block.get("text")) or _texts(block.get("thinking"))
            )
    return found


def _blank(messages: list[Json], says: set[str]) -> list[str]:
    wrong: list[str] = []
    for i, message in enumerate(messages):
        if message.get("role") not in ("system", "developer", "user", "assistant"):
            continue
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        spoken = "".join(_texts(content)).strip() or message.get("tool_calls")
        if not spoken and not any(block.get("type") in says for block in blocks):
            wrong.append(f"message {i} is empty")
    return wrong


def _chat(messages: list[Json]) -> list[str]:
    """Results right behind their call, all of them, none without a call."""
    wrong = _blank(messages, {"image_url"})
    due: set[str] = set()
    for i, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in due:
                wrong.append(f"message {i} is a result without its call")
            due.discard(message["tool_call_id"])
            continue
        if due:
            wrong.append(f"message {i} comes before the results of {due}")
        due = {call["id"] for call in message.get("tool_calls") or ()}
    return wrong


def _openclaw(messages: list[Json]) -> list[str]:
    wrong = _blank(messages, {"image", "toolCall"})
    due: set[str] = set()
    for i, message in enumerate(messages):
        if message["role"] == "toolResult":
            name = _letters(message["toolCallId"])
            if name not in due:
                wrong.append(f"message {i} is a result without its call")
            due.discard(name)
            continue
        if due:
            wrong.append(f"message {i} comes before the results of {due}")
        blocks = message.get("content") if isinstance(message.get("content"), list) else []
        due = {_letters(b["id"]) for b in blocks if b.get("type") == "toolCall"}
    return wrong


def _anthropic(messages: list[Json]) -> list[str]:
    """Turns alternate once neighbours are merged; results come first in the turn behind their calls."""
    wrong = _blank(messages, {"image", "tool_use", "tool_result", "thinking", "redacted_thinking"})
    spoken = [m for m in messages if m["role"] not in ("system", "developer")]
    turns = [(role, [b for m in run for b in _blocks(m)]) for role, run in groupby(spoken, _side)]
    if turns and turns[0][0] != "user":
        wrong.append("the first turn is not the user's")
    for i, (role, blocks) in enumerate(turns):
        before = turns[i - 1][1] if i else []
        calls = {b["id"] for b in before if b["type"] == "tool_use"}
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if role == "assistant":
            if results:
                wrong.append(f"turn {i} of the assistant holds results")
            if blocks[-1]["type"] in ("thinking", "redacted_thinking"):
                wrong.append(f"turn {i} ends in thinking")
            continue
        if not set(results) <= calls or len(results) != len(set(results)):
            wrong.append(f"turn {i} has results {results} for calls {calls}")
        is_open = i == len(turns) - 1 and all(b["type"] == "tool_result" for b in blocks)
        if not is_open and calls - set(results):
            wrong.append(f"turn {i} lacks results for {calls - set(results)}")
        kinds = [b["type"] == "tool_result" for b in blocks]
        if kinds != sorted(kinds, reverse=True):
            wrong.append(f"turn {i} says something before its results")
    return wrong


def _items(items: list[Json]) -> list[str]:
    """Every output behind its call, every call with an output unless nothing comes after it."""
    wrong = _blank(items, {"input_image"})
    called: dict[str, int] = {}
    answered: set[str] = set()
    for i, item in enumerate(items):
        if item.get("type") == "function_call":
            called[item["call_id"]] = i
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in called or item["call_id"] in answered:
                wrong.append(f"item {i} is an output without its call")
            answered.add(item["call_id"])
        elif item.get("type") == "reasoning":
            follower = items[i + 1] if i + 1 < len(items) else {}
            kind = str(follower.get("type"))
            if kind != "reasoning" and not kind.endswith("_call") and follower.get("role") != "assistant":
                wrong.append(f"item {i} is reasoning without what it led to")
    last_said = max((i for i, item in enumerate(items) if item.get("role") == "user"), default=-1)
    wrong += [f"call {c} has no output" for c, i in called.items() if c not in answered and i < last_said]
    return wrong


def _side(message: Json) -> str:
    """A role that the provider does not know is the host's own, and ends up on the user's side."""
    return "assistant" if message["role"] == "assistant" else "user"


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _letters(name: str) -> str:
    return "".join(c for c in name if c.isalnum())
