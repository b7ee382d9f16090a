"""Transcripts of programs without a dialect: imported content and format detection."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from sidecar.cli.flo_files import read_sessions
from sidecar.messages.dialects import dialect
from sidecar.messages.importers import FORMATS, Transcript, TranscriptError, detect, load

ASKED, SAID, RESULT = "Where is the config?", "I look for it.", "conf/app.toml"

DEEP = "[" * 20_000 + "]" * 20_000


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "line", ['{"type":"user","role":"_user","message":%s}', '{"role":"a","odd":"b","content":%s}']
)
def test_no_depth_of_a_transcript_is_more_than_a_bad_line(tmp_path: Path, format: str, line: str) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_text(line % DEEP + "\n")
    with contextlib.suppress(TranscriptError):
        assert len(load(path, format).items) <= 1


GEMINI_CONTENTS = [
    {"role": "user", "parts": [{"text": ASKED}]},
    {
        "role": "model",
        "parts": [
            {"text": "hm", "thought": True},
            {"text": SAID},
            {"functionCall": {"name": "glob", "args": {"pattern": "*.toml"}}},
        ],
    },
    {"role": "user", "parts": [{"functionResponse": {"name": "glob", "response": {"output": RESULT}}}]},
    {"role": "model", "parts": [{"text": "There."}]},
]
GEMINI_SESSION = {
    "sessionId": "s",
    "projectHash": "h",
    "messages": [
        {"id": "1", "timestamp": "2031-04-02T10:00:00.000Z", "type": "user", "content": ASKED},
        {"id": "2", "timestamp": "2031-04-02T10:00:01.000Z", "type": "info", "content": "update"},
        {
            "id": "3",
            "timestamp": "2031-04-02T10:00:02.000Z",
            "type": "gemini",
            "content": SAID,
            "toolCalls": [
                {
                    "id": "glob-1",
                    "name": "glob",
                    "args": {"pattern": "*.toml"},
                    "result": [
                        {"functionResponse": {"id": "glob-1", "name": "glob", "response": {"output": RESULT}}}
                    ],
                    "status": "success",
                }
            ],
        },
        {"id": "4", "timestamp": "2031-04-02T10:00:03.000Z", "type": "gemini", "content": "There."},
    ],
}
UI_MESSAGES = [
    {"id": "u", "role": "user", "parts": [{"type": "text", "text": ASKED}]},
    {
        "id": "a",
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "text": "hm"},
            {"type": "text", "text": SAID},
            {
                "type": "tool-glob",
                "toolCallId": "c",
                "state": "output-available",
                "input": {"pattern": "*.toml"},
                "output": RESULT,
            },
            {"type": "step-start"},
            {"type": "text", "text": "There."},
        ],
    },
]
OLD_UI_MESSAGES = [
    {"id": "u", "role": "user", "content": ASKED},
    {
        "id": "a",
        "role": "assistant",
        "content": SAID,
        "toolInvocations": [
            {
                "state": "result",
                "toolCallId": "c",
                "toolName": "glob",
                "args": {"pattern": "*.toml"},
                "result": RESULT,
            }
        ],
    },
    {"id": "b", "role": "assistant", "content": "There."},
]
MODEL_MESSAGES = [
    {"role": "user", "content": ASKED},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": SAID},
            {"type": "tool-call", "toolCallId": "c", "toolName": "glob", "input": {"pattern": "*.toml"}},
        ],
    },
    {
        "role": "tool",
        "content": [
            {
                "type": "tool-result",
                "toolCallId": "c",
                "toolName": "glob",
                "output": {"type": "text", "value": RESULT},
            }
        ],
    },
    {"role": "assistant", "content": "There."},
]


def langchain(form: str) -> list[dict[str, Any]]:
    call = {"name": "glob", "args": {"pattern": "*.toml"}, "id": "c", "type": "tool_call"}
    told: list[tuple[str, dict[str, Any]]] = [
        ("human", {"content": ASKED}),
        ("ai", {"content": [{"type": "text", "text": SAID}], "tool_calls": [call], "id": "run-1"}),
        ("tool", {"content": RESULT, "tool_call_id": "c", "name": "glob"}),
        ("ai", {"content": "There."}),
    ]
    if form == "data":
        return [{"type": kind, "data": {"type": kind, **data}} for kind, data in told]
    if form == "plain":
        return [{"type": kind, "additional_kwargs": {}, **data} for kind, data in told]
    names = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
    return [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", names[kind]],
            "kwargs": {"type": kind, **data},
        }
        for kind, data in told
    ]


OPENCODE = {
    "info": {"id": "ses_1", "title": "config"},
    "messages": [
        {
            "info": {"id": "msg_1", "role": "user", "time": {"created": 1933070400000}},
            "parts": [{"type": "text", "text": ASKED}],
        },
        {
            "info": {"id": "msg_2", "role": "assistant", "time": {"created": 1933070401000}},
            "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "hm"},
                {"type": "text", "text": SAID},
                {
                    "type": "tool",
                    "callID": "c",
                    "tool": "glob",
                    "state": {"status": "completed", "input": {"pattern": "*.toml"}, "output": RESULT},
                },
                {"type": "step-finish"},
            ],
        },
        {
            "info": {"id": "msg_3", "role": "assistant", "time": {"created": 1933070402000}},
            "parts": [{"type": "text", "text": "There."}],
        },
    ],
}


def chatgpt(id: str = "conv") -> dict[str, Any]:
    def node(name: str, parent: str | None, role: str, content: object, **more: object) -> dict[str, Any]:
        author = {"role": role, "name": "glob" if role == "tool" else None}
        message = {"id": name, "author": author, "content": content, "create_time": 1933070400.5, **more}
        return {"id": name, "message": message, "parent": parent, "children": []}

    def text(*parts: str) -> dict[str, object]:
        return {"content_type": "text", "parts": list(parts)}

    code = {"content_type": "code", "language": "json", "text": '{"pattern": "*.toml"}'}
    nodes = [
        {"id": "root", "message": None, "parent": None, "children": ["u"]},
        node("u", "root", "user", text(ASKED)),
        node("other", "u", "assistant", text("An answer that was regenerated.")),
        node("thought", "u", "assistant", {"content_type": "thoughts", "thoughts": []}),
        node("said", "thought", "assistant", text(SAID), recipient="all"),
        node("call", "said", "assistant", code, recipient="file_search.glob"),
        node("result", "call", "tool", {"content_type": "execution_output", "text": RESULT}),
        node("end", "result", "assistant", text("There."), recipient="all"),
    ]
    mapping = {node["id"]: node for node in nodes}
    return {"title": "config", "conversation_id": id, "current_node": "end", "mapping": mapping}


def claude_ai(id: str = "conv") -> dict[str, Any]:
    attachment = {"file_name": "notes.txt", "extracted_content": "see conf"}
    stamp = "2031-04-02T10:00:00.000000Z"
    return {
        "uuid": id,
        "name": "config",
        "chat_messages": [
            {
                "uuid": "u",
                "sender": "human",
                "text": ASKED,
                "content": [{"type": "text", "text": ASKED}],
                "created_at": stamp,
                "attachments": [attachment],
            },
            {
                "uuid": "a",
                "sender": "assistant",
                "text": SAID,
                "created_at": stamp,
                "attachments": [],
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": SAID},
                    {"type": "tool_use", "id": None, "name": "glob", "input": {"pattern": "*.toml"}},
                    {"type": "tool_result", "name": "glob", "content": [{"type": "text", "text": RESULT}]},
                    {"type": "text", "text": "There."},
                ],
            },
        ],
    }


KIMI = [
    {"role": "_checkpoint", "id": 0},
    {"role": "user", "content": ASKED},
    {
        "role": "assistant",
        "content": [{"type": "think", "think": "hm"}, {"type": "text", "text": SAID}],
        "tool_calls": [
            {
                "type": "function",
                "id": "c",
                "function": {"name": "glob", "arguments": '{"pattern": "*.toml"}'},
            }
        ],
    },
    {"role": "tool", "content": RESULT, "tool_call_id": "c"},
    {"role": "_usage", "token_count": 99},
    {"role": "assistant", "content": "There."},
]
AIDER = f"""
# aider chat started at 2031-04-02 10:00:00

> Aider v0.86
> Repo-map: using 1024 tokens

#### {ASKED}
#### Please.

{SAID}

```toml
[app]
```

> Applied edit to {RESULT}
"""

SAMPLES: dict[str, tuple[str, str]] = {
    "gemini checkpoint": ("gemini", json.dumps(GEMINI_CONTENTS)),
    "gemini history": ("gemini", json.dumps({"history": GEMINI_CONTENTS}, indent=1)),
    "gemini request": ("gemini", json.dumps({"contents": GEMINI_CONTENTS})),
    "gemini session": ("gemini", json.dumps(GEMINI_SESSION, indent=2)),
    "ai sdk": ("ai-sdk", json.dumps({"id": "chat", "messages": UI_MESSAGES}, indent=2)),
    "ai sdk 4": ("ai-sdk", json.dumps(OLD_UI_MESSAGES)),
    "ai sdk for models": ("ai-sdk", json.dumps(MODEL_MESSAGES)),
    "langchain data": ("langchain", json.dumps(langchain("data"))),
    "langchain dumpd": ("langchain", json.dumps({"messages": langchain("dumpd")})),
    "langchain plain": ("langchain", json.dumps(langchain("plain"))),
    "opencode": ("opencode", json.dumps(OPENCODE, indent=2)),
    "kimi": ("kimi", "".join(json.dumps(row) + "\n" for row in KIMI)),
    "aider": ("aider", AIDER),
    "chatgpt": ("chatgpt", json.dumps([chatgpt()])),
    "chatgpt conversation": ("chatgpt", json.dumps(chatgpt(), indent=1)),
    "claude.ai": ("claude-ai", json.dumps([claude_ai()])),
}


def loaded(path: Path, text: str, format: str | None = None) -> Transcript:
    file = path / "transcript"
    file.write_text(text, "utf-8")
    return load(file, format)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_transcript_of_another_program_is_recognised_and_read_with_its_calls(
    tmp_path: Path, sample: str
) -> None:
    name, text = SAMPLES[sample]
    transcript = loaded(tmp_path, text)
    assert detect(tmp_path / "transcript") == name
    spoken = dialect("openai")
    readings = [spoken.read(item.message) for item in transcript.items]
    assert spoken.check(readings) == []
    said = " ".join(reading.text for reading in readings)
    assert ASKED in said
    assert SAID in said
    assert "hm" not in said.split()
    if sample != "aider":
        messages: list[dict[str, Any]] = [json.loads(item.message) for item in transcript.items]
        calls = [call for message in messages for call in message.get("tool_calls") or ()]
        results = [message for message in messages if message["role"] == "tool"]
        assert [json.loads(call["function"]["arguments"]) for call in calls] == [{"pattern": "*.toml"}]
        assert [result["content"] for result in results] == [RESULT]
        assert results[0]["tool_call_id"] == calls[0]["id"]
        assert [message["role"] for message in messages if message["role"] != "tool"][-1] == "assistant"
        assert messages[-1]["content"] == "There." or sample == "ai sdk 4"
    data = text.encode()
    for item in transcript.items:
        assert 0 <= item.span.start < item.span.end <= len(data)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_transcript_is_never_read_as_the_format_of_another_program(tmp_path: Path, sample: str) -> None:
    name, text = SAMPLES[sample]
    lists = {"openai-chat", "anthropic-messages", "ai-sdk", "langchain"}
    for other in set(FORMATS) - {name}:
        if {name, other} <= lists:  # their plain messages are the same; calls are not
            with contextlib.suppress(TranscriptError):
                read = dialect("openai").read
                transcript = loaded(tmp_path, text, other)
                assert not any(read(item.message).calls for item in transcript.items), (sample, other)
        else:
            with pytest.raises(TranscriptError):
                loaded(tmp_path, text, other)


def test_a_log_of_gemini_cli_is_read_as_what_it_came_to(tmp_path: Path) -> None:
    answered = {"functionResponse": {"response": {"output": RESULT}}}
    call = {"id": "glob-1", "name": "glob", "args": {}, "result": [answered]}
    rows: list[dict[str, Any]] = [
        {"sessionId": "s", "projectHash": "h", "kind": "main"},
        {"id": "1", "type": "user", "content": [{"text": ASKED}]},
        {"$set": {"lastUpdated": "2031-04-02T10:00:00.000Z"}},
        {"id": "2", "type": "gemini", "content": ""},
        {"id": "2", "type": "gemini", "content": SAID, "toolCalls": [call]},
        {"id": "3", "type": "user", "content": "Something else"},
        {"id": "4", "type": "gemini", "content": "No."},
        {"$rewindTo": "3"},
        {"id": "5", "type": "model", "parts": [{"text": "There."}]},
    ]
    transcript = loaded(tmp_path, "".join(json.dumps(row) + "\n" for row in rows) + '{"id": "6", "ty')
    messages = [json.loads(item.message) for item in transcript.items]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert [message["content"] for message in messages[1:]] == [SAID, RESULT, "There."]
    assert transcript.skipped == {"row that is no message": 2, "torn last line": 1}


def test_a_session_of_qwen_code_is_not_taken_for_one_of_claude_code(tmp_path: Path) -> None:
    message = {"role": "user", "parts": [{"text": ASKED}]}
    row = {"uuid": "1", "parentUuid": None, "type": "user", "message": message}
    with pytest.raises(TranscriptError, match="Qwen Code"):
        loaded(tmp_path, json.dumps(row) + "\n")


def test_times_and_ids_are_kept(tmp_path: Path) -> None:
    first = [
        loaded(tmp_path, SAMPLES[sample][1]).items[0]
        for sample in ("gemini session", "opencode", "chatgpt", "claude.ai", "aider")
    ]
    assert [item.message_id for item in first] == ["1", "msg_1", "u", "u", None]
    assert all(item.timestamp_ms and item.timestamp_ms > 1_900_000_000_000 for item in first)


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    skipped = {sample: loaded(tmp_path, text).skipped for sample, (_, text) in SAMPLES.items()}
    assert skipped["gemini session"] == {"info": 1}
    assert skipped["chatgpt"] == {"other branch": 1, "thoughts": 1}
    assert skipped["kimi"] == {"_checkpoint": 1, "_usage": 1}
    assert skipped["aider"] == {"start of a chat": 1, "note of Aider": 3}


def test_a_result_whose_call_is_missing_is_left_out(tmp_path: Path) -> None:
    transcript = loaded(tmp_path, json.dumps([GEMINI_CONTENTS[0], *GEMINI_CONTENTS[2:]]))
    assert transcript.skipped == {"result without its call": 1}
    assert len(transcript.items) == 2


def test_parallel_calls_of_one_tool_without_ids_are_answered_in_order(tmp_path: Path) -> None:
    calls = [{"functionCall": {"name": "glob", "args": {"pattern": name}}} for name in "ab"]
    results = [{"functionResponse": {"name": "glob", "response": {"output": name}}} for name in "ab"]
    rows = [GEMINI_CONTENTS[0], {"role": "model", "parts": calls}, {"role": "user", "parts": results}]
    messages = [json.loads(item.message) for item in loaded(tmp_path, json.dumps(rows)).items]
    asked = {
        call["id"]: json.loads(call["function"]["arguments"])["pattern"] for call in messages[1]["tool_calls"]
    }
    assert [(asked[result["tool_call_id"]], result["content"]) for result in messages[2:]] == [
        ("a", "a"),
        ("b", "b"),
    ]


def test_images_are_kept(tmp_path: Path) -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    rows = [{"role": "user", "parts": [{"text": ASKED}, image]}, GEMINI_CONTENTS[-1]]
    first = json.loads(loaded(tmp_path, json.dumps(rows)).items[0].message)
    assert [part["type"] for part in first["content"]] == ["text", "image_url"]
    assert first["content"][1]["image_url"]["url"] == "data:image/png;base64,AAAA"


@pytest.mark.parametrize("make", [chatgpt, claude_ai])
def test_an_export_of_several_conversations_becomes_several_sessions(tmp_path: Path, make: Any) -> None:
    file = tmp_path / "conversations.json"
    empty = {**make("empty"), "chat_messages": []} if make is claude_ai else {**make("empty"), "mapping": {}}
    file.write_text(json.dumps([make("one"), make("two"), empty]))
    with pytest.raises(TranscriptError, match=r"3 conversations.*sessions import"):
        load(file)
    found = read_sessions(file)
    assert [context.session_id for context, _ in found] == ["one", "two", "empty"]
    assert [bool(context.messages) for context, _ in found] == [True, True, False]


@pytest.mark.parametrize(
    "mixed",
    [
        [*UI_MESSAGES, *GEMINI_CONTENTS],
        [*langchain("data"), *UI_MESSAGES],
        [
            {"role": "user", "content": ASKED},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
            *UI_MESSAGES,
        ],
    ],
)
def test_messages_of_several_programs_are_refused(tmp_path: Path, mixed: list[object]) -> None:
    with pytest.raises(TranscriptError, match="is in the format of"):
        loaded(tmp_path, json.dumps(mixed))
