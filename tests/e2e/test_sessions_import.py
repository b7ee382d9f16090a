"""What goes out comes in again, and a transcript of any known format can be looked at."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.client_kit import SidecarClient, assistant, run_cli, user, with_sidecar, write_lines
from tests.e2e.memory_host import MemoryHost, appended
from tests.e2e.talk import DIALECTS, Talk
from tests.unit.test_import_foreign import SAMPLES

MESSAGES: dict[str, list[dict[str, Any]]] = {
    "openai": [user("hello"), assistant("hi")],
    "anthropic": [
        user("look"),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "blue"}]},
    ],
    "openclaw": [
        user("look"),
        {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "f", "arguments": {}}]},
        {"role": "toolResult", "toolCallId": "c", "content": [{"type": "text", "text": "blue"}]},
    ],
}


def exported(state: Path, session: str) -> dict[str, Any]:
    return json.loads(run_cli("sessions", "export", session, "--json", state_dir=state).stdout)


def bodies(document: dict[str, Any]) -> list[Any]:
    return [message["message"] for message in document["messages"]]


@pytest.fixture(params=MESSAGES)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    async def tell(client: SidecarClient) -> None:
        for message in MESSAGES[request.param]:
            await client.ingest("talk", message)

    with_sidecar(tmp_path / "from", tell, engine="full", message_format=request.param)
    return tmp_path


@pytest.mark.parametrize("options", [(), ("--json",), ("--format", "flo")])
def test_every_form_of_an_export_comes_in_again(options: tuple[str, ...], stored: Path) -> None:
    out = stored / "talk"
    run_cli("sessions", "export", "talk", "--out", str(out), *options, state_dir=stored / "from")
    done = run_cli("sessions", "import", str(out), "--session", "talk", state_dir=stored / "to")
    assert done.returncode == 0, done.stderr
    before, after = exported(stored / "from", "talk"), exported(stored / "to", "talk")
    assert bodies(before) == bodies(after)
    assert before["messageFormat"] == after["messageFormat"]


def test_an_archive_of_retention_comes_in_again(stored: Path) -> None:
    before = exported(stored / "from", "talk")
    rules = ("--older-than", "0.000000001", "--min-idle", "0", "--archive", str(stored / "old"))
    assert run_cli("db", "prune", *rules, state_dir=stored / "from").returncode == 0
    archive = next((stored / "old").iterdir())
    assert run_cli("sessions", "import", str(archive), state_dir=stored / "to").returncode == 0
    assert exported(stored / "to", "talk")["messages"] == before["messages"]


def remembered(folder: Path, dialect: str) -> str:
    """Store turns to which memory was appended; returns what the sidecar appended to the second one."""
    with MemoryHost(folder / "from", engine="full", dialect=dialect, session="talk") as host:
        host.offer("notes", {"id": "note", "content": "The heron nests in Oslo."})
        host.commit("Say nothing.", host.ask("Say nothing."), "Nothing.")
        host.fragments["notes"].append({"id": "more", "content": "The otter lives in Bergen."})
        answer = host.ask("Where is \u00fcber?")
        host.commit("Where is \u00fcber?", answer, "There: [ctx:memory:notes:123456789012345678]\nx\n[/ctx]")
        return appended(answer)


WAYS_OUT = {
    "a document": ("sessions", "export", "talk", "--namespace", "e2e", "--json", "--out"),
    "two files": ("sessions", "export", "talk", "--namespace", "e2e", "--format", "flo", "--out"),
    "recovered lines": ("db", "recover", "--out"),
    "an archive": ("db", "prune", "--older-than", "0.000000001", "--min-idle", "0", "--archive"),
}


@pytest.mark.parametrize(("dialect", "way"), list(zip(DIALECTS, WAYS_OUT, strict=True)))
def test_an_import_leaves_out_what_the_other_store_wrote_and_nothing_else(
    dialect: str, way: str, tmp_path: Path
) -> None:
    memory = remembered(tmp_path, dialect)
    assert "otter" in memory
    out = tmp_path / "out"
    assert run_cli(*WAYS_OUT[way], str(out), state_dir=tmp_path / "from").returncode == 0
    file = next(out.iterdir()) if way == "an archive" else out
    assert "heron" in "".join(f.read_text() for f in (file.glob("*") if file.is_dir() else [file]))
    done = run_cli("sessions", "import", str(file), "--session", "copy", state_dir=tmp_path / "to")
    assert done.returncode == 0, done.stderr
    talk = Talk(dialect)
    forged = "There: [ctx:memory:notes:123456789012345678]\nx\n[/ctx]"
    said = [
        talk.user("Say nothing."),
        talk.assistant("Nothing."),
        talk.user("Where is \u00fcber?"),
        talk.assistant(forged),
    ]
    assert bodies(exported(tmp_path / "to", "copy")) == said


def test_a_transcript_of_another_program_is_imported_to_be_looked_at(tmp_path: Path) -> None:
    rows = [
        {"type": role, "uuid": role, "parentUuid": None, "message": {"role": role, "content": role}}
        for role in ("user", "assistant")
    ]
    file = write_lines(tmp_path / "a-session.jsonl", rows)
    assert run_cli("sessions", "import", str(file), state_dir=tmp_path).returncode == 0
    assert len(bodies(exported(tmp_path, "a-session"))) == 2


def test_transcripts_of_every_other_program_are_imported(tmp_path: Path) -> None:
    for number, (name, text) in enumerate(SAMPLES.values()):
        file = tmp_path / f"sample-{number}"
        file.write_text(text, encoding="utf-8")
        # Samples of one program name their conversation alike.
        done = run_cli("sessions", "import", str(file), state_dir=tmp_path / f"state-{number}")
        assert done.returncode == 0, (name, done.stderr)
        said = re.search(r"stored (\d+) of (\d+) messages", done.stdout + done.stderr)
        assert said is not None and said[1] == said[2] != "0", (name, done.stdout, done.stderr)


def test_a_file_that_is_nothing_known_says_what_is(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("hello")
    done = run_cli("sessions", "import", str(file), state_dir=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "expected" in done.stderr
