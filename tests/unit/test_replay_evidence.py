"""The values that a call takes from earlier turns, and how often finding them reads a transcript."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sidecar.cli.lab import replay as lab
from sidecar.cli.lab.recording import Evidence, Tally
from sidecar.cli.options import Common, prices_of
from sidecar.messages.dialects import dialect
from sidecar.tokens.choose import counter
from tests.client_kit import Message, assistant, user, write_lines


def calling(**arguments: object) -> Message:
    function = {"name": "read", "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": function}]}


def used(messages: list[Message], call: Message) -> list[str]:
    read = dialect("openai").read
    evidence = Evidence(Tally(dialect("openai"), counter("estimate")))
    for message in messages:
        evidence.add(json.dumps(message).encode())
    return evidence.used(read(json.dumps(call).encode()))


def test_values_are_evidence_where_their_newest_mention_is_in_an_earlier_turn() -> None:
    told = [
        {"role": "system", "content": "Notes are in /notes/all.md."},
        user("Read src/one.py and src/two.py."),
        assistant("They import src/three.py."),
        user("Now src/two.py again."),
    ]
    call = calling(
        a="src/one.py", b="src/two.py", c="src/three.py", d="src/four.py", e="/notes/all.md", f="plain words"
    )
    assert used(told, call) == ["/notes/all.md", "src/one.py", "src/three.py"]
    assert used(told[:3], call) == ["/notes/all.md"]
    assert used(told[:1], call) == []


def test_evidence_stops_counting_once_the_open_turn_mentions_it() -> None:
    told = [user("Read src/one.py."), user("Go on.")]
    evidence = Evidence(Tally(dialect("openai"), counter("estimate")))
    call = dialect("openai").read(json.dumps(calling(a="src/one.py")).encode())
    for message in told:
        evidence.add(json.dumps(message).encode())
    assert evidence.used(call) == ["src/one.py"]
    evidence.add(json.dumps(assistant("That is src/one.py.")).encode())
    assert evidence.used(call) == []


def test_engines_are_compared_on_one_reading_of_the_transcript(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []
    read = lab.read_recording

    def counted(path: Path, format: str | None) -> lab.Recording:
        reads.append(path)
        return read(path, format)

    monkeypatch.setattr(lab, "read_recording", counted)
    path = write_lines(tmp_path / "chat.jsonl", [user("Hello?"), assistant("Hello.")])
    plan = lab.Plan("chat", 8000, "ingest", every_call=True, compaction=True)
    request = lab.Request(path, None, None, exact=False, plan=plan)
    common = Common(None, None, json=True)
    found = lab.compare(common, request, ["full", "sliding-window"], prices_of(["1", "1"]))
    assert (len(found.engines), reads) == (4, [path])
