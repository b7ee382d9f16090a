"""What `context-sidecar memory` tells of a session, while a sidecar uses the same store."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.client_kit import run_cli
from tests.e2e.memory_host import MemoryHost, addition

LIMIT_S = 60.0
FACTS = {"plugins": {"slots": {"memory": ["facts"]}}}
AGENT = ("--agent", "agent-1", "--namespace", "e2e")


def memory(folder: Path, *arguments: str, code: int = 0) -> Any:
    done = run_cli("memory", *arguments, "--json", state_dir=folder)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_show_tells_what_was_included_and_why_the_rest_was_not(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("notes", {"id": "a", "content": "Short."}, {"id": "b", "content": "Long. " * 3000})
        host.say("What do you know?")
        host.say("And now?")
        first, second = memory(tmp_path, "show", "s1", "--namespace", "e2e")
        table = run_cli("memory", "show", "s1", "--namespace", "e2e", state_dir=tmp_path).stdout
    told = {each["id"]: (each["included"], each["reason"]) for each in first["fragments"]}
    assert told == {"a": (True, ""), "b": (False, "over the budget")}
    assert [(s["name"], s["fragments"], s["included"]) for s in first["sources"]] == [("notes", 2, 1)]
    assert {each["id"]: each["reason"] for each in second["fragments"]}["a"] == "injected before"
    assert "over the budget" in table
    assert "1 of 2 fragments" in table


def test_watch_tells_of_a_compilation_as_it_happens(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("notes", {"id": "a", "content": "Short."})
        host.say("What do you know?")
        command = [
            sys.executable,
            "-m",
            "sidecar.cli.main",
            "memory",
            "watch",
            "s1",
            "--events",
            "1",
            "--json",
        ]
        with subprocess.Popen(
            [*command, "--json", "--namespace", "e2e", "--state-dir", str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        ) as watching:
            try:
                assert watching.stderr is not None
                assert watching.stderr.readline().startswith("Watching s1")
                host.fragments["notes"] = [{"id": "later", "content": "News."}]
                host.say("And now?")
                out, _ = watching.communicate(timeout=LIMIT_S)
            finally:
                watching.kill()
    assert [each["id"] for each in json.loads(out)["fragments"]] == ["later"]


def test_a_fact_that_is_forgotten_is_not_offered_until_that_is_undone(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config=FACTS) as host:
        host.say("From now on, call me Captain Skjelbred.")
        (fact,) = memory(tmp_path, "facts", *AGENT)
        assert (fact["kind"], fact["session_id"], fact["turn_id"]) == ("instruction", "s1", "t1")
        memory(tmp_path, "forget", fact["fact_id"], *AGENT)
        assert memory(tmp_path, "facts", *AGENT) == []
        host.session, host.transcript = "s2", []
        assert "Skjelbred" not in addition(host.say("Good morning to you."))
        memory(tmp_path, "forget", fact["fact_id"], *AGENT, code=1)
        memory(tmp_path, "forget", fact["fact_id"], "--undo", *AGENT)
        host.session, host.transcript = "s3", []
        assert "Skjelbred" in addition(host.say("Good morning to you."))
