"""The formats that a message matches."""

import json

import pytest

from sidecar.messages.shapes import contradiction, shapes

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
OF_ONE = {
    "openai": [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "blue"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]},
    ],
    "anthropic": [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "blue"}]},
        {"role": "assistant", "content": [{"type": "server_tool_use", "id": "t"}]},
    ],
    "openai-responses": [
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
    ],
    "openclaw": [
        {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "f", "arguments": {}}]},
        {"role": "toolResult", "toolCallId": "c", "content": [{"type": "text", "text": "blue"}]},
    ],
    "Gemini": [
        {"role": "model", "parts": [{"text": "hello"}]},
        {"role": "user", "parts": [{"text": "hello"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
    ],
    "Vercel AI SDK": [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "hello"}]},
        {"role": "assistant", "content": "", "parts": [{"type": "text", "text": "hello"}]},
        {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c", "input": {}}]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c", "output": {}}]},
    ],
}


@pytest.mark.parametrize(("name", "message"), [(n, m) for n, ms in OF_ONE.items() for m in ms])
def test_a_message_with_signs_of_one_format_is_of_that_one_alone(name: str, message: object) -> None:
    raw = json.dumps(message).encode()
    assert shapes(raw) == {name}
    for other in set(OF_ONE) - {name}:
        assert contradiction(raw, other) == name


@pytest.mark.parametrize("name", ["openai", "anthropic", "openai-responses", "openclaw"])
@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hello"},
        {"role": "narrator", "content": "hello"},
        {"role": "user", "content": [{"type": "hologram"}]},
        {"role": "user"},
        {},
    ],
)
def test_a_message_that_matches_any_format_contradicts_none(name: str, message: object) -> None:
    assert contradiction(json.dumps(message).encode(), name) is None


@pytest.mark.parametrize("raw", [b"", b"3", b"[]", b"{", b'{"role": "\\ud83d"}'])
def test_a_value_that_is_not_a_message_matches_no_format(raw: bytes) -> None:
    assert shapes(raw) == frozenset()
