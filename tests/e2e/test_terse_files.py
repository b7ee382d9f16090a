"""A session as `context.json` and `context.terse.json`, written and read back by the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from sidecar.client import SidecarClient
from tests.client_kit import run_cli, with_sidecar

MESSAGES = [
    (b'{"role":"system","content":"You help.", "n":1.50}', "t1", "2024-01-15T10:30:00.000Z"),
    (b'{"content":"caf\\u00e9 \\ud83d","role":"user"}', "t1", "2024-01-15T10:30:01.000Z"),
    (
        b'{"role":"assistant","content":"Done. <terse>made\\ncoffee</terse> <TERSE>paid</TERSE>"}',
        "t1",
        "2024-01-15T10:31:59.000Z",
    ),
    (b'{"role":"user","content":"<terse>not mine</terse>"}', "second", "2024-01-15T10:32:00.000Z"),
    (
        b'{"role":"assistant","content":"```\\n<terse>code</terse>\\n```"}',
        "second",
        "2024-01-15T10:32:30.000Z",
    ),
    (b'{"role":"user","content":"more"}', "t3", "2024-01-15T10:33:00.000Z"),
]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A state directory with one session."""

    async def tell(client: SidecarClient) -> None:
        for number, (message, turn_id, timestamp) in enumerate(MESSAGES):
            await client.ingest(
                "talk", message, message_id=f"m{number}", turn_id=turn_id, timestamp=timestamp
            )

    with_sidecar(tmp_path / "state", tell, engine="terse")
    return tmp_path


def export(stored: Path, folder: str, state: str = "state", session: str = "talk") -> Path:
    out = stored / folder
    done = run_cli(
        "sessions", "export", session, "--format", "flo", "--out", str(out), state_dir=stored / state
    )
    assert done.returncode == 0, done.stderr
    return out


def bring_in(stored: Path, path: Path, *options: str, state: str = "other") -> dict[str, Any]:
    done = run_cli("sessions", "import", str(path), "--json", *options, state_dir=stored / state)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_history_has_ids_turns_times_and_the_bytes_that_came(stored: Path) -> None:
    data = (export(stored, "out") / "context.json").read_bytes()
    document = json.loads(data)
    assert (document["sessionId"], document["messageFormat"]) == ("talk", "openai")
    assert [(m["messageId"], m["turnId"], m["timestamp"]) for m in document["messages"]] == [
        (f"m{number}", turn_id, timestamp) for number, (_, turn_id, timestamp) in enumerate(MESSAGES)
    ]
    assert all(message in data for message, _, _ in MESSAGES)


def test_the_summaries_have_time_turn_and_role(stored: Path) -> None:
    terse = json.loads((export(stored, "out") / "context.terse.json").read_text(encoding="utf-8"))
    same = {"timestamp": "2024-01-15T10:31:59.000Z", "turnId": "t1", "role": "assistant"}
    assert terse == [{**same, "summary": "made coffee"}, {**same, "summary": "paid"}]


def test_what_was_exported_is_read_back_as_it_was(stored: Path) -> None:
    out = export(stored, "out")
    assert bring_in(stored, out) == {"sessionId": "talk", "imported": 6, "withoutTag": []}
    again = export(stored, "again", "other")
    for name in ("context.json", "context.terse.json"):
        assert (again / name).read_bytes() == (out / name).read_bytes()


def test_an_import_may_come_again_and_under_another_name(stored: Path) -> None:
    out = export(stored, "out")
    assert bring_in(stored, out / "context.json", state="state")["imported"] == 0
    assert bring_in(stored, out, "--session", "copy", state="state")["imported"] == 6
    assert (
        len(json.loads((export(stored, "c", session="copy") / "context.json").read_bytes())["messages"]) == 6
    )


def test_a_summary_that_stands_in_no_message_is_named(stored: Path) -> None:
    out = export(stored, "out")
    terse = json.loads((out / "context.terse.json").read_text(encoding="utf-8"))
    terse.append({**terse[0], "summary": "made up"})
    (out / "context.terse.json").write_text(json.dumps(terse), encoding="utf-8")
    assert bring_in(stored, out)["withoutTag"] == terse[-1:]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"sessionId":"s","messageFormat":"latin","messages":[]}',
        '{"sessionId":"s","messageFormat":"openai","messages":[{"message":{"content":"x"}}]}',
    ],
)
def test_a_file_of_another_kind_is_refused_in_one_line(stored: Path, text: str) -> None:
    file = stored / "context.json"
    file.write_text(text, encoding="utf-8")
    done = run_cli("sessions", "import", str(file), state_dir=stored / "other")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "context.json" in done.stderr
