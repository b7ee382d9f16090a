"""The log on stderr: what a line is about, as text or as JSON, and never what a message says."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.sidecar_host import Host
from tests.e2e.talk import Talk, turns
from tests.engine_gallery import assemble, configured, tell

AS_JSON = {"CONTEXT_SIDECAR_LOG_FORMAT": "json"}
DEBUG = {**AS_JSON, "CONTEXT_SIDECAR_LOG_LEVEL": "debug"}


def lines(host: Host) -> list[dict[str, Any]]:
    """What was logged up to the end of the process, every line being an object."""
    host.stop()
    return [json.loads(line) for line in host.log.read_text().splitlines()]


def about(said: Sequence[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [line for line in said if line.get("event") == event]


@pytest.mark.parametrize("isolation", ["inline", "process"])
def test_a_failure_of_an_engine_tells_where_it_happened(isolation: str, tmp_path: Path) -> None:
    with configured(tmp_path, isolation, environment=AS_JSON) as host:
        tell(host, "bad raises 1")
        id = host.send("context/assemble", sessionId="bad raises 1", tokenBudget=600)
        host.wait_all([id])
        failed = about(lines(host), "engineFailed")
    assert len(failed) == 1
    known = {"method": "context/assemble", "requestId": id, "sessionId": "bad raises 1", "engine": "gallery"}
    assert known.items() <= failed[0].items()
    assert failed[0]["code"] == 1005 and failed[0]["ms"] >= 0 and failed[0]["level"] in ("warning", "error")
    assert failed[0]["time"].endswith("Z") and failed[0]["logger"].startswith("sidecar.")


def test_lines_of_an_engines_process_have_its_name_and_the_request(tmp_path: Path) -> None:
    with configured(tmp_path, "process", environment=AS_JSON) as host:
        for kind in ("raises", "prints"):
            tell(host, f"bad {kind} 1")
        id = host.send("context/assemble", sessionId="bad raises 1", tokenBudget=600)
        host.wait_all([id])
        assemble(host, "bad prints 1")
        said = [line for line in lines(host) if line["logger"] == "sidecar.engines.gallery"]
    assert all(line["engine"] == "gallery" for line in said)
    raised = next(line for line in said if "ValueError" in line["message"])
    known = {"method": "context/assemble", "requestId": id, "sessionId": "bad raises 1", "level": "error"}
    assert known.items() <= raised.items() and "Traceback" in raised["message"]
    assert any(line["message"] == "Hello from the engine" for line in said)


def test_a_quarantine_and_its_refusals_are_told_once(tmp_path: Path) -> None:
    with configured(tmp_path, "inline", environment=AS_JSON) as host:
        tell(host, "bad raises 1")
        for _ in range(7):
            host.refusal("context/assemble", sessionId="bad raises 1", tokenBudget=600)
        said = lines(host)
    assert len(about(said, "engineFailed")) == 5
    (begun,) = about(said, "quarantine")
    assert begun["engine"] == "gallery" and begun["sessionId"] == "bad raises 1"


def test_compactions_are_told_at_info(tmp_path: Path) -> None:
    with Host(tmp_path / "state", environment=AS_JSON, arguments=["--log-level", "info"]) as host:
        tell(host, "s", range(1, 30))
        id = host.send("context/compact", sessionId="s", tokenBudget=500, force=True)
        host.wait(id)
        (done,) = about(lines(host), "compaction")
    assert (done["message"], done["engine"], done["requestId"]) == ("compacted", "default", id)
    assert done["tokensBefore"] > done["tokensAfter"] > 0


def test_trouble_with_the_store_is_an_error(tmp_path: Path) -> None:
    config = {"store": {"kind": "postgres", "url": "postgresql://127.0.0.1:1/none"}}
    with Host(tmp_path / "state", environment=AS_JSON, initialized=False, config=config) as host:
        options = {"contextEngine": host.options}
        refused = host.refusal("initialize", capabilities={}, initializationOptions=options)
        host.end_input()
        host.drain()
        said = [json.loads(line) for line in host.log.read_text().splitlines()]
    assert refused.code == 1006
    (trouble,) = about(said, "storeUnavailable")
    assert (trouble["level"], trouble["code"], trouble["method"]) == ("error", 1006, "initialize")


def test_slow_requests_are_told(tmp_path: Path) -> None:
    with configured(tmp_path, "process", environment=AS_JSON, config={"log": {"slowCallMs": 1}}) as host:
        tell(host, "s")
        id = host.send("context/assemble", sessionId="s", tokenBudget=600)
        host.wait(id)
        slow = about(lines(host), "slowCall")
    (line,) = [line for line in slow if line["requestId"] == id]
    assert line["ms"] >= 1 and line["sessionId"] == "s" and line["level"] == "warning"


@pytest.mark.parametrize("isolation", ["inline", "process"])
def test_at_its_loudest_the_log_has_no_text_of_messages(isolation: str, tmp_path: Path) -> None:
    talk = Talk("openai")
    said = [talk.user("What of chrysanthemums?"), talk.assistant("Nothing of chrysanthemums.")]
    with configured(tmp_path, isolation, environment=DEBUG) as host:
        host.call("context/afterTurn", sessionId="s", messages=said)
        host.call("context/assemble", sessionId="s", prompt="more chrysanthemums")
        host.call("context/compact", sessionId="s", customInstructions="chrysanthemums first")
        host.refusal("context/ingest", sessionId="s", message="chrysanthemum")
        host.refusal("context/ingest", sessionId="s", message={"role": 7, "content": "chrysanthemum"})
        host.refusal("context/assemble", sessionId="bad raises 1", messages=said)
        told = lines(host)
    assert not [line for line in told if "chrysanthemum" in str(line)]
    assert {"context/afterTurn", "context/compact"} <= {line.get("method") for line in told}


def test_a_line_for_people_ends_with_what_it_is_about(tmp_path: Path) -> None:
    with configured(tmp_path, "inline") as host:
        host.refusal("context/assemble", sessionId="bad raises 1", messages=turns(Talk("openai"), 1))
        host.stop()
        told = host.log.read_text()
    (line,) = [line for line in told.splitlines() if "event=engineFailed" in line]
    assert 'sessionId="bad raises 1"' in line and line.endswith("]") and " ERROR " in line


def test_the_command_line_wins_over_host_environment_and_file(tmp_path: Path) -> None:
    with Host(
        tmp_path / "state",
        environment={"CONTEXT_SIDECAR_LOG_FORMAT": "text"},
        arguments=["--log-format=json", "--log-level", "debug"],
        config={"log": {"format": "text", "level": "error"}},
    ) as host:
        host.call("engine/doctor")
        assert any(line.get("method") == "engine/doctor" for line in lines(host))


def test_a_variable_that_means_nothing_is_warned_about(tmp_path: Path) -> None:
    with Host(tmp_path / "state", environment={"CONTEXT_SIDECAR_LOG_LEVEL": "loud"}) as host:
        report = host.call("engine/doctor")
    settings = next(check for check in report["checks"] if check["name"] == "settings")
    assert not settings["ok"] and "CONTEXT_SIDECAR_LOG_LEVEL is 'loud'" in settings["message"]
