"""Clients that know nothing of us drive the sidecar: those of Neovim, Emacs and Visual Studio Code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.outside.programs import SERVER, emacs, neovim, node

MESSAGES = [
    {"role": "user", "content": '你好，世界 😀 — "quoted"\nnew line'},
    {"role": "assistant", "content": "上下文 é ñ", "extra": {"kept": [1, 2.5, True]}},
]
NEXT = {"role": "user", "content": "再见"}


def request(method: str, **params: object) -> dict[str, object]:
    return {"kind": "request", "method": method, "params": params}


def notification(method: str) -> dict[str, object]:
    return {"kind": "notification", "method": method, "params": {}}


SCRIPT = [
    request(
        "initialize",
        processId=None,
        rootUri=None,
        capabilities={},
        initializationOptions={"contextEngine": {"host": {"id": "outside"}, "protocolVersion": "1.0"}},
    ),
    notification("initialized"),
    *(request("context/ingest", sessionId="会话 1", message=message) for message in MESSAGES),
    request("context/ingestBatch", sessionId="会话 1", messages=[NEXT]),
    request("context/assemble", sessionId="会话 1", tokenBudget=4000),
    request("shutdown"),
    notification("exit"),
]

Play = Callable[[Path, Path], Any]

CLIENTS: dict[str, Play] = {
    "neovim": lambda script, home: neovim("client.lua", home, SCRIPT=str(script)),
    "emacs": lambda script, home: emacs("client.el", home, SCRIPT=str(script)),
    "vscode-jsonrpc": lambda script, home: node("client.mjs", home, str(script), SERVER, "serve"),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_of_another_maker_ingests_and_assembles(client: str, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT, ensure_ascii=False), encoding="utf-8")
    played = CLIENTS[client](script, tmp_path)
    initialized, first, second, batch, assembled, shut_down = played["results"]
    assert initialized["serverInfo"]["name"] == "context-sidecar"
    assert initialized["capabilities"]["experimental"]["contextEngine"]["protocolVersion"] == "1.0"
    assert [first["ingested"], first["turnId"], second["turnId"]] == [True, "t1", "t1"]
    assert batch["ingestedCount"] == 1
    assert assembled["messages"] == [*MESSAGES, NEXT]
    assert 0 < assembled["estimatedTokens"] <= 4000
    assert shut_down is None
    assert played["exitCode"] == 0
