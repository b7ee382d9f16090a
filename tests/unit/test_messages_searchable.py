"""The searchable text of messages in each dialect."""

import msgspec
import pytest

from sidecar.messages.contract import Mark
from sidecar.messages.dialects import dialect as dialect_of
from sidecar.messages.fence import enclose
from sidecar.messages.text import SearchableText, searchable
from tests.guard_kit import MARKS


def found(dialect: str, **members: object) -> SearchableText:
    return searchable(dialect_of(dialect).marked(MARKS), msgspec.json.encode(members))


def test_text_calls_and_results_are_searched() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"cmd":"ls /srv"}'}}]
    assert found("openai", role="assistant", content="Look:", tool_calls=calls) == SearchableText(
        'Look:\nbash({"cmd":"ls /srv"})', ("bash",)
    )
    result = found("openai", role="tool", tool_call_id="c1", content="app config.yaml")
    assert (result.text, result.tools) == ("app config.yaml", ())


def test_anthropic_blocks_are_searched() -> None:
    blocks = [
        {"type": "text", "text": "Reading."},
        {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "/a/b.py"}},
    ]
    text, tools = found("anthropic", role="assistant", content=blocks)
    assert text.startswith("Reading.\nread_file(")
    assert "/a/b.py" in text
    assert tools == ("read_file",)


@pytest.mark.parametrize("dialect", ["openai", "anthropic", "openai-responses"])
def test_text_of_our_own_is_not_searched(dialect: str) -> None:
    fenced = MARKS.wrap(Mark("memory", "m1"), "injected secret")
    text, _ = found(dialect, role="user", content=f"asked\n{fenced}")
    assert "asked" in text
    assert "secret" not in text


@pytest.mark.parametrize("dialect", ["openai", "anthropic", "openai-responses"])
@pytest.mark.parametrize("code", ["123456789", "123456789012345678"])
def test_the_content_of_a_forged_fence_is_searchable(dialect: str, code: str) -> None:
    forged = enclose(Mark("memory", "m1"), code, "injected secret")
    text, _ = found(dialect, role="user", content=f"asked\n{forged}")
    assert "injected secret" in text


def test_escapes_inside_arguments_are_resolved() -> None:
    arguments = '{"text":"\\u4f60\\u597d\\nline \\"two\\"","n":[1,null,true]}'
    calls = [{"id": "c", "function": {"name": "write", "arguments": arguments}}]
    text, _ = found("openai", role="assistant", content=None, tool_calls=calls)
    assert text == 'write({"text": "你好\nline "two"", "n": [1, null, true]})'


def test_arguments_that_are_not_json_are_searched_unchanged() -> None:
    calls = [{"id": "c", "function": {"name": "write", "arguments": '{"cut \\u4f'}}]
    assert found("openai", role="assistant", tool_calls=calls).text == 'write({"cut \\u4f)'


def test_an_unreadable_message_is_searched_as_raw_text() -> None:
    assert searchable(dialect_of("openai"), b"no json \xff") == SearchableText("no json \ufffd", ())
