"""Runs a coroutine against a real sidecar, with a limit on the whole of it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sidecar.client import SidecarClient

T = TypeVar("T")

LIMIT_S = 60.0
"""Longest time that any test of a process may take."""
PROGRAM = str(Path(sys.executable).with_name("context-sidecar"))
SERVE = (PROGRAM, "serve")

Message = dict[str, Any]


def within_limit(work: Awaitable[T]) -> T:
    """The result of `work`, or a failure once the limit is over."""

    async def bounded() -> T:
        async with asyncio.timeout(LIMIT_S):
            return await work

    return asyncio.run(bounded())


def with_sidecar(state_dir: Path, work: Callable[[SidecarClient], Awaitable[T]], **options: Any) -> T:
    """What `work` makes of a fresh sidecar."""

    async def inside() -> T:
        async with SidecarClient.start(SERVE, state_dir=state_dir, **options) as client:
            return await work(client)

    return within_limit(inside())


def run_cli(
    *arguments: str, state_dir: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """One run of the command line, with a configuration and a state of its own."""
    surroundings = {
        **os.environ,
        "CONTEXT_SIDECAR_STATE_DIR": str(state_dir),
        "XDG_CONFIG_HOME": str(state_dir / "config"),
        "COLUMNS": "120",
        **(env or {}),
    }
    surroundings.pop("CONTEXT_SIDECAR_CONFIG", None)
    return subprocess.run(
        [PROGRAM, *arguments],
        capture_output=True,
        encoding="utf-8",
        env=surroundings,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT_S,
        check=False,
    )


def user(text: str) -> Message:
    """A user message of chat completions."""
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    """An assistant message of chat completions."""
    return {"role": "assistant", "content": text}


def write_lines(path: Path, rows: Iterable[object]) -> Path:
    """A file of JSON Lines."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def conversation(turns: int, words: int) -> Sequence[Message]:
    """So many questions and answers of so many words each."""
    messages: list[Message] = [{"role": "system", "content": "Answer briefly."}]
    for turn in range(turns):
        messages.append(user(f"Question {turn}: " + "why does the river bend " * (words // 5)))
        messages.append(assistant(f"Answer {turn}: " + "since the bank gives way " * (words // 5)))
    return messages
