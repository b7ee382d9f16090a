"""Parsing real message shapes, dialect by dialect."""

from __future__ import annotations

import base64
import json

from sidecar.messages.contract import Media, Reading, ToolCall, ToolResult, Usage
from sidecar.messages.dialects import dialect


def read(name: str, /, **members: object) -> Reading:
    return dialect(name).read(json.dumps(members).encode())


def replaced(name: str, raw: str, texts: dict[str, str]) -> str:
    return dialect(name).replace_results(raw.encode(), texts).decode()


PIXEL = base64.b64encode(bytes(100)).decode()


def test_openai_calls_keep_their_arguments_as_text() -> None:
    function = {"name": "look", "arguments": '{"at": 1.0}'}
    reading = read("openai", role="assistant", content=None, tool_calls=[{"id": "c1", "function": function}])
    assert reading.calls == (ToolCall("c1", "look", '{"at": 1.0}'),)
    assert reading.text == ""


def test_openai_custom_tools_are_calls_too() -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    assert read("openai", role="assistant", tool_calls=[call]).calls == (ToolCall("c1", "sql", "select 1"),)


def test_openai_functions_of_the_old_form_pair_by_name() -> None:
    call = read("openai", role="assistant", content=None, function_call={"name": "look", "arguments": "{}"})
    result = read("openai", role="function", name="look", content="blue")
    assert call.calls[0].id == result.results[0].call_id == "look"


def test_openai_parts_are_joined_by_line_breaks() -> None:
    parts = [{"type": "text", "text": "one"}, "two", {"type": "text", "text": "three"}]
    assert read("openai", role="user", content=parts).text == "one\ntwo\nthree"


def test_openai_media_have_the_size_of_their_payload() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "input_audio", "input_audio": {"data": PIXEL, "format": "wav"}},
    ]
    media = (Media("image", 100), Media("image", 0), Media("audio", 100))
    assert read("openai", role="user", content=parts).media == media


def test_openai_developer_reads_as_system() -> None:
    assert read("openai", role="developer", content="be kind").role == "system"


def test_openai_refusals_and_reasoning_are_read() -> None:
    reading = read("openai", role="assistant", content=None, refusal="no", reasoning_content="hm")
    assert (reading.text, reading.reasoning, reading.carries_reasoning) == ("no", "hm", True)


def test_anthropic_messages_of_results_alone_are_the_tools() -> None:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "seen"}]}
    alone = read("anthropic", role="user", content=[{**block, "is_error": True}])
    beside = read("anthropic", role="user", content=[block, {"type": "text", "text": "go on"}])
    assert (alone.role, alone.results) == ("tool", (ToolResult("t1", "", "seen", True),))
    assert (beside.role, beside.text, beside.opens_turn) == ("user", "go on", False)


def test_anthropic_thinking_stays_with_the_message() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1.50}},
    ]
    reading = read("anthropic", role="assistant", content=blocks)
    assert (reading.reasoning, reading.carries_reasoning) == ("hm", True)
    assert reading.calls == (ToolCall("t1", "look", '{"at": 1.5}'),)


def test_anthropic_documents_and_images_are_media() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    blocks = [{"type": "image", "source": source}, {"type": "document", "source": source}]
    assert read("anthropic", role="user", content=blocks).media == (Media("image", 100), Media("file", 100))


def test_anthropic_tools_of_the_provider_are_no_open_calls() -> None:
    blocks = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "sky"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result"}]},
        {"type": "text", "text": "blue"},
    ]
    reading = read("anthropic", role="assistant", content=blocks)
    assert reading.calls == ()
    assert "web_search" in reading.text
    assert "blue" in reading.text


def test_responses_items_have_roles() -> None:
    name = "openai-responses"
    call = read(name, type="function_call", id="fc1", call_id="c1", name="look", arguments="{}")
    output = read(name, type="function_call_output", call_id="c1", output="blue")
    reasoning = read(name, type="reasoning", id="rs1", summary=[{"type": "summary_text", "text": "hm"}])
    assert (call.role, call.inner_id) == ("assistant", "fc1")
    assert call.calls == (ToolCall("c1", "look", "{}", "function_call"),)
    assert (output.role, output.results) == ("tool", (ToolResult("c1", "", "blue", False),))
    assert (reasoning.role, reasoning.reasoning, reasoning.carries_reasoning) == ("assistant", "hm", True)


def test_responses_results_have_the_type_of_their_call() -> None:
    spoken = dialect("openai-responses")
    custom = ToolCall("c1", "sql", "select 1", "custom_tool_call")
    assert json.loads(spoken.write_result(custom, "none", 0))["type"] == "custom_tool_call_output"
    assert (
        json.loads(spoken.write_result(ToolCall("c1", "f", "{}"), "none", 0))["type"]
        == "function_call_output"
    )


def test_responses_calls_of_the_provider_are_complete_in_themselves() -> None:
    search = read("openai-responses", type="web_search_call", id="ws", action={"query": "sky"})
    assert (search.role, search.calls) == ("assistant", ())
    assert "sky" in search.text


def test_responses_output_parts_are_text() -> None:
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    assert (
        read("openai-responses", type="function_call_output", call_id="c", output=parts).results[0].text
        == "a\nb"
    )


def test_openclaw_ids_and_times_are_read() -> None:
    asked = read("openclaw", role="user", content="hi", timestamp=1795229928594, idempotencyKey="k:user")
    content = [
        {"type": "text", "text": "yes"},
        {"type": "toolCall", "id": "c1", "name": "look", "arguments": {}},
    ]
    replied = read("openclaw", role="assistant", content=content, timestamp=1795229948130.0, responseId="r1")
    assert (asked.inner_id, asked.timestamp_ms) == ("k:user", 1795229928594)
    assert (replied.inner_id, replied.timestamp_ms) == ("r1", 1795229948130)
    assert replied.calls == (ToolCall("c1", "look", "{}"),)


def test_openclaw_compaction_summaries_have_no_content() -> None:
    reading = read("openclaw", role="compactionSummary", summary="so far", timestamp=1)
    assert (reading.role, reading.text, reading.opens_turn) == ("other", "so far", False)


def test_openclaw_assistant_messages_have_all_members_that_pi_reads() -> None:
    made = json.loads(dialect("openclaw").write_text("assistant", "noted", 5))
    assert {"api", "provider", "model", "usage", "stopReason", "timestamp"} <= made.keys()
    assert made["usage"]["cost"]["total"] == 0


def test_usage_is_known_by_every_providers_names() -> None:
    openai = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 6}}
    anthropic = {
        "input_tokens": 1,
        "cache_read_input_tokens": 6,
        "cache_creation_input_tokens": 3,
        "output_tokens": 2,
    }
    pi = {"input": 1, "cacheRead": 6, "cacheWrite": 3, "output": 2}
    responses = {"input_tokens": 10, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 6}}
    codex = {"input_tokens": 10, "output_tokens": 2, "cached_input_tokens": 6}
    for name, usage, written in (
        ("openai", openai, 0),
        ("anthropic", anthropic, 3),
        ("openclaw", pi, 3),
        ("openai-responses", responses, 0),
        ("openai-responses", codex, 0),
        ("openai", {**openai, "prompt_tokens_details": None, "cached_input_tokens": 6}, 0),
    ):
        found = read(name, role="assistant", content="x", usage=usage).usage
        assert found == Usage(10, 2, 6, written), usage


def test_replacing_a_result_keeps_the_rest_byte_for_byte() -> None:
    raw = '{"z": 1.50,"role":"tool","tool_call_id":"c1","content":"long","x":{"a": 1e3, "b":"\\u00e9"}}'
    assert replaced("openai", raw, {"c1": "short"}) == raw.replace('"long"', '"short"').replace(
        '"z": ', '"z":'
    )


def test_replacing_one_of_two_results_keeps_the_other_block() -> None:
    content = '[{"type":"text","text":"\\u00e9"}]'
    kept = '{"type":"tool_result","tool_use_id":"b","content":' + content + ',"is_error": false}'
    raw = '{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"long"},' + kept + "]}"
    after = replaced("anthropic", raw, {"a": "short"})
    assert kept in after
    assert [result.text for result in dialect("anthropic").read(after.encode()).results] == ["short", "é"]


def test_odd_members_do_not_take_sound_ones_with_them() -> None:
    calls = [{"id": 7, "function": {"name": "look", "arguments": "{}"}}, 3]
    reading = read("openai", role="assistant", content=[3, {"type": "text", "text": "hi"}], tool_calls=calls)
    assert (reading.text, reading.calls) == ("hi", (ToolCall("", "look", "{}"),))
