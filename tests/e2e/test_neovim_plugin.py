"""The plugin for Neovim, headless: its commands, and what it shows in transcripts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.outside.programs import SERVER, neovim
from tests.e2e.transcript_files import FILES, OUTPUT, THANKS, lines, openai
from tests.wire.harness import notification, request

PLUGIN = Path(__file__).parents[2] / "clients" / "neovim"

Json = dict[str, Any]


def play(home: Path, *steps: Json, server: str = SERVER) -> Json:
    """What each step gave, in order."""
    script = home / "script.json"
    script.write_text(json.dumps(steps), encoding="utf-8")
    return neovim("plugin.lua", home, PLUGIN=str(PLUGIN), SCRIPT=str(script), SERVER=server)


def run(command: str) -> Json:
    return {"do": "run", "command": command}


def ingest(session: str, *messages: Json) -> Json:
    params = {"sessionId": session, "sessionKey": f"key-{session}", "messages": messages}
    return {"do": "request", "method": "context/ingestBatch", "params": params}


def whole(message: Json) -> Json:
    """The message without members that are null, which Neovim's client leaves out."""
    return {name: value for name, value in message.items() if value is not None}


def test_the_commands_list_show_search_compact_and_check_sessions(tmp_path: Path) -> None:
    long = [
        {"role": role, "content": f"{role} {number} speaks of granite {'and basalt ' * 300}"}
        for number in range(20)
        for role in ("user", "assistant")
    ]
    played = play(
        tmp_path,
        run("Context"),
        ingest("stones", *openai()),
        ingest("long/1", *long),
        run("Context"),
        {"do": "complete", "line": "Context key-"},
        run("Context key-stones"),
        run("ContextSearch thanks"),
        {"do": "quickfix"},
        run("cc 1"),
        run("ContextCompact key-long/1"),
        run("Context long/1"),
        {"do": "colours"},
        run("ContextDoctor"),
    )
    empty, _, _, listed, completed, shown, _, quickfix, opened, _, compacted, coloured, doctor = played[
        "results"
    ]
    assert empty["lines"] == ["There are no stored sessions in this namespace."]
    assert [line.split()[0] for line in listed["lines"]] == ["key-long/1", "key-stones"]
    assert "5 messages" in listed["lines"][1]
    assert sorted(completed) == ["key-long/1", "key-stones"]
    text = "\n".join(shown["lines"])
    assert "recent" in text and "5 messages" in text and "sent" in text
    assert OUTPUT.splitlines()[0] in text and "[tool]" in text
    assert [item["text"].split(":")[0] for item in quickfix["items"]] == ["user"]
    assert (opened["name"], opened["line"]) == ("context-sidecar://session/stones", len(openai()))
    assert [whole(json.loads(line)) for line in opened["lines"]] == [whole(message) for message in openai()]
    assert any(line.startswith("Compacted from ") for line in played["said"]), played["said"]
    assert "summary" in "\n".join(compacted["lines"]) and "summarised" in "\n".join(compacted["lines"])
    assert re.search(
        r"^t1 +summarised +\d+ tokens  user: user 0 speaks of granite", "\n".join(compacted["lines"]), re.M
    )
    assert re.fullmatch(r"\d+ tokens, up to turn t20", compacted["lines"][0])
    assert not any("[ctx:" in line for line in compacted["lines"])
    made = [text for group, text in coloured if group == "ContextSidecarMade"]
    assert made[0] == "[summary of earlier messages]" and "Summary" in made[1]
    assert ["ContextSidecarHeading", "[user]"] in coloured
    assert doctor["lines"][0] == "Everything is well."


def test_what_was_searched_for_is_marked_in_the_list_and_in_the_session(tmp_path: Path) -> None:
    said = {"role": "user", "content": "Tides turn; the CLOCKS went forward."}
    played = play(
        tmp_path,
        ingest("stones", *openai(), said),
        run("ContextSearch clocks"),
        {"do": "marked"},
        run("cc 1"),
        {"do": "cursor_at", "word": "CLOCKS"},
        {"do": "marked"},
    )
    assert played["results"][2] == ["CLOCKS"]
    assert played["results"][5] == ["CLOCKS"]


def test_looking_at_a_session_leaves_it_as_it_is_for_its_agent(tmp_path: Path) -> None:
    asked = {"do": "refusal", "method": "context/explain", "params": {"sessionId": "stones", "turnId": "t1"}}
    listed = {"do": "request", "method": "session/list", "params": {}}
    played = play(tmp_path, ingest("stones", *openai()), listed, run("Context key-stones"), asked, listed)
    _, before, shown, explained, after = played["results"]
    assert "5 messages" in "\n".join(shown["lines"])
    assert "no answer of that name is remembered" in json.dumps(explained)
    assert after == before


def another(session: str, *messages: Json) -> Json:
    """What another process on the store appends."""
    start = {"initializationOptions": {"contextEngine": {"namespace": "default"}}, "capabilities": {}}
    said = [
        request(0, "initialize", {"processId": None, **start}),
        *(
            request(number, "context/ingest", {"sessionId": session, "message": message})
            for number, message in enumerate(messages, 1)
        ),
        request("end", "shutdown"),
        notification("exit"),
    ]
    return {"do": "another", "input": "".join(json.dumps(message) + "\n" for message in said)}


def test_what_is_shown_follows_what_another_process_does(tmp_path: Path) -> None:
    first, second, third = ({"role": "user", "content": f"question {number}"} for number in (1, 2, 3))
    played = play(
        tmp_path,
        another("s", first),
        run("Context"),
        another("other", first),
        {"do": "shown", "words": "other"},
        run("Context s"),
        another("s", second),
        {"do": "shown", "words": "question 2"},
        run("edit context-sidecar://session/s"),
        another("s", third),
        {"do": "shown", "words": "question 3"},
    )
    assert [line.split()[0] for line in played["results"][3]["lines"]] == ["other", "s"]
    assert "2 messages" in "\n".join(played["results"][6]["lines"])
    assert [json.loads(line)["content"] for line in played["results"][9]["lines"]] == [
        "question 1",
        "question 2",
        "question 3",
    ]
    assert played["said"] in ([], {})


def test_a_lens_opens_what_the_model_sees_up_to_its_turn(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        ingest("stones", *openai()),
        run("edit context-sidecar://session/stones"),
        {"do": "click", "lens": 1},
        run("edit context-sidecar://session/stones"),
        {"do": "click", "lens": 2},
    )
    first, second = played["results"][2], played["results"][4]
    assert "Context of stones at t1" in first["name"]
    assert any(line.startswith("[t1 sent: ") for line in first["lines"])
    assert OUTPUT.splitlines()[0] in first["lines"]
    assert THANKS not in first["lines"] and THANKS in second["lines"]


@pytest.mark.parametrize("name", FILES)
def test_a_transcript_shows_tokens_and_answers_as_a_language_does(tmp_path: Path, name: str) -> None:
    file = tmp_path / "session 1.jsonl"
    file.write_text(FILES[name], encoding="utf-8")
    rows = FILES[name].splitlines()
    line = next(number for number, row in enumerate(rows) if "a.txt" in row)
    place = {"position": {"line": line, "character": rows[line].index("a.txt")}}
    played = play(
        tmp_path,
        run(f"edit {str(file).replace(' ', chr(92) + ' ')}"),
        {"do": "tokens", "count": 5},
        {"do": "language", "method": "textDocument/documentSymbol", "params": {}},
        {"do": "language", "method": "textDocument/definition", "params": place},
        {"do": "language", "method": "textDocument/hover", "params": place},
        {"do": "language", "method": "textDocument/foldingRange", "params": {}},
        {"do": "language", "method": "textDocument/codeLens", "params": {}},
        run("ContextTokens"),
        {"do": "tokens", "count": 0},
    )
    _, tokens, symbols, definition, hover, folds, lenses, _, hidden = played["results"]
    assert all(shown.endswith("tokens") for _, shown in tokens)
    assert [symbol["name"].split(":")[0] for symbol in symbols] == ["t1", "t2"]
    call = symbols[0]["children"][1]["range"]["start"]["line"]
    assert [found["range"]["start"]["line"] for found in definition] == [call]
    assert "`bash`" in hover["contents"]["value"]
    assert folds and len(lenses) == 2
    assert hidden == [] or hidden == {}
    assert played["said"] in ([], {})


def test_tokens_and_diagnostics_follow_what_is_typed(tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text(lines(*openai()), encoding="utf-8")
    played = play(
        tmp_path,
        run(f"edit {file}"),
        {"do": "tokens", "count": 5},
        run("2delete"),
        {"do": "diagnostics", "count": 1},
        run("doautocmd TextChanged"),
        {"do": "tokens", "count": 4},
    )
    ((line, code, _),) = played["results"][3]
    assert (line, code) == (1, "result-without-call")


def test_without_the_sidecar_files_open_and_commands_say_what_to_install(tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text(lines(*openai()), encoding="utf-8")
    played = play(tmp_path, run(f"edit {file}"), run("Context"), server=str(tmp_path / "none"))
    assert len(played["results"][0]["lines"]) == 5
    assert len(played["said"]) == 1 and "uv tool install" in played["said"][0]
