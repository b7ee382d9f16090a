"""`context-sidecar eval` over real processes."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.client_kit import run_cli

CODE = "The code of the gate is 4711, and it changes in May."
MEANT = "We keep the emergency cash in the blue teapot on the top shelf."
MEANING = "Where is the money for bad days hidden?"
FILLER = "We talked about the weather and about the garden, at length and without any result. "


def session(**changes: Any) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [
        {"id": 0, "role": "user", "content": CODE, "ts": "2026-01-01T10:00:00Z"},
        {"id": 1, "role": "assistant", "content": "Noted.", "ts": "not a time"},
    ]
    for n in range(2, 60, 4):
        call = {"id": f"c{n}", "name": "look", "arguments": f'{{"plot": {n}}}'}
        messages += [
            {"id": n, "role": "user", "content": f"{n}. {FILLER * 3}"},
            {"id": n + 1, "role": "assistant", "content": "", "tool_calls": [call]},
            {"id": n + 2, "role": "tool", "content": f"plot {n} is dry", "tool_call_id": f"c{n}"},
            {"id": n + 3, "role": "assistant", "content": f"I see, plot {n}."},
        ]
    asked = {"id": "q", "type": "fact", "prompt": "What is the code of the gate?", "evidence": [[0]]}
    return {
        "session_id": "garden",
        "messages": messages,
        "questions": [{**asked, "answers": ["4711"]}, {**asked, "id": "early", "at": 1}],
        **changes,
    }


def written(folder: Path, *sessions: dict[str, Any]) -> Path:
    file = folder / "garden.jsonl.gz"
    file.write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in sessions).encode()))
    return file


def test_evidence_is_found_with_recall_and_missed_without(tmp_path: Path) -> None:
    file = written(tmp_path, session())
    config = tmp_path / "config.toml"
    found: list[dict[str, Any]] = []
    for share in (0, 0.6):
        config.write_text(f"recall.share = {share}\n")
        done = run_cli(
            "eval", str(file), "--engine", "sliding-window", "--config", str(config),
            "--budgets", "600,100k", "--prefix-budget", "2k", "--json", state_dir=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found += json.loads(done.stdout)["results"]
    window, recall = found
    assert [at["evidence"] for at in window["budgets"]] == [0.5, 1]
    assert [at["evidence"] for at in recall["budgets"]] == [1, 1]
    assert recall["budgets"][1]["answers"] == 1
    assert recall["search"]["5"] == 1
    assert 0.5 < recall["prefix"]["kept"] <= 1
    assert recall["prefix"]["calls"] == 31


def test_people_get_a_table_and_a_chart(tmp_path: Path) -> None:
    done = run_cli(
        "eval",
        str(written(tmp_path, session())),
        "--engine",
        "recall",
        "--budgets",
        "600",
        state_dir=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "garden.jsonl.gz: 2 questions" in done.stdout
    assert "█" in done.stdout
    assert "Every answer was valid and within its budget." in done.stdout


def test_simple_ways_stand_beside_an_engine_in_one_run(tmp_path: Path) -> None:
    asked = session()
    for message in asked["messages"]:
        if FILLER in message["content"]:
            message["content"] *= 12  # caches of providers keep what is longer than 4096 tokens
    file = written(tmp_path, asked)
    told = ("--engine", "recall", "--baselines", "--budgets", "600", "--prefix-budget", "5k", "--json")
    done = run_cli("eval", str(file), *told, state_dir=tmp_path)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    found = {result["engine"]: result["budgets"][0] for result in results}
    assert list(found) == ["recall", "recency", "fts5", "fts5+neighbours"]
    assert {name: (at["found"], at["wanted"]) for name, at in found.items()} == {
        "recall": (2, 2),
        "recency": (1, 2),
        "fts5": (2, 2),
        "fts5+neighbours": (2, 2),
    }
    assert not any(at["overByCharacters"] or at["overBudget"] or at["invalid"] for at in found.values())
    assert [bool(result["search"]) for result in results] == [True, False, True, True]
    assert results[1]["prefix"]["kept"] < results[0]["prefix"]["kept"]


def test_an_engine_is_measured_with_and_without_meaning_in_one_run(tmp_path: Path) -> None:
    meant = {
        "session_id": "garden",
        "messages": [
            {"id": 0, "role": "user", "content": MEANT},
            *session()["messages"][2:],
        ],
        "questions": [{"id": "q", "type": "fact", "prompt": MEANING, "evidence": [[0]]}],
    }
    told = ("--engine", "recall", "--baselines", "--meaning", "both", "--budgets", "600", "--json")
    done = run_cli("eval", str(written(tmp_path, meant)), *told, state_dir=tmp_path)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    found = {result["engine"]: result["budgets"][0]["found"] for result in results}
    assert list(found) == ["recall", "recall+meaning", "recency", "fts5", "fts5+neighbours"]
    assert (found["recall"], found["recall+meaning"]) == (0, 1)


def test_meaning_is_not_measured_where_vectors_are_never_made(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[search]\nmeaning = 'off'\n")
    told = ("--engine", "recall", "--meaning", "off", "--config", str(config), "--budgets", "600", "--json")
    done = run_cli("eval", str(written(tmp_path, session())), *told, state_dir=tmp_path)
    assert [result["engine"] for result in json.loads(done.stdout)["results"]] == ["recall"]


def test_a_context_that_cannot_fit_counts_as_nothing_found(tmp_path: Path) -> None:
    long = {"id": 0, "role": "system", "content": "rule " * 2000}
    told = session(messages=[long, {"id": 1, "role": "user", "content": CODE}], questions=[])
    told["questions"] = [{"id": "q", "type": "fact", "prompt": "?", "evidence": [[1]]}]
    done = run_cli(
        "eval",
        str(written(tmp_path, told)),
        "--engine",
        "default",
        "--budgets",
        "500",
        "--json",
        state_dir=tmp_path,
    )
    at = json.loads(done.stdout)["results"][0]["budgets"][0]
    assert (at["refused"], at["evidence"], at["invalid"]) == (1, 0, 0)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("no json", "line 1"),
        (json.dumps(session(questions=[{"id": "q", "type": "f", "prompt": "?", "evidence": [[99]]}])), "99"),
        (
            json.dumps(session(questions=[{"id": "q", "type": "f", "prompt": "?", "evidence": []}])),
            "evidence",
        ),
        (
            json.dumps(
                session(questions=[{"id": "q", "type": "f", "prompt": "?", "evidence": [[0]], "at": 600}])
            ),
            "600",
        ),
        (json.dumps(session(questions=[])), "no questions"),
    ],
)
def test_a_file_of_another_kind_is_refused_in_one_line(tmp_path: Path, line: str, told: str) -> None:
    file = tmp_path / "strange.jsonl"
    file.write_text(line + "\n", encoding="utf-8")
    done = run_cli("eval", str(file), state_dir=tmp_path)
    assert done.returncode == 1
    assert "strange.jsonl" in done.stderr
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_file_that_is_not_compressed_is_told_as_such(tmp_path: Path) -> None:
    file = tmp_path / "torn.jsonl.gz"
    file.write_bytes(written(tmp_path, session()).read_bytes()[:100])
    done = run_cli("eval", str(file), state_dir=tmp_path)
    assert (done.returncode, "torn.jsonl.gz cannot be read" in done.stderr) == (1, True)


def test_a_small_budget_takes_nothing_from_the_answers_of_a_larger_one(tmp_path: Path) -> None:
    file = written(tmp_path, session())
    asked = ("eval", str(file), "--engine", "full", "--json", "--budgets")
    alone = json.loads(run_cli(*asked, "100k", state_dir=tmp_path).stdout)
    beside = json.loads(run_cli(*asked, "300,100k", state_dir=tmp_path).stdout)
    assert alone["results"][0]["budgets"][0]["evidence"] == 1
    assert beside["results"][0]["budgets"][1] == alone["results"][0]["budgets"][0]


def test_refused_budgets_are_no_success(tmp_path: Path) -> None:
    file = written(tmp_path, session())
    done = run_cli("eval", str(file), "--engine", "full", "--budgets", "10,100k", state_dir=tmp_path)
    assert done.returncode == 1
    assert "The budget was refused for 2 of 4 requests." in done.stdout
    assert "Every answer" not in done.stdout
