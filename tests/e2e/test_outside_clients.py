"""Clients that know nothing of us drive the sidecar: those of Neovim, Emacs and Visual Studio Code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.editor import TREES
from tests.e2e.outside.programs import SERVER, emacs, neovim, node
from tests.e2e.transcript_files import ASK, OUTPUT, THANKS, lines, openai

MESSAGES = [
    {"role": "user", "content": '你好，世界 😀 — "quoted"\nnew line'},
    {"role": "assistant", "content": "上下文 é ñ", "extra": {"kept": [1, 2.5, True]}},
]
URI = "file:///会话%201.jsonl"
NEXT = {"role": "user", "content": "再见"}


def request(method: str, **params: object) -> dict[str, object]:
    return {"kind": "request", "method": method, "params": params}


def notification(method: str, **params: object) -> dict[str, object]:
    return {"kind": "notification", "method": method, "params": params}


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
EDITORS = ["neovim", "emacs"]


def played_by(client: str, script: list[dict[str, object]], home: Path) -> Any:
    """What a client prints that plays a script."""
    file = home / "script.json"
    file.write_text(json.dumps(script, ensure_ascii=False), encoding="utf-8")
    return CLIENTS[client](file, home)


@pytest.mark.parametrize("client", [*EDITORS, pytest.param("vscode-jsonrpc", marks=pytest.mark.hosts)])
def test_a_client_of_another_maker_ingests_and_assembles(client: str, tmp_path: Path) -> None:
    played = played_by(client, SCRIPT, tmp_path)
    initialized, first, second, batch, assembled, shut_down = played["results"]
    assert initialized["serverInfo"]["name"] == "context-sidecar"
    assert initialized["capabilities"]["experimental"]["contextEngine"]["protocolVersion"] == "1.0"
    assert [first["ingested"], first["turnId"], second["turnId"]] == [True, "t1", "t1"]
    assert batch["ingestedCount"] == 1
    assert assembled["messages"] == [*MESSAGES, NEXT]
    assert 0 < assembled["estimatedTokens"] <= 4000
    assert shut_down is None
    assert played["exitCode"] == 0


@pytest.mark.parametrize("client", [*EDITORS, pytest.param("vscode-jsonrpc", marks=pytest.mark.hosts)])
def test_a_client_of_another_maker_gets_the_features_of_a_language(client: str, tmp_path: Path) -> None:
    text = lines(*openai())
    at = {"textDocument": {"uri": URI}}
    result = {**at, "position": {"line": 2, "character": 12}}
    item = {"uri": URI, "languageId": "json", "version": 1, "text": text}
    edit = {"range": {"start": {"line": 5, "character": 0}, "end": {"line": 5, "character": 0}}}
    changes = [{**edit, "text": json.dumps(NEXT, ensure_ascii=False) + "\n"}]
    script = [
        request("initialize", processId=None, rootUri=None, capabilities=TREES),
        notification("initialized"),
        notification("textDocument/didOpen", textDocument=item),
        request("textDocument/documentSymbol", **at),
        request("textDocument/hover", **result),
        request("textDocument/definition", **result),
        request("textDocument/foldingRange", **at),
        request("textDocument/codeLens", **at),
        notification(
            "textDocument/didChange", textDocument={"uri": URI, "version": 2}, contentChanges=changes
        ),
        request("textDocument/documentSymbol", **at),
        notification("textDocument/didClose", **at),
        request("shutdown"),
        notification("exit"),
    ]
    played = played_by(client, script, tmp_path)
    initialized, symbols, hover, definition, folds, lenses, edited, shut_down = played["results"]
    assert initialized["capabilities"]["documentSymbolProvider"]
    assert [symbol["name"] for symbol in symbols] == [f"t1: {ASK}", f"t2: {THANKS}"]
    assert "message 3 of 5" in hover["contents"]["value"] and OUTPUT in hover["contents"]["value"]
    assert [place["range"]["start"]["line"] for place in definition] == [1]
    assert [(fold["startLine"], fold["endLine"]) for fold in folds] == [(0, 3)]
    assert [lens["command"]["title"][:3] for lens in lenses] == ["t1:", "t2:"]
    assert [symbol["name"] for symbol in edited][2:] == [f"t3: {NEXT['content']}"]
    assert shut_down is None
    assert played["exitCode"] == 0
