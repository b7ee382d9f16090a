"""Tools of an engine's own work the same wherever the engine runs, and fail alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.sidecar_host import Host
from tests.engine_gallery import GALLERY, is_served, tell

ENGINE_FAILED = 1005
LOOKED = {
    "count": 12,
    "same": True,
    "turn": 5,
    "hits": [3, 7, 11],
    "found": 3,
    "summaries": 0,
    "read": "question 1: how much is 1 and 1?",
}


@pytest.fixture(scope="module", params=["inline", "process"])
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A sidecar whose engine has tools of its own."""
    folder = tmp_path_factory.mktemp(request.param)
    config = folder / "config.toml"
    config.write_text(
        f'[plugins.load]\npaths = ["{GALLERY}"]\n[plugins.entries.tooled]\nisolation = "{request.param}"\n'
        "timeoutsMs = { call = 2000 }\n",
        encoding="utf-8",
    )
    with Host(folder / "state", environment={"CONTEXT_SIDECAR_CONFIG": str(config)}, engine="tooled") as host:
        tell(host, "s", range(1, 4))
        yield host


def called(host: Host, name: str, **arguments: Any) -> Any:
    return host.call("tools/call", sessionId="s", name=name, arguments=arguments)


def test_its_tools_are_listed_beside_ours(host: Host) -> None:
    tools = {tool["name"]: tool for tool in host.call("tools/list", sessionId="s")["tools"]}
    assert {"context_search", "look", "broken"} <= set(tools)
    assert tools["look"]["description"] == "Looks at the session in every way there is."
    assert tools["look"]["inputSchema"]["properties"] == {"word": {"type": "string"}}


def test_a_tool_reads_its_session_in_every_way(host: Host) -> None:
    answer = called(host, "look", word="sum")
    assert answer["content"] == [{"type": "text", "text": "12 messages"}]
    assert answer["structuredContent"] == LOOKED


def test_what_a_tool_refuses_is_told(host: Host) -> None:
    refused = host.refusal("tools/call", sessionId="s", name="broken", arguments={"how": "argument"})
    assert refused.code == -32602 and refused.data["path"] == "/arguments/how"
    for how, why in (("failed", "Ask for something else."), ("query", "This cannot be searched for")):
        answer = called(host, "broken", how=how)
        assert answer["isError"] and why in answer["content"][0]["text"]


def test_a_long_answer_is_cut_and_says_so(host: Host) -> None:
    text = called(host, "broken", how="long")["content"][0]["text"]
    assert len(text) <= 16_000 and text.endswith("characters are left out: ask for less ---")


@pytest.mark.parametrize("how", ["raises", "none", "structured", "hangs"])
def test_a_tool_that_fails_hurts_its_own_call_alone(how: str, host: Host) -> None:
    refused = host.refusal("tools/call", sessionId="s", name="broken", arguments={"how": how})
    assert refused.code == ENGINE_FAILED and refused.data["method"] == "tools/call"
    assert json.dumps(refused.data).find("/tests/") < 0
    assert called(host, "look")["structuredContent"]["count"] == 12
    is_served(host, f"after {how}")


def test_a_tool_that_ends_its_process_is_told_and_another_one_serves(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[plugins.load]\npaths = ["{GALLERY}"]\n', encoding="utf-8")
    environment = {"CONTEXT_SIDECAR_CONFIG": str(config)}
    with Host(tmp_path / "state", environment=environment, engine="tooled") as host:
        tell(host, "s", range(1, 4))
        refused = host.refusal("tools/call", sessionId="s", name="broken", arguments={"how": "exits"})
        assert refused.code == ENGINE_FAILED and "exit code 3" in refused.data["message"]
        assert called(host, "look")["structuredContent"] == LOOKED
