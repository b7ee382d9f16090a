"""Agent frameworks are in an environment of their own: `make host-frameworks` runs the tests inside them."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.kit import BUDGET, SERVE

FRAMEWORKS = {
    "agent_framework": "test_agent_framework*.py",
    "agents": "test_openai_agents*.py",
    "langchain": "test_langchain*.py",
    "pydantic_ai": "test_pydantic_ai*.py",
}

collect_ignore_glob = [files for module, files in FRAMEWORKS.items() if find_spec(module) is None]


@pytest.fixture(autouse=True)
def loop() -> Iterator[None]:
    """Runs without `await` take the loop of the thread; frameworks would make one, and leave it open."""
    loops = [asyncio.new_event_loop()]
    asyncio.set_event_loop(loops[0])
    yield
    with suppress(RuntimeError):
        loops.append(asyncio.get_event_loop_policy().get_event_loop())
    asyncio.set_event_loop(None)
    for each in loops:
        each.close()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The folder of the store."""
    return tmp_path / "state"


@pytest.fixture
def make(state: Path) -> Iterator[Callable[..., Any]]:
    """Makes adapters on one store, and ends their processes."""
    made: list[Any] = []

    def make_one(adapter: Callable[..., Any], **options: Any) -> Any:
        made.append(adapter(**{"token_budget": BUDGET, "state_dir": state, "command": SERVE, **options}))
        return made[-1]

    yield make_one
    for one in made:
        one.sidecar.close()


@pytest.fixture
def installed(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program `context-sidecar` is in the path, as the lines of the README presume."""
    program = tmp_path / "bin" / "context-sidecar"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{SERVE[0]}" {" ".join(SERVE[1:-1])} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("CONTEXT_SIDECAR_STATE_DIR", str(state))
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
