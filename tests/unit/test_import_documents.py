"""JSON documents and unknown files: which formats are detected, and which files are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.messages.dialects import dialect
from sidecar.messages.importers import FORMATS, TranscriptError, detect, load, read

FUNCTION = {"name": "f", "arguments": "{}"}
CHAT = [
    {"role": "system", "content": "be kind"},
    {"role": "user", "content": "look"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "blue"},
]
BLOCKS = [
    {"role": "user", "content": "look"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "blue"}]},
]


def write(path: Path, text: str) -> Path:
    file = path / "transcript"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize(("messages", "name"), [(CHAT, "openai-chat"), (BLOCKS, "anthropic-messages")])
def test_formats_of_message_lists_are_distinguished(
    tmp_path: Path, messages: list[object], name: str, wrapped: bool, indent: int | None
) -> None:
    body = {"model": "m", "messages": messages} if wrapped else messages
    file = write(tmp_path, json.dumps(body, indent=indent))
    transcript = load(file)
    assert detect(file) == name
    assert [json.loads(item.message) for item in transcript.items] == messages


@pytest.mark.parametrize(("messages", "name"), [(CHAT, "openai-chat"), (BLOCKS, "anthropic-messages")])
def test_one_message_a_line_is_read(tmp_path: Path, messages: list[object], name: str) -> None:
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    transcript = load(write(tmp_path, lines), name)
    assert [json.loads(item.message) for item in transcript.items] == messages


@pytest.mark.parametrize(("messages", "name"), [(CHAT, "openai-chat"), (BLOCKS, "anthropic-messages")])
def test_the_format_of_json_lines_is_detected_although_the_first_message_is_plain_text(
    tmp_path: Path, messages: list[object], name: str
) -> None:
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    assert detect(write(tmp_path, lines)) == name


GEMINI = [{"role": "user", "parts": [{"text": "look"}]}, {"role": "model", "parts": [{"text": "blue"}]}]
PI = [{"role": "user", "content": "look"}, {"role": "toolResult", "toolCallId": "c", "content": []}]


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ([*GEMINI, *BLOCKS], "Gemini"),
        ([*CHAT, *GEMINI], "Gemini"),
        (PI, "pi or OpenClaw"),
        ([{"type": "function_call", "call_id": "c", "name": "f"}], "Responses"),
    ],
)
def test_messages_of_several_formats_are_refused_naming_the_closest_format(
    tmp_path: Path, document: object, named: str
) -> None:
    with pytest.raises(TranscriptError, match=named) as refused:
        detect(write(tmp_path, json.dumps(document, indent=1)))
    assert "openai-chat" in str(refused.value)


def test_messages_of_other_programs_are_not_read_as_a_format_that_is_named(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="of the format gemini, not openai-chat"):
        load(write(tmp_path, json.dumps(GEMINI)), "openai-chat")
    transcript = read(write(tmp_path, json.dumps(GEMINI)), "openai-chat")
    assert (transcript.items, transcript.skipped) == ([], {"message of the format Gemini": 2})


def test_messages_come_on_one_line_with_their_own_spelling(tmp_path: Path) -> None:
    file = write(tmp_path, '{"messages": [\n  {"role": "user",\n   "content": "a\\nb", "n": 1.50}\n]}')
    assert load(file).items[0].message == b'{"role": "user", "content": "a\\nb", "n": 1.50}'


def test_trajectories_become_chat_messages(tmp_path: Path) -> None:
    call = {"id": "c", "function": {"name": "bash", "arguments": "{}"}}
    history = [
        {"role": "user", "content": "fix it", "agent": "main"},
        {"role": "assistant", "content": "ls", "thought": "t", "action": "ls", "tool_calls": [call]},
        {"role": "tool", "content": "a.txt", "tool_call_ids": ["c"]},
        {"role": "assistant", "content": "ls", "tool_calls": "[{'id': 'd', 'function': {'name': 'bash'}}]"},
        {"role": "tool", "content": "a.txt", "tool_call_ids": "['d']"},
        {"agent": "main"},
    ]
    transcript = load(write(tmp_path, json.dumps({"history": history, "info": {}})))
    spoken = dialect("openai")
    readings = [spoken.read(item.message) for item in transcript.items]
    assert [reading.role for reading in readings] == ["user", "assistant", "tool", "assistant", "tool"]
    assert spoken.check(readings) == []
    assert transcript.skipped == {"entry without role": 1}


def test_invalid_messages_are_counted(tmp_path: Path) -> None:
    transcript = load(write(tmp_path, '[{"role":"user","content":"hi"}, 3, {}]'))
    assert len(transcript.items) == 1
    assert sum(transcript.skipped.values()) == 2


@pytest.mark.parametrize(
    "text", ["", "\n\n", "hello", "{}", "[]", "[1,2]", '{"a":1}\n{"b":2}\n', '{"messages":3}', "\x00"]
)
def test_a_file_that_is_nothing_known_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(TranscriptError, match="expected"):
        load(write(tmp_path, text))


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="openai-chat"):
        load(write(tmp_path, "[]"), "word")


def test_a_file_of_another_format_than_named_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError):
        load(write(tmp_path, "no json at all"), "swe-agent")


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        load(tmp_path / "nowhere")


PIECES = [
    *('{"type":"message"', '"payload":{}', '"role":"user"', ":", "}", "\n", "[", "]", ",", "null", '"'),
    *('{"uuid":1,"parentUuid":[]}', '{"type":"session","id":"s"}', '{"type":"response_item","payload":3}'),
    *('{"messages":[{}]}', '{"type":"message","message":{}}'),
]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.lists(st.sampled_from(PIECES), max_size=12).map("".join), name=st.sampled_from([None, *FORMATS])
)
def test_no_file_is_more_than_refused(tmp_path: Path, text: str, name: str | None) -> None:
    try:
        transcript = load(write(tmp_path, text), name)
    except TranscriptError:
        return
    read = dialect(transcript.message_format).read
    for item in transcript.items:
        assert b"\n" not in item.message
        read(item.message)
