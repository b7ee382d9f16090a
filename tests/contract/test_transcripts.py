"""The sessions that the specification shows go as our server makes them go."""

import json

import pytest

from tests.contract.transcripts import FOLDER, SESSIONS, comparable, recorded


@pytest.mark.parametrize("name", SESSIONS)
def test_a_transcript_is_what_happens(name: str) -> None:
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    shown = [comparable(json.loads(line)) for line in lines]
    said = [comparable(entry) for entry in recorded(SESSIONS[name])]
    assert said == shown, "run `python -m tests.contract.transcripts`"


def test_every_transcript_is_of_a_session_that_is_replayed() -> None:
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(SESSIONS)
