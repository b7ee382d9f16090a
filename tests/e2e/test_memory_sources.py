"""Built-in memory sources, over sessions of one agent and of others."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.memory_host import MemoryHost, addition, appended
from tests.e2e.sidecar_host import Host, Refused


def using(*sources: str, **configs: dict[str, Any]) -> dict[str, Any]:
    return {
        "plugins": {
            "slots": {"memory": list(sources)},
            "entries": {name: {"config": config} for name, config in configs.items()},
        }
    }


def move_to(host: MemoryHost, session: str, agent: str = "agent-1") -> None:
    host.session, host.agent, host.transcript = session, agent, []


def test_what_was_said_in_an_earlier_session_is_recalled_in_another(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config=using("history")) as host:
        host.say("The staging database listens on port 6543 at heron.", "Noted.")
        host.say("The cat is called Mons.", "A nice name.")
        move_to(host, "s2")
        text = appended(host.say("On which port does the staging database listen?"))
    assert "port 6543 at heron" in text
    assert "Earlier conversation (s1, t1, " in text
    assert "Mons" not in text


def test_of_equal_messages_that_were_stored_at_once_the_first_is_quoted(tmp_path: Path) -> None:
    said = {"role": "user", "content": "The staging database listens on port 6543 at heron."}
    replied = {"role": "assistant", "content": "Noted."}
    with MemoryHost(tmp_path, config=using("history")) as host:
        messages = [said, replied] * 4
        host.call("context/ingestBatch", **host.about(), messages=messages)
        move_to(host, "s2")
        text = appended(host.say("On which port does the staging database listen?"))
    assert "Earlier conversation (s1, t1, " in text


def test_another_agent_is_told_nothing_of_it(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config=using("history", "facts")) as host:
        host.say("Always answer in Norwegian. The staging database listens on port 6543.")
        move_to(host, "s2", "agent-2")
        answer = host.say("On which port does the staging database listen?")
        assert "6543" not in appended(answer) + addition(answer)


def test_a_session_is_not_told_of_itself(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config=using("history")) as host:
        host.say("The staging database listens on port 6543 at heron.")
        assert not appended(host.say("On which port does the staging database listen?"))


def test_a_standing_instruction_holds_in_the_next_session(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config=using("facts")) as host:
        host.say("From now on, write all dates as 2024-03-15.")
        host.say("What is the weather like?")
        move_to(host, "s2")
        text = addition(host.say("Hello there, which day is it?"))
    assert "write all dates as 2024-03-15" in text
    assert "The user's instruction (s1, t1, " in text
    assert "weather" not in text


def test_a_fact_that_is_said_and_quoted_again_and_again_is_offered_once(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config=using("facts")) as host:
        for session in ("s1", "s2", "s3", "s4"):
            move_to(host, session)
            answer = host.ask("From now on, call me Captain Skjelbred.")
            quote = f"As you said: From now on, call me Captain Skjelbred.\n{addition(answer)}"
            host.commit("From now on, call me Captain Skjelbred.", answer, quote)
        move_to(host, "s5")
        text = addition(host.say("Good morning to you."))
    assert text.count("Captain Skjelbred") == 1


def reading(notes: Path) -> dict[str, str]:
    """The environment of a sidecar whose operator lets it read these notes."""
    file = notes.with_name("config.toml")
    file.write_text(f"[plugins.entries.workspace.config]\npath = {str(notes)!r}\n", encoding="utf-8")
    return {"CONTEXT_SIDECAR_CONFIG": str(file)}


def test_a_host_cannot_have_files_read_of_its_choice(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("# Secret\n\nThe password is heron.\n", encoding="utf-8")
    config = using("workspace", workspace={"path": str(tmp_path)})
    with (
        Host(tmp_path / "state", initialized=False, config=config) as host,
        pytest.raises(Refused) as refused,
    ):
        host.initialize()
    assert refused.value.code == -32602
    assert refused.value.data["path"].endswith("/plugins/entries/workspace/config/path")


def test_sections_of_notes_come_where_a_prompt_asks_for_them(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "MEMORY.md").write_text("# About\n\nThe project is called Ptarmigan.\n", encoding="utf-8")
    (notes / "deep" / "ops.md").write_text(
        "# Operations\n\n## Backups\n\nBackups run at 03:40 UTC.\n\n## Lunch\n\nSoup on Mondays.\n",
        encoding="utf-8",
    )
    (tmp_path / "outside.md").write_text("Backups are secret.", encoding="utf-8")
    (notes / "link.md").symlink_to(tmp_path / "outside.md")
    settings = {"config": using("workspace"), "environment": reading(notes)}
    with MemoryHost(tmp_path / "state", **settings) as host:
        answer = host.say("When do the backups run?")
        assert "The project is called Ptarmigan." in addition(answer)
        assert "Note deep/ops.md:3-6:\n## Backups\n\nBackups run at 03:40 UTC." in appended(answer)
        assert "Soup" not in appended(answer)
        assert "secret" not in appended(answer)
        (notes / "deep" / "ops.md").write_text("## Backups\n\nBackups run at 05:00 UTC.\n", encoding="utf-8")
        again = appended(host.say("When do the backups run, please?", citationsMode="off"))
        assert "Note:\n## Backups\n\nBackups run at 05:00 UTC." in again


def test_each_of_several_sources_keeps_to_its_own_budget(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "big.md").write_text("# Ports\n\nstaging database port list\n" + "0815 " * 200, encoding="utf-8")
    (notes / "small.md").write_text("# Port\n\nThe staging port is 1.\n", encoding="utf-8")
    both = using("history", "workspace", workspace={"tokenBudget": 60})
    with MemoryHost(tmp_path / "state", config=both, environment=reading(notes)) as host:
        host.say("The staging database listens on port 6543 at heron.", "Noted.")
        move_to(host, "s2")
        text = appended(host.say("On which port does the staging database listen?"))
    assert "6543" in text
    assert "The staging port is 1." in text
    assert "0815" not in text


def test_a_source_of_the_host_does_not_cut_the_budget_of_its_namesake(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "port.md").write_text("# Port\n\nThe staging port is 1.\n", encoding="utf-8")
    settings = {"config": using("workspace"), "environment": reading(notes)}
    with MemoryHost(tmp_path / "state", **settings) as host:
        host.offer("workspace", {"content": "What the host says of the port."}, tokenBudget=1)
        text = appended(host.ask("Which is the staging port?"))
    assert "The staging port is 1." in text
    assert "What the host says" not in text


def test_a_source_that_cannot_be_loaded_costs_itself_only(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config=using("workspace", "none-such", "history")) as host:
        host.say("The staging database listens on port 6543 at heron.", "Noted.")
        move_to(host, "s2")
        assert "6543" in appended(host.say("On which port does the staging database listen?"))


def test_the_doctor_names_sources_that_cannot_be_asked(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config=using("workspace", "none-such", "history")) as host:
        report = host.call("engine/doctor")
    [check] = [each for each in report["checks"] if each["name"] == "memory"]
    assert not check["ok"] and not report["ok"]
    assert "workspace is not asked: plugins.entries.workspace.config.path" in check["message"]
    assert "there is no memory source 'none-such'" in check["message"]
    assert "history" not in check["message"].partition("none-such")[0]
