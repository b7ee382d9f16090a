import json
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client_kit import LIMIT_S, PROGRAM, Message, conversation, run_cli, write_lines
from tests.engine_gallery import GALLERY

TURNS = 8
RESULT = "line of a log that goes on and on\n" * 25


def openai_chat(folder: Path) -> Path:
    def rows() -> Iterator[Message]:
        for turn in range(TURNS):
            calls = [
                {
                    "id": f"c{turn}-{n}",
                    "type": "function",
                    "function": {"name": "read", "arguments": f'{{"n": {n}}}'},
                }
                for n in range(2)
            ]
            yield {"role": "user", "content": f"第{turn}个问题: what is in the log?"}
            yield {"role": "assistant", "content": None, "tool_calls": calls}
            for call in calls:
                yield {"role": "tool", "tool_call_id": call["id"], "content": RESULT}
            yield {"role": "assistant", "content": f"Nothing of note in log {turn}."}

    return write_lines(folder / "chat.jsonl", rows())


def anthropic_messages(folder: Path) -> Path:
    messages: list[Message] = []
    for turn in range(TURNS):
        use = {"type": "tool_use", "id": f"toolu_{turn}", "name": "read", "input": {"n": turn}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": RESULT}
        messages += [
            {"role": "user", "content": f"Question {turn}?"},
            {"role": "assistant", "content": [{"type": "text", "text": "I will look."}, use]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": [{"type": "text", "text": f"Nothing in log {turn}."}]},
        ]
    file = folder / "request.json"
    file.write_text(json.dumps({"model": "some-model", "messages": messages}), encoding="utf-8")
    return file


def codex(folder: Path) -> Path:
    def items() -> Iterator[Message]:
        for turn in range(TURNS):
            asked = [{"type": "input_text", "text": f"Question {turn}?"}]
            told = [{"type": "output_text", "text": f"Nothing in log {turn}."}]
            call = {"type": "function_call", "name": "read", "arguments": "{}", "call_id": f"c{turn}"}
            yield {"type": "message", "role": "user", "content": asked}
            yield call
            yield {"type": "function_call_output", "call_id": f"c{turn}", "output": RESULT}
            yield {"type": "message", "role": "assistant", "content": told}

    stamp = "2031-04-02T10:00:00.000Z"
    rows: list[Message] = [{"timestamp": stamp, "type": "session_meta", "payload": {"id": "x"}}]
    rows += [{"timestamp": stamp, "type": "response_item", "payload": item} for item in items()]
    return write_lines(folder / "rollout.jsonl", rows)


def pi(folder: Path) -> Path:
    def messages() -> Iterator[Message]:
        for turn in range(TURNS):
            call = {"type": "toolCall", "id": f"c{turn}", "name": "read", "arguments": {"n": turn}}
            yield {"role": "user", "content": [{"type": "text", "text": f"Question {turn}?"}]}
            yield {"role": "assistant", "content": [call], "model": "m"}
            yield {
                "role": "toolResult",
                "toolCallId": f"c{turn}",
                "toolName": "read",
                "content": [{"type": "text", "text": RESULT}],
            }
            yield {"role": "assistant", "content": [{"type": "text", "text": f"Nothing in {turn}."}]}

    stamp = "2031-04-02T10:00:00.000Z"
    rows: list[Message] = [{"type": "session", "version": 3, "id": "x", "timestamp": stamp, "cwd": "/"}]
    parent: str | None = None
    for number, message in enumerate(messages()):
        id = f"{number:08x}"
        rows.append({"type": "message", "id": id, "parentId": parent, "timestamp": stamp, "message": message})
        parent = id
    return write_lines(folder / "pi.jsonl", rows)


def heed_interrupts() -> None:
    """Tests that run in the background of a shell ignore interrupts, and what they start would too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


FORMATS = {
    "openai-chat": (openai_chat, "openai"),
    "anthropic-messages": (anthropic_messages, "anthropic"),
    "codex": (codex, "openai-responses"),
    "pi": (pi, "openclaw"),
}


def replayed(state: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    result = run_cli("replay", *arguments, "--json", state_dir=state)
    assert result.returncode == code, result.stderr + result.stdout[-2000:]
    return json.loads(result.stdout)


@pytest.mark.parametrize("engine", ["full", "default"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_session_in_every_dialect_is_replayed_without_fault(name: str, engine: str, tmp_path: Path) -> None:
    make, message_format = FORMATS[name]
    found = replayed(tmp_path, str(make(tmp_path)), "--engine", engine, "--budget", "1500")
    summary = found["summary"]
    assert found["ok"] is True
    assert (found["messageFormat"], found["engine"], found["budget"]) == (message_format, engine, 1500)
    assert (summary["turns"], summary["answers"]) == (TURNS, TURNS * 2)
    assert summary["fullTokens"] > 1500 >= summary["largestAnswer"] / 1.02
    assert summary["epochs"] > 1
    assert len(found["turns"]) == TURNS
    assert [call["turn"] for call in found["calls"]] == [t + 1 for t in range(TURNS) for _ in range(2)]
    assert all(call["problems"] == [] for call in found["calls"])


@pytest.mark.parametrize("name", FORMATS)
def test_whole_turns_can_be_committed_instead(name: str, tmp_path: Path) -> None:
    path = str(FORMATS[name][0](tmp_path))
    found = replayed(tmp_path, path, "--engine", "full", "--budget", "1500", "--style", "commit")
    assert found["ok"] is True
    assert found["summary"]["timings"]["commitTurn"]["count"] == TURNS
    assert "ingest" not in found["summary"]["timings"]


def test_the_model_may_be_called_once_a_turn(tmp_path: Path) -> None:
    path = str(openai_chat(tmp_path))
    found = replayed(tmp_path, path, "--engine", "full", "--assemble-once-per-turn")
    assert found["summary"]["answers"] == TURNS


def test_with_room_for_all_every_answer_extends_the_one_before(tmp_path: Path) -> None:
    found = replayed(tmp_path, str(openai_chat(tmp_path)), "--engine", "full", "--budget", "1m")
    summary = found["summary"]
    assert (summary["prefixKept"], summary["wholePrefixes"], summary["epochs"]) == (1.0, 1.0, 1)
    assert summary["compactions"] == 0


def test_a_message_that_alone_is_too_large_is_refused_and_answered_on_retry(tmp_path: Path) -> None:
    rows = [{"role": "user", "content": "word " * 800}, {"role": "assistant", "content": "yes"}]
    path = write_lines(tmp_path / "large.jsonl", rows)
    found = replayed(tmp_path, str(path), "--engine", "full", "--budget", "200", code=1)
    call, summary = found["calls"][0], found["summary"]
    assert call["overflow"]["required"] > 800
    assert call["overflow"]["needless"] is False
    assert (call["budget"], call["answered"]) == (200, False)
    assert (summary["asked"], summary["answers"], summary["overflows"]) == (1, 0, 1)
    assert (summary["largestAnswer"], summary["largestRetry"]) == (0, call["assembledTokens"])
    assert found["turns"][0]["withinBudget"] is False
    assert (found["ok"], found["verdict"]["grade"]) == (False, "short")


def test_a_recording_that_asks_nothing_is_not_called_good(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rules.jsonl", [{"role": "system", "content": "Answer briefly."}])
    result = run_cli("replay", str(path), "--engine", "full", state_dir=tmp_path)
    assert result.returncode == 1
    assert "Nothing was asked" in result.stdout
    assert "Every answer" not in result.stdout


def test_calls_that_an_engine_fails_are_counted_and_the_replay_goes_on(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[plugins.load]\npaths = ["{GALLERY}"]\n', encoding="utf-8")
    path = write_lines(tmp_path / "talk.jsonl", conversation(turns=3, words=10))
    options = ("--engine", "gallery", "--config", str(config), "--session", "bad raises 1")
    found = replayed(tmp_path, str(path), *options, code=1)
    assert found["verdict"]["grade"] == "wrong"
    assert (found["summary"]["asked"], found["summary"]["answers"], found["summary"]["failures"]) == (3, 0, 3)
    assert all(call["problems"][0].startswith("failed: ") for call in found["calls"])
    shown = run_cli("replay", str(path), *options, state_dir=tmp_path)
    assert "Wrong: 3 failed calls." in shown.stdout


def test_a_budget_that_is_too_small_for_the_demo_is_no_success(tmp_path: Path) -> None:
    result = run_cli("demo", "--budget", "10", state_dir=tmp_path)
    assert result.returncode == 1
    assert "too small for 46 of 46 calls" in result.stdout
    assert "Every answer" not in result.stdout
    assert "kept" not in result.stdout.partition("Tokens")[0]


def test_a_table_breaks_neither_titles_nor_figures_where_the_terminal_is_narrow(tmp_path: Path) -> None:
    shown = run_cli("demo", state_dir=tmp_path, env={"COLUMNS": "40"}).stdout
    titles = shown.splitlines()[2].split()
    assert titles == ["turn", "calls", "full", "sent", "budget", "prefix", "epoch", "valid", "ms/call"]


def test_legacy_is_held_to_no_budget(tmp_path: Path) -> None:
    found = replayed(tmp_path, str(openai_chat(tmp_path)), "--engine", "legacy", "--budget", "100")
    assert found["ok"] is True
    assert found["summary"]["largestAnswer"] > 100
    assert found["summary"]["syntheticMessages"] == 0


def test_the_session_stays_where_the_state_directory_is_named(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "talk.jsonl", conversation(turns=3, words=10))
    kept = tmp_path / "kept"
    replayed(tmp_path, str(path), "--engine", "full", "--state-dir", str(kept))
    again = run_cli("replay", str(path), "--engine", "full", "--state-dir", str(kept), state_dir=tmp_path)
    assert again.returncode == 1
    assert "talk" in again.stderr
    listed = run_cli("sessions", "list", "--namespace", "replay", "--json", state_dir=kept)
    assert [s["messageCount"] for s in json.loads(listed.stdout)["sessions"]] == [7]


def test_nothing_is_left_in_the_state_directory_of_the_user(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "talk.jsonl", conversation(turns=1, words=10))
    state = tmp_path / "state"
    replayed(state, str(path), "--engine", "full")
    assert not state.exists()


def test_people_get_a_bounded_table_a_chart_and_a_verdict(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "long.jsonl", conversation(turns=60, words=20))
    result = run_cli(
        "replay", str(path), "--engine", "full", "--budget", "1k", "--rows", "6", state_dir=tmp_path
    )
    assert result.returncode == 0
    assert "(54 of 60 turns are not shown" in result.stdout
    assert "█" in result.stdout
    assert "Every answer was valid" in result.stdout
    assert result.stderr == ""


def test_an_interrupted_replay_is_one_line_and_leaves_a_store_that_opens(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "long.jsonl", conversation(turns=2000, words=20))
    state = tmp_path / "state"
    command = [PROGRAM, "replay", str(path), "--engine", "full", "--state-dir", str(state)]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        preexec_fn=heed_interrupts,
    ) as run:
        deadline = time.monotonic() + LIMIT_S
        while not (state / "context.db").exists():
            assert time.monotonic() < deadline, "the replay does not begin"
            assert run.poll() is None
            select.select([], [], [], 0.01)
        run.send_signal(signal.SIGINT)
        said, told = run.communicate(timeout=LIMIT_S)
    assert (run.returncode, said, told.strip()) == (130, "", "context-sidecar: interrupted")
    assert run_cli("sessions", "list", "--namespace", "replay", state_dir=state).returncode == 0


@pytest.mark.parametrize("content", ["", "no transcript", "{}", '{"messages": []}'])
def test_a_file_that_is_no_transcript_is_one_line(content: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(content, encoding="utf-8")
    result = run_cli("replay", str(path), "--engine", "full", state_dir=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 1
    assert "odd.json" in result.stderr


def test_the_demo_shows_a_summary_and_what_to_type_next(tmp_path: Path) -> None:
    result = run_cli("demo", state_dir=tmp_path)
    assert result.returncode == 0
    assert "Every answer was valid" in result.stdout
    assert "Summary of the conversation" in result.stdout
    assert "context-sidecar replay" in result.stdout
    assert result.stderr == ""


def test_the_demo_is_a_document_too(tmp_path: Path) -> None:
    result = run_cli("demo", "--json", state_dir=tmp_path)
    found = json.loads(result.stdout)
    assert result.returncode == 0
    assert found["summary"]["compactions"] > 0
    assert 60 <= found["summary"]["messages"] <= 100


def test_the_demo_works_where_output_is_plain_ascii(tmp_path: Path) -> None:
    result = run_cli("demo", state_dir=tmp_path, env={"PYTHONIOENCODING": "ascii"})
    assert result.returncode == 0


def test_a_transcript_of_which_nothing_is_left_says_what_was_left_out(tmp_path: Path) -> None:
    rows = [{"type": "summary", "summary": "x", "leafUuid": str(n)} for n in range(3)]
    path = write_lines(tmp_path / "titles.jsonl", rows)
    result = run_cli("replay", str(path), "--engine", "full", state_dir=tmp_path)
    assert result.returncode == 1
    assert "no messages; rows left out: 3 summary" in result.stderr


def test_engines_are_compared_over_one_transcript(tmp_path: Path) -> None:
    path = str(openai_chat(tmp_path))
    engines = ("--engine", "full", "--engine", "sliding-window")
    found = replayed(tmp_path / "a", path, *engines, "--budget", "1500", "--prices", "10,1")
    alone = replayed(tmp_path / "b", path, "--engine", "full", "--budget", "1500")
    rows = {row["engine"]: row for row in found["engines"]}
    assert list(rows) == ["full", "sliding-window", "(everything)", "(plain window)"]
    calls = alone["calls"]
    sent, cached = sum(call["assembledTokens"] for call in calls), sum(call["prefixTokens"] for call in calls)
    assert (rows["full"]["sentTokens"], rows["full"]["cachedTokens"]) == (sent, cached)
    assert rows["full"]["cost"] == pytest.approx(((sent - cached) * 10 + cached) / 1e6, abs=1e-6)
    full = [call["fullTokens"] for call in calls]
    everything = rows["(everything)"]
    assert everything["sentTokens"] == sum(full)
    assert everything["cachedTokens"] == sum(full[:-1])
    assert rows["(plain window)"]["largestAnswer"] <= 1500 < everything["largestAnswer"]
    assert rows["(plain window)"]["cost"] > rows["full"]["cost"]


def test_values_that_a_call_takes_from_an_earlier_turn_are_looked_for_in_the_answer(tmp_path: Path) -> None:
    def call(id: str, path: str) -> Message:
        function = {"name": "read", "arguments": json.dumps({"path": path})}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": id, "type": "function", "function": function}],
        }

    rows: list[Message] = [
        {"role": "user", "content": "The settings are in conf/app.toml."},
        {"role": "assistant", "content": "Noted."},
        *(
            {"role": role, "content": f"{number} " + "filler " * 60}
            for number in range(20)
            for role in ("user", "assistant")
        ),
        {"role": "user", "content": "Look into lib/new.py and the settings."},
        call("c1", "conf/app.toml"),
        {"role": "tool", "tool_call_id": "c1", "content": "debug = true"},
        call("c2", "lib/new.py"),
        {"role": "tool", "tool_call_id": "c2", "content": "pass"},
    ]
    path = write_lines(tmp_path / "chat.jsonl", rows)
    seen = {
        budget: replayed(tmp_path / budget, str(path), "--engine", "full", "--budget", budget)["summary"]
        for budget in ("1500", "64k")
    }
    used = [(summary["valuesUsed"], summary["valuesInView"]) for summary in seen.values()]
    assert used == [(1, 0), (1, 1)]
