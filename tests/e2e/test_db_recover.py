"""Saving what a damaged store still has."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.client_kit import run_cli
from tests.e2e.sidecar_host import Host, exported
from tests.e2e.talk import Talk, turns

TALK = Talk("openai")
PAGE = 8192


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Path, dict[str, list[dict[str, Any]]]]:
    """A store that a sidecar has left in order, and what it exported."""
    with Host(tmp_path / "state", engine="full") as host:
        for n in range(120):
            text = f"message {n} " + "word " * (n * 53 % 900)
            host.call("context/ingest", sessionId=f"s{n % 3}", message=TALK.user(text))
        host.call("session/fork", sessionId="s1", newSessionId="fork")
        before = {name: exported(host, name) for name in ("s0", "s1", "s2", "fork")}
        host.stop()
    return tmp_path / "state" / "context.db", before


def recovered(folder: Path, *arguments: str, code: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The lines that `recover` has written, and its report."""
    out = folder / "lines.jsonl"
    done = run_cli("db", "recover", *arguments, "--out", str(out), "--json", state_dir=folder)
    assert done.returncode == code, done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    out.unlink()
    return lines, json.loads(done.stdout)


def by_session(lines: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The lines in the shape of `session/export`."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        entry = {name: line[name] for name in ("messageId", "turnId", "timestamp", "message") if name in line}
        found.setdefault(line["sessionId"], []).append(entry)
    return found


def test_a_sound_store_is_recovered_whole(stored: tuple[Path, dict[str, Any]]) -> None:
    path, before = stored
    lines, report = recovered(path.parent, code=0)
    assert by_session(lines) == before
    assert (report["messages"], report["lost"], report["incomplete"]) == (160, 0, [])
    assert {line["messageFormat"] for line in lines} == {"openai"}


def test_of_a_damaged_store_every_readable_message_is_saved_and_the_rest_is_told(
    stored: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path, before = stored
    content = bytearray(path.read_bytes())
    places = [
        at
        for at in range(0, len(content), PAGE)
        if content[at] == 0x0D and b"word word" in content[at : at + PAGE]
    ]
    for at in random.Random(3).sample(places, 4):
        content[at : at + PAGE] = bytes(PAGE)
    path.write_bytes(content)
    lines, report = recovered(tmp_path, str(path), code=1)
    found = by_session(lines)
    for name, entries in found.items():
        assert [entry for entry in before[name] if entry in entries] == entries
    lost = sum(len(entries) for entries in before.values()) - len(lines)
    assert 0 < lost == report["lost"] == sum(session["lost"] for session in report["incomplete"])
    assert report["messages"] == len(lines) > 60
    assert path.read_bytes() == content
    assert [file.name for file in path.parent.iterdir()] == ["context.db"]


def test_a_new_store_can_be_made_of_it_that_serves(
    stored: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path, before = stored
    content = bytearray(path.read_bytes())
    content[:PAGE] = b"\xff" * PAGE
    path.write_bytes(content)
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    done = run_cli("db", "recover", "--to", str(fresh / "context.db"), state_dir=path.parent)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "160 messages" in done.stderr
    with Host(fresh, engine="full") as host:
        for name, entries in before.items():
            assert exported(host, name) == entries
        host.call("context/ingest", sessionId="s0", message=TALK.user("goes on"))
    assert run_cli("db", "check", state_dir=fresh).returncode == 0


def test_texts_of_ours_are_known_in_the_new_store_and_its_forks(tmp_path: Path) -> None:
    with Host(tmp_path / "state", engine="default") as host:
        host.call("context/bootstrap", sessionId="s", messages=turns(TALK, *range(60)))
        host.call("session/fork", sessionId="s", newSessionId="fork")
        host.call("context/compact", sessionId="s", tokenBudget=3000, force=True)
        ours = host.call("context/assemble", sessionId="s", tokenBudget=3000)["messages"][0]
        host.stop()
    path = tmp_path / "state" / "context.db"
    (tmp_path / "fresh").mkdir()
    path.write_bytes(b"\xff" * PAGE + path.read_bytes()[PAGE:])
    done = run_cli(
        "db", "recover", "--to", str(tmp_path / "fresh" / "context.db"), state_dir=tmp_path / "state"
    )
    assert done.returncode == 0, done.stderr
    with Host(tmp_path / "fresh", engine="default") as host:
        for session in ("s", "fork"):
            assert host.call("context/ingest", sessionId=session, message=ours)["reason"] == "synthetic"
        assert host.call("context/ingest", sessionId="another", message=ours)["ingested"]


def test_a_message_that_is_no_json_any_more_is_told_apart(stored: tuple[Path, dict[str, Any]]) -> None:
    path, _ = stored
    content = path.read_bytes()
    assert content.count(b'"message 6 word') == 1
    path.write_bytes(content.replace(b'"message 6 word', b'"mess"ge 6 word'))
    lines, report = recovered(path.parent, code=1)
    [damaged] = [line for line in lines if "damagedMessage" in line]
    assert 'mess"ge 6' in damaged["damagedMessage"]
    assert report["damaged"] == report["incomplete"][0]["damaged"] == 1


def test_what_is_there_is_not_overwritten(stored: tuple[Path, dict[str, Any]]) -> None:
    path, _ = stored
    for option in ("--out", "--to"):
        before = path.read_bytes()
        done = run_cli("db", "recover", option, str(path), state_dir=path.parent)
        assert (done.returncode, path.read_bytes()) == (1, before)
        assert "already" in done.stderr


def test_lines_go_to_standard_output_and_the_report_does_not(stored: tuple[Path, dict[str, Any]]) -> None:
    path, _ = stored
    done = run_cli("db", "recover", state_dir=path.parent)
    assert len([json.loads(line) for line in done.stdout.splitlines()]) == 160
    assert "No losses were found" in done.stderr
