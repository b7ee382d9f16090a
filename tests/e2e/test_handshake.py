"""What `initialize` promises, refuses and explains."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from sidecar.server.configuration.model import Configuration
from sidecar.server.host_mistakes import CONFIGURATION, camel
from tests.e2e.sidecar_host import Host, Refused


def refused(state_dir: Path, **options: object) -> Refused:
    with Host(state_dir, initialized=False, **options) as host, pytest.raises(Refused) as problem:
        host.initialize()
    return problem.value


def test_the_answer_names_engine_methods_formats_and_limits(tmp_path: Path) -> None:
    with Host(tmp_path, initialized=False, engine="full") as host:
        offer = host.initialize()
    assert offer["protocolVersion"] == "1.0"
    assert offer["engine"]["id"] == "full"
    assert offer["engine"]["ownsCompaction"] is True
    assert {"ingest", "assemble", "compact"} <= set(offer["engine"]["implements"])
    assert {"context/ingest", "context/assemble", "session/export", "engine/doctor"} <= set(offer["methods"])
    assert offer["messageFormats"] == ["openai", "openai-responses", "anthropic", "openclaw"]
    assert offer["limits"]["defaultTokenBudget"] == 128_000


def test_without_a_slot_a_host_that_owns_history_keeps_its_own_context(tmp_path: Path) -> None:
    owner = ["runtime/compact", "ownsHistory", "future/thing"]
    with Host(tmp_path, initialized=False, hostCapabilities=owner) as host:
        assert host.initialize()["engine"]["id"] == "legacy"
        checks = host.call("engine/doctor")["checks"]
        assert "the host says that it owns history" in checks[0]["message"]


def test_without_a_slot_a_host_that_merely_answers_every_request_gets_default(tmp_path: Path) -> None:
    with Host(tmp_path, initialized=False, hostCapabilities=["runtime/compact"]) as host:
        assert host.initialize()["engine"]["id"] == "default"


def test_without_a_slot_any_other_host_gets_default(tmp_path: Path) -> None:
    with Host(tmp_path, initialized=False) as host:
        assert host.initialize()["engine"]["id"] == "default"


def test_an_unknown_version_is_refused_with_the_versions_there_are(tmp_path: Path) -> None:
    problem = refused(tmp_path, protocolVersion="7.3")
    assert problem.code == -32602
    assert problem.data["supported"] == ["1.0"]


def test_an_unknown_engine_is_refused_and_the_installed_ones_are_named(tmp_path: Path) -> None:
    problem = refused(tmp_path, engine="no-such-engine")
    assert problem.code == 1001
    assert problem.data["engineId"] == "no-such-engine"
    assert "default" in str(problem) and "full" in str(problem)


def test_an_engine_that_is_switched_off_is_refused_by_the_key_that_switches_it_on(tmp_path: Path) -> None:
    problem = refused(tmp_path, engine="full", config={"plugins": {"entries": {"full": {"enabled": False}}}})
    assert problem.code == 1001
    assert "plugins.entries.full.enabled" in str(problem)


def test_a_wrong_engine_setting_is_refused_by_its_key(tmp_path: Path) -> None:
    entries = {"default": {"config": {"summaryTokens": "lots"}}}
    problem = refused(tmp_path, engine="default", config={"plugins": {"entries": entries}})
    assert problem.code == 1001
    assert "plugins.entries.default.config.summaryTokens" in str(problem)


def test_a_wrong_setting_is_refused_with_its_place_in_the_params(tmp_path: Path) -> None:
    problem = refused(tmp_path, config={"limits": {"maxInFlight": -1}})
    assert problem.code == -32602
    assert problem.data["path"] == "/initializationOptions/contextEngine/config/limits/maxInFlight"


def test_there_is_no_silent_fallback_and_an_announced_one_where_it_was_opted_into(tmp_path: Path) -> None:
    config = {"plugins": {"onEngineFailure": "legacy"}}
    with Host(tmp_path, initialized=False, engine="no-such-engine", config=config) as host:
        engine = host.initialize()["engine"]
    assert engine["id"] == "legacy"
    assert engine["fallbackFor"]["id"] == "no-such-engine"
    assert "no-such-engine" in engine["fallbackFor"]["reason"]


def test_a_handshake_that_failed_can_be_repeated(tmp_path: Path) -> None:
    with Host(tmp_path, initialized=False, engine="no-such-engine") as host:
        with pytest.raises(Refused):
            host.initialize()
        host.options["engine"] = "full"
        assert host.initialize()["engine"]["id"] == "full"
        message = {"role": "user", "content": "after all"}
        assert host.call("context/ingest", sessionId="s", message=message)["ingested"] is True


def test_a_store_that_cannot_be_opened_is_error_1006_without_a_local_path(tmp_path: Path) -> None:
    (tmp_path / "context.db").mkdir()
    problem = refused(tmp_path)
    assert problem.code == 1006
    assert str(tmp_path) not in json.dumps(problem.data) + str(problem)


def test_a_damaged_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    damaged = b"this is no database, but somebody may still want it" * 100
    (tmp_path / "context.db").write_bytes(damaged)
    assert refused(tmp_path).code == 1006
    assert (tmp_path / "context.db").read_bytes() == damaged


def test_the_state_directory_is_private(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    with Host(state_dir):
        assert stat.S_IMODE(state_dir.stat().st_mode) == 0o700
        assert stat.S_IMODE((state_dir / "context.db").stat().st_mode) == 0o600


def test_a_memory_store_leaves_no_file(tmp_path: Path) -> None:
    with Host(tmp_path, config={"store": {"kind": "memory"}}) as host:
        host.call("context/ingest", sessionId="s", message={"role": "user", "content": "gone tomorrow"})
        assert list(tmp_path.iterdir()) == []


def test_every_offered_request_is_served(tmp_path: Path) -> None:
    with Host(tmp_path, initialized=False, engine="full") as host:
        methods = host.initialize()["methods"]
        for method in methods:
            if "/" not in method or method.startswith("$/"):
                continue
            try:
                host.call(method, sessionId="nobody")
            except Refused as problem:
                assert problem.code != -32601, method


def test_doctor_says_what_it_looked_at(tmp_path: Path) -> None:
    with Host(tmp_path, engine="full") as host:
        report = host.call("engine/doctor")
    assert report["ok"] is True
    looked_at = ["engine", "settings", "store", "tokens", "host", "search", "disk", "versions", "health"]
    assert [check["name"] for check in report["checks"]] == looked_at


def test_doctor_tells_of_an_unknown_setting_and_of_a_stand_in(tmp_path: Path) -> None:
    config = {"limitz": 3, "plugins": {"onEngineFailure": "legacy"}}
    with Host(tmp_path, engine="no-such-engine", config=config) as host:
        report = host.call("engine/doctor")
    failing = {check["name"]: check for check in report["checks"] if not check["ok"]}
    assert set(failing) == {"engine", "settings"}
    assert "limitz" in failing["settings"]["message"]
    assert all(check["fix"] for check in failing.values())


def test_engine_list_shows_what_could_be_selected_and_why_not(tmp_path: Path) -> None:
    config = {"plugins": {"entries": {"legacy": {"enabled": False}}}}
    with Host(tmp_path, engine="full", config=config) as host:
        engines = {engine["id"]: engine for engine in host.call("engine/list")["engines"]}
    assert {"legacy", "full", "default"} <= set(engines)
    assert [engine["id"] for engine in engines.values() if engine["active"]] == ["full"]
    assert engines["legacy"]["available"] is False
    assert "plugins.entries.legacy.enabled" in engines["legacy"]["reason"]


def handshake(host: Host, **params: object) -> list[str]:
    """What the client's log is told during a handshake with these params."""
    host.call("initialize", **params)
    told = [n["params"]["message"] for n in host.notifications if n["method"] == "window/logMessage"]
    checks = host.call("engine/doctor")["checks"]
    settings = next(check for check in checks if check["name"] == "settings")
    assert settings["ok"] is (not told)
    assert all(line in settings["message"] for line in told)
    return told


@pytest.mark.parametrize(
    ("params", "where", "right"),
    [
        (
            {"initializationOptions": {"messageFormat": "anthropic"}},
            "initializationOptions.messageFormat",
            "initializationOptions.contextEngine.messageFormat",
        ),
        (
            {"contextEngine": {"engine": "full"}},
            "params.contextEngine",
            "initializationOptions.contextEngine",
        ),
        (
            {"initializationOptions": {"contextEngine": {"limits": {"defaultTokenBudget": 5}}}},
            "initializationOptions.contextEngine.limits",
            "initializationOptions.contextEngine.config.limits",
        ),
    ],
)
def test_a_known_member_in_the_wrong_place_is_warned_about(
    params: dict[str, object], where: str, right: str, tmp_path: Path
) -> None:
    with Host(tmp_path / "state", initialized=False) as host:
        told = handshake(host, **params)
        host.close()
        log = host.log.read_text(encoding="utf-8")
    assert len(told) == 1
    assert f"{where} is not read" in told[0]
    assert right in told[0]
    assert told[0] in log


def test_members_in_their_places_are_not_warned_about(tmp_path: Path) -> None:
    options = {"messageFormat": "anthropic", "engine": "full", "host": {"id": "h"}, "config": {"log": {}}}
    with Host(tmp_path / "state", initialized=False) as host:
        assert (
            handshake(host, initializationOptions={"contextEngine": options}, clientInfo={"name": "x"}) == []
        )


def test_every_member_of_the_options_and_table_of_the_configuration_is_watched() -> None:
    assert set(Configuration.model_fields) == {camel(name) for name in CONFIGURATION}


TOOL_PAIR = [
    {"role": "user", "content": "look"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "blue"}]},
]


@pytest.mark.parametrize("whole", [True, False])
def test_messages_that_contradict_the_dialect_are_warned_about_once(whole: bool, tmp_path: Path) -> None:
    with Host(tmp_path / "state", engine="full") as host:
        for n in range(2):
            if whole:
                host.call("context/commitTurn", sessionId="s", advancementKey=str(n), messages=TOOL_PAIR)
            else:
                host.call("context/ingestBatch", sessionId="s", messages=TOOL_PAIR)
        told = [n["params"]["message"] for n in host.notifications if n["method"] == "window/logMessage"]
        checks = {check["name"]: check for check in host.call("engine/doctor")["checks"]}
    assert len(told) == 1
    assert "shape of anthropic" in told[0] and "messageFormat is openai" in told[0]
    assert told[0] in checks["settings"]["message"]


def test_messages_of_the_dialect_are_not_warned_about(tmp_path: Path) -> None:
    with Host(tmp_path / "state", engine="full", message_format="anthropic") as host:
        host.call("context/commitTurn", sessionId="s", advancementKey="1", messages=TOOL_PAIR)
        assert [n for n in host.notifications if n["method"] == "window/logMessage"] == []


@pytest.mark.parametrize(("capabilities", "offered"), [([], False), (["runtime/complete"], True)])
def test_a_tool_that_needs_a_model_is_announced_only_where_there_is_one(
    capabilities: list[str], offered: bool, tmp_path: Path
) -> None:
    with Host(tmp_path, initialized=False, engine="lossless", hostCapabilities=capabilities) as host:
        announced = host.initialize()["tools"]
        listed = [tool["name"] for tool in host.call("tools/list")["tools"]]
    assert announced == listed
    assert ("context_ask" in announced) is offered
