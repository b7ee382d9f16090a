"""Neovim's language client shows the outline of a transcript, and keeps it in step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.outside.programs import neovim
from tests.e2e.transcript_files import ANSWER, ASK, OUTPUT, THANKS, lines, openai

ADDED = json.dumps({"role": "user", "content": "再来一次"}, ensure_ascii=False)


def names(symbols: list[dict[str, Any]]) -> list[Any]:
    return [
        (symbol["name"], names(symbol["children"])) if symbol.get("children") else symbol["name"]
        for symbol in symbols
    ]


def test_neovim_gets_the_symbols_of_a_transcript_and_of_what_is_typed(tmp_path: Path) -> None:
    file = tmp_path / "会话 1.jsonl"
    file.write_text(lines(*openai()), encoding="utf-8")
    seen = neovim("symbols.lua", tmp_path, TRANSCRIPT=str(file), ADDED=ADDED)
    assert seen["provider"] is True
    before, after = names(seen["before"]), names(seen["after"])
    call = 'bash({"command": "ls"})'
    result = f"bash: {' '.join(OUTPUT.split())}"
    assert before == [
        (f"t1: {ASK}", [ASK, (call, ["bash"]), result, ANSWER]),
        (f"t2: {THANKS}", [THANKS]),
    ]
    asked = ASK.replace("files", "folders")
    assert after == [
        (f"t1: {asked}", [asked, (call, ["bash"]), result, ANSWER]),
        (f"t2: {THANKS}", [THANKS]),
        ("t3: 再来一次", ["再来一次"]),
    ]
    assert [symbol["range"]["start"]["line"] for symbol in seen["after"]] == [0, 4, 5]
    assert seen["exitCode"] == 0
