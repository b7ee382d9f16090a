"""What the tests of all frameworks share: the sidecar that serves, the scene, and what is in the store."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar

from sidecar.client import SidecarClient
from sidecar.tokens.estimate import EstimateCounter

SERVE = (sys.executable, "-P", "-m", "sidecar.cli.main", "serve")
BUDGET = 6_000
TURNS = 40
CALLS = 3 * TURNS + 1
"""Two calls of `look` and an answer in each turn, and one call of `context_search` in one of them."""
SUMMARY = re.compile(r"\[ctx:summary:\S+\]")
_README = Path(__file__).parents[2] / "sidecar" / "integrations" / "README.md"
_COUNTER = EstimateCounter()
_T = TypeVar("_T")


def result_of(work: Coroutine[Any, Any, _T]) -> _T:
    """The result; `asyncio.run` would take away the loop of the thread, which `run_sync` needs."""
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(work)


def place(number: int) -> str:
    """What the tool of the agents says."""
    return f"place {number}: " + "grass and stones " * 60


def question(turn: int) -> str:
    """What the user says."""
    heron = " I saw the first heron of the year in Bergen." if turn == 0 else ""
    return f"Question {turn}?{heron}"


def tokens(texts: Iterable[str]) -> int:
    """What the texts cost."""
    return sum(map(_COUNTER.count, texts))


def kill(pid: int | None) -> None:
    """End a sidecar as a crash would."""
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def stored(state: Path, host: str) -> dict[str, int]:
    """The sessions in a store, and how many messages each has."""

    async def look_up() -> dict[str, int]:
        async with SidecarClient.start(SERVE, state_dir=state, host=host) as client:
            return {entry.session_id: entry.message_count async for entry in client.sessions()}

    return result_of(look_up())


def readme_lines(name: str) -> str:
    """The example of a framework in the README, whose first line is its name in a comment."""
    page = _README.read_text(encoding="utf-8")
    [code] = re.findall(rf"```python\n# {name}\n(.*?)```", page, re.DOTALL)
    return code


def run_readme(name: str, names: dict[str, object]) -> dict[str, object]:
    """The names after the example has run, with those that it presumes."""
    exec(compile(readme_lines(name), "README.md", "exec"), names)
    return names
