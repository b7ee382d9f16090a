"""Session files of agent runtimes are imported as the conversations they contain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sidecar.messages.contract import Usage
from sidecar.messages.dialects import dialect
from sidecar.messages.importers import Transcript, load


def write(path: Path, *rows: object) -> Path:
    file = path / "session.jsonl"
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return file


def texts(transcript: Transcript) -> list[str]:
    read = dialect(transcript.message_format).read
    return [read(item.message).text for item in transcript.items]


def claude(uuid: str, parent: str | None, role: str, content: object, **members: object) -> dict[str, object]:
    message = {"role": role, "content": content, "id": f"msg-{uuid}", "usage": {"input_tokens": 1}}
    stamp = "2026-01-02T03:04:05.678Z"
    return {
        "type": role,
        "uuid": uuid,
        "parentUuid": parent,
        "timestamp": stamp,
        "message": message,
        **members,
    }


def entry(id_: str, parent: str | None, role: str, text: str) -> dict[str, object]:
    stamp = "2026-01-02T03:04:05Z"
    message = {"role": role, "content": [{"type": "text", "text": text}], "timestamp": 5}
    return {"type": "message", "id": id_, "parentId": parent, "timestamp": stamp, "message": message}


PI_HEADER = {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-01-02T03:04:05Z", "cwd": "/w"}


def item(payload: dict[str, object]) -> dict[str, object]:
    return {"timestamp": "2026-01-02T03:04:05Z", "type": "response_item", "payload": payload}


def event(payload: dict[str, object]) -> dict[str, object]:
    return {"timestamp": "2026-01-02T03:04:05Z", "type": "event_msg", "payload": payload}


def spoken(role: str, text: str) -> dict[str, object]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def test_claude_rows_become_messages_of_role_and_content(tmp_path: Path) -> None:
    transcript = load(
        write(tmp_path, claude("a", None, "user", "hi"), claude("b", "a", "assistant", "hello"))
    )
    assert transcript.message_format == "anthropic"
    assert [json.loads(i.message) for i in transcript.items] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
    ]
    assert (transcript.items[0].message_id, transcript.items[0].timestamp_ms) == ("a", 1767323045678)


def test_claude_sidechains_and_other_rows_are_counted(tmp_path: Path) -> None:
    rows = [
        {"type": "summary", "summary": "x", "leafUuid": "b"},
        claude("a", None, "user", "hi"),
        claude("s", None, "user", "sub task", isSidechain=True),
        {"type": "system", "uuid": "y", "parentUuid": "a", "subtype": "info", "content": "z"},
        claude("b", "y", "assistant", "hello"),
    ]
    transcript = load(write(tmp_path, *rows))
    assert texts(transcript) == ["hi", "hello"]
    assert transcript.skipped == {"summary": 1, "sidechain": 1, "system: info": 1}


def test_claude_branches_that_were_left_are_not_imported(tmp_path: Path) -> None:
    rows = [
        claude("a", None, "user", "first"),
        claude("b", "a", "assistant", "reply"),
        claude("c", "b", "user", "wrong way"),
        claude("d", "c", "assistant", "wrong reply"),
        claude("e", "b", "user", "right way"),
    ]
    transcript = load(write(tmp_path, *rows))
    assert texts(transcript) == ["first", "reply", "right way"]
    assert transcript.skipped == {"other branch": 2}


def test_claude_results_of_parallel_calls_are_all_imported(tmp_path: Path) -> None:
    def use(name: str) -> list[object]:
        return [{"type": "tool_use", "id": name, "name": "look", "input": {}}]

    def result(name: str) -> list[object]:
        return [{"type": "tool_result", "tool_use_id": name, "content": "seen"}]

    rows = [
        claude("a", None, "user", "look twice"),
        claude("b", "a", "assistant", use("t1")),
        claude("c", "b", "assistant", use("t2")),
        claude("d", "b", "user", result("t1")),
        claude("e", "c", "user", result("t2")),
        claude("f", "e", "assistant", "seen"),
    ]
    transcript = load(write(tmp_path, *rows))
    spoken_in = dialect("anthropic")
    assert len(transcript.items) == 6
    assert spoken_in.check([spoken_in.read(i.message) for i in transcript.items]) == []


def test_claude_history_before_a_compaction_is_kept_and_its_summary_not(tmp_path: Path) -> None:
    rows = [
        claude("a", None, "user", "first"),
        {
            "type": "system",
            "uuid": "k",
            "parentUuid": None,
            "logicalParentUuid": "a",
            "subtype": "compact_boundary",
        },
        claude("b", "k", "user", "so far", isCompactSummary=True),
        claude("c", "b", "user", "go on"),
    ]
    transcript = load(write(tmp_path, *rows))
    assert texts(transcript) == ["first", "go on"]


def test_codex_items_are_imported_byte_for_byte(tmp_path: Path) -> None:
    line = '{"timestamp":"x","type":"response_item","payload":{"type":"message", "n": 1.50}}\n'
    file = write(tmp_path, {"type": "session_meta", "timestamp": "x", "payload": {"id": "s"}})
    file.write_text(file.read_text() + line)
    transcript = load(file)
    assert [i.message for i in transcript.items] == [b'{"type":"message", "n": 1.50}']
    assert transcript.skipped == {"session_meta": 1}


def test_codex_events_are_used_only_where_no_item_says_it(tmp_path: Path) -> None:
    rows = [
        event({"type": "user_message", "message": "hi"}),
        item(spoken("user", "hi")),
        event({"type": "agent_message", "message": "never an item"}),
        event({"type": "token_count"}),
    ]
    transcript = load(write(tmp_path, *rows))
    assert texts(transcript) == ["hi", "never an item"]
    assert transcript.skipped == {"event_msg: user_message": 1, "event_msg: token_count": 1}


def test_codex_files_of_events_alone_keep_repeated_messages(tmp_path: Path) -> None:
    rows = [event({"type": "user_message", "message": "continue"}) for _ in range(2)]
    assert texts(load(write(tmp_path, *rows))) == ["continue", "continue"]


def test_codex_calls_of_the_old_form_get_ids(tmp_path: Path) -> None:
    rows = [
        item(spoken("user", "hi")),
        item({"type": "tool_call", "function": {"name": "run"}, "arguments": {"command": "ls"}}),
        item({"type": "tool_result", "name": "run", "result": {"stdout": "a"}}),
    ]
    transcript = load(write(tmp_path, *rows))
    spoken_in = dialect("openai-responses")
    readings = [spoken_in.read(i.message) for i in transcript.items]
    assert readings[1].calls[0].name == "run"
    assert spoken_in.check(readings) == []


def test_codex_files_of_bare_items_are_read(tmp_path: Path) -> None:
    rows = [
        {"id": "s", "timestamp": "2025-06-01T00:00:00Z", "instructions": None, "git": {}},
        spoken("user", "hi"),
        {"record_type": "state"},
        spoken("assistant", "hello"),
    ]
    transcript = load(write(tmp_path, *rows))
    assert transcript.message_format == "openai-responses"
    assert texts(transcript) == ["hi", "hello"]


def test_pi_messages_are_imported_byte_for_byte(tmp_path: Path) -> None:
    file = write(tmp_path, PI_HEADER)
    message = '{"role": "user", "content": "hi", "timestamp": 5, "x": 1.50}'
    row = (
        '{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:05Z","message":'
        + message
        + "}\n"
    )
    file.write_text(file.read_text() + row)
    transcript = load(file)
    assert transcript.message_format == "openclaw"
    assert transcript.items[0].message.decode() == message
    assert transcript.items[0].message_id == "a"


def test_pi_imports_the_newest_branch(tmp_path: Path) -> None:
    rows = [
        PI_HEADER,
        entry("a", None, "user", "first"),
        entry("b", "a", "assistant", "reply"),
        entry("c", "b", "user", "wrong way"),
        entry("d", "b", "user", "right way"),
    ]
    transcript = load(write(tmp_path, *rows))
    assert texts(transcript) == ["first", "reply", "right way"]
    assert transcript.skipped == {"session": 1, "other branch": 1}


def test_pi_files_without_ids_are_lists(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [PI_HEADER]
    for text in ("one", "two", "three"):
        row = entry("", None, "user", text)
        rows.append({name: value for name, value in row.items() if name not in ("id", "parentId")})
    assert texts(load(write(tmp_path, *rows))) == ["one", "two", "three"]


def test_pi_compactions_count_only_where_they_are_all_that_is_left(tmp_path: Path) -> None:
    compaction = {"type": "compaction", "id": "k", "parentId": "a", "timestamp": "2026-01-02T03:04:05Z"}
    compaction |= {"summary": "so far", "tokensBefore": 9}
    behind = load(write(tmp_path, PI_HEADER, entry("a", None, "user", "first"), compaction))
    alone = load(
        write(tmp_path, PI_HEADER, {**compaction, "parentId": None}, entry("b", "k", "user", "go on"))
    )
    assert texts(behind) == ["first"]
    assert texts(alone) == ["so far", "go on"]


def test_pi_custom_messages_are_messages_and_custom_rows_are_not(tmp_path: Path) -> None:
    stamp = "2026-01-02T03:04:05Z"
    rows = [
        PI_HEADER,
        {"type": "custom", "id": "x", "parentId": None, "timestamp": stamp, "customType": "ui", "data": {}},
        {
            "type": "custom_message",
            "id": "y",
            "parentId": "x",
            "timestamp": stamp,
            "customType": "note",
            "content": "n",
        },
        entry("a", "y", "user", "hi"),
    ]
    transcript = load(write(tmp_path, *rows))
    assert texts(transcript) == ["n", "hi"]
    assert json.loads(transcript.items[0].message)["role"] == "custom"
    assert transcript.skipped == {"session": 1, "custom": 1}


@pytest.mark.parametrize("torn", ['{"type":"mess', '{"type":"message","id":"z"', '"'])
def test_a_torn_last_line_is_counted(tmp_path: Path, torn: str) -> None:
    file = write(tmp_path, PI_HEADER, entry("a", None, "user", "hi"))
    file.write_text(file.read_text() + torn)
    transcript = load(file)
    assert texts(transcript) == ["hi"]
    assert transcript.skipped["torn last line"] == 1


def test_bad_lines_are_counted_and_the_rest_is_imported(tmp_path: Path) -> None:
    file = write(tmp_path, PI_HEADER)
    good = json.dumps(entry("a", None, "user", "hi")).encode()
    file.write_bytes(file.read_bytes() + b"\xff\xfe{}\n[1]\n\n{broken}\n" + good + b"\n")
    transcript = load(file)
    assert texts(transcript) == ["hi"]
    assert transcript.skipped["bad line"] == 3


def test_a_lone_surrogate_keeps_its_bytes(tmp_path: Path) -> None:
    file = write(tmp_path, PI_HEADER)
    row = '{"type":"message","id":"a","message":{"role":"user","content":"cut \\ud83d"},"timestamp":"x"}\n'
    file.write_text(file.read_text() + row)
    assert load(file).items[0].message == b'{"role":"user","content":"cut \\ud83d"}'


def test_a_subagent_s_own_file_is_imported_though_every_row_is_a_sidechain(tmp_path: Path) -> None:
    rows = [
        claude("a", None, "user", "look", isSidechain=True, agentId="x"),
        claude("b", "a", "assistant", "blue", isSidechain=True, agentId="x"),
    ]
    transcript = load(write(tmp_path, *rows))
    assert (texts(transcript), transcript.skipped) == (["look", "blue"], {})


def test_claude_rows_without_ids_of_their_own_are_a_list(tmp_path: Path) -> None:
    rows = [{"type": "system", "subtype": "init", "session_id": "s"}]
    for role, text in (("user", "look"), ("assistant", "blue")):
        rows.append({"type": role, "session_id": "s", "message": {"role": role, "content": text}})
    transcript = load(write(tmp_path, *rows))
    assert (texts(transcript), transcript.skipped) == (["look", "blue"], {"system: init": 1})


def test_the_usage_of_an_answer_is_reported_once_however_many_rows_repeat_it(tmp_path: Path) -> None:
    def usage(output: int) -> dict[str, object]:
        cached = {"cache_creation_input_tokens": 30, "cache_read_input_tokens": 60}
        return {"input_tokens": 10, "output_tokens": output, **cached}

    thought, said, odd = (claude(name, None, "assistant", "a") for name in ("b", "c", "d"))
    for row, output in ((thought, 2), (said, 9)):
        row["message"] = {"role": "assistant", "id": "msg-1", "content": "a", "usage": usage(output)}
    odd["message"] = {"role": "assistant", "id": "msg-2", "content": "a", "usage": {"input_tokens": "many"}}
    said["parentUuid"], odd["parentUuid"], thought["parentUuid"] = "b", "c", "a"
    transcript = load(write(tmp_path, claude("a", None, "user", "q"), thought, said, odd))
    assert [item.usage for item in transcript.items[1:]] == [None, Usage(100, 9, 60, 30), None]


def test_codex_usage_belongs_to_the_answer_in_front_of_it(tmp_path: Path) -> None:
    def count(tokens: int) -> dict[str, object]:
        usage = {"input_tokens": tokens, "cached_input_tokens": tokens // 2, "output_tokens": 5}
        return event({"type": "token_count", "info": {"last_token_usage": usage}})

    rows = [item(spoken("user", "q")), count(0), item(spoken("assistant", "a")), count(100), count(100)]
    rows += [event({"type": "token_count", "info": None}), item(spoken("user", "r"))]
    transcript = load(write(tmp_path, *rows))
    assert [found.usage for found in transcript.items[1:]] == [Usage(100, 5, 50), None]
