"""The doctor finds what a user would meet, and names the remedy for this cause."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.client_kit import SidecarClient, run_cli, user, with_sidecar

HUNG = """
import asyncio
from sidecar.engine import EngineInfo, StoringEngine

class Hung(StoringEngine):
    info = EngineInfo(id="hung", name="Hung", version="1")

    async def assemble(self, session, request):
        await asyncio.Event().wait()
"""


def checks(
    tmp_path: Path, config: str = "", *arguments: str, code: int = 1, env: Mapping[str, str] | None = None
) -> dict[str, list[dict[str, Any]]]:
    """What the doctor says, by the names of its checks."""
    file = tmp_path / "config.toml"
    file.write_text(config, encoding="utf-8")
    done = run_cli(
        "doctor", "--json", "--config", str(file), *arguments, state_dir=tmp_path / "state", env=env
    )
    found: dict[str, list[dict[str, Any]]] = {}
    for check in json.loads(done.stdout)["checks"]:
        found.setdefault(check["name"], []).append(check)
    assert done.returncode == code, found
    return found


def nobody() -> str:
    """An address of this machine where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def stored(state: Path, count: int = 1) -> None:
    async def tell(client: SidecarClient) -> None:
        for n in range(count):
            await client.ingest("talk", user(f"{n} " + "word " * 500))

    with_sidecar(state, tell, engine="full")


def test_every_wrong_setting_is_named_at_once_and_none_of_them_is_an_engine(tmp_path: Path) -> None:
    config = "[limits]\nmaxInFlight = 0\ndefaultTokenBudget = 'many'\n[store]\nkind = 'tape'\n"
    found = checks(tmp_path, config)
    assert list(found) == ["settings"]
    said = " ".join(check["message"] for check in found["settings"])
    assert all(name in said for name in ("limits.maxInFlight", "limits.defaultTokenBudget", "store.kind"))
    assert all("config validate" in check["fix"] for check in found["settings"])


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ("[store]\nkind = 'postgres'\n", "store.url"),
        ("[model]\nbaseUrl = 'http://127.0.0.1:1'\n", "model.name"),
        ("[episodes]\nenabled = true\nbackend = 'webhook'\n", "episodes.url"),
        ("[episodes]\nsecret = 'whsec_'\n", "episodes.secret"),
    ],
)
def test_a_setting_that_lacks_another_one_is_wrong(config: str, word: str, tmp_path: Path) -> None:
    assert word in checks(tmp_path, config)["settings"][0]["message"]
    file = str(tmp_path / "config.toml")
    validated = run_cli("config", "validate", "--config", file, state_dir=tmp_path)
    assert validated.returncode == 1
    assert word in validated.stderr


def test_a_counter_whose_package_is_missing_is_refused_before_any_call(tmp_path: Path) -> None:
    without = tmp_path / "without"
    without.mkdir()
    lacking = "import sys\nsys.modules['rs_bpe'] = sys.modules['toktok'] = None\n"
    (without / "sitecustomize.py").write_text(lacking)
    config = "[tokens]\ncounter = 'o200k'\n"
    found = checks(tmp_path, config, env={"PYTHONPATH": str(without)})
    assert "tokens.counter" in found["settings"][0]["message"]


def test_damaged_pages_are_found(tmp_path: Path) -> None:
    state = tmp_path / "state"
    stored(state, 60)
    file = state / "context.db"
    data = bytearray(file.read_bytes())
    for at in range(len(data) // 2, len(data) // 2 + 20_000):
        data[at] ^= 0x55
    file.write_bytes(data)
    assert any(not check["ok"] for check in checks(tmp_path)["pages"])


def test_a_model_that_cannot_be_reached_is_found(tmp_path: Path) -> None:
    config = f"[model]\nbaseUrl = '{nobody()}/v1?api_key=sesame'\nname = 'm'\n"
    found = checks(tmp_path, config)["model"][0]
    assert not found["ok"]
    assert "model.baseUrl" in found["fix"]
    assert "sesame" not in json.dumps(found)


def test_a_collector_that_cannot_be_reached_is_found(tmp_path: Path) -> None:
    found = checks(tmp_path, "[telemetry]\nenabled = true\n", env={"OTEL_EXPORTER_OTLP_ENDPOINT": nobody()})
    assert not found["telemetry"][0]["ok"]


def test_a_webhook_without_its_package_is_found(tmp_path: Path) -> None:
    without = tmp_path / "without"
    without.mkdir()
    (without / "sitecustomize.py").write_text("import sys\nsys.modules['aiohttp'] = None\n")
    config = f"[episodes]\nenabled = true\nbackend = 'webhook'\nurl = '{nobody()}'\n"
    found = checks(tmp_path, config, env={"PYTHONPATH": str(without)})["episodes"][0]
    assert not found["ok"]
    assert "extra `http`" in found["fix"]


def test_a_hung_engine_is_named_soon(tmp_path: Path) -> None:
    engine = tmp_path / "hung"
    engine.mkdir()
    (engine / "hung_engine.py").write_text(HUNG)
    entry_points = '[project.entry-points."context_sidecar.engines"]'
    entry = f'[project]\nname = "hung"\n{entry_points}\nhung = "hung_engine:Hung"'
    (engine / "pyproject.toml").write_text(entry)
    found = checks(tmp_path, f"[plugins.load]\npaths = ['{engine}']\n", "--engine", "hung")["turn"][0]
    assert "did not answer a turn within 15 s" in found["message"]


def test_a_state_folder_that_is_open_to_all_is_closed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    stored(state)
    state.chmod(0o777)
    (state / "context.db").chmod(0o666)
    assert "open to other users" in checks(tmp_path, code=0)["folder"][0]["message"]
    assert state.stat().st_mode & 0o002 == 0
    assert (state / "context.db").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", ["", "context.db"])
def test_a_store_of_somebody_else_is_refused(name: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    stored(state)
    os.chown(state / name, 12345, 12345)
    found = checks(tmp_path)
    assert "belongs to another user" in found["store"][0]["message"]
