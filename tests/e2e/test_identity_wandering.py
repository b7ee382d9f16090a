"""Whatever hosts do to their transcripts, nothing is lost or kept twice, and an own answer answers itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.e2e.inner_host import InnerHost
from tests.e2e.sidecar_host import Host, Params
from tests.e2e.talk import DIALECTS, Talk
from tests.e2e.wandering_host import ENGINES, Plan, WanderingHost, sessions

PRUNING = {
    "enabled": True,
    "startShare": 0.0,
    "recentShare": 0.05,
    "recentGroups": 1,
    "trimTokens": 20,
    "headChars": 10,
    "tailChars": 5,
    "clearTokens": 5,
}
"""So that even the short results of these hosts are pruned."""

Play = Callable[[Plan], None]
EXAMPLES, MANY = 5, 400


def played(play: Play, examples: int) -> None:
    """Play so many sessions; always the same ones, unless they are many."""
    given(sessions)(
        settings(
            max_examples=examples,
            derandomize=examples < MANY,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
        )(play)
    )()


def remembering(params: Params) -> Any:
    """What the host's own source of memory says."""
    content = f"what was said about {params.get('prompt', '')[:20].replace('#', '')}"
    return {"fragments": [{"id": content, "content": content, "tokens": 10, "priority": 50}]}


def wander(folder: Path, dialect: str, engine: str, config: Params, examples: int) -> None:
    """Play sessions with an application in this process."""
    capabilities = ["memory/getContext"]
    host = InnerHost(
        folder, message_format=dialect, engine=engine, hostCapabilities=capabilities, config=config
    )
    host.answerers["memory/getContext"] = remembering

    def play(plan: Plan) -> None:
        if plan["told"] == "with memory":
            host.call("memory/register", name="remembering", injectionPoints=["per-message"])
        else:
            host.call("memory/unregister", name="remembering")
        WanderingHost(host, Talk(dialect), plan).finish()

    try:
        played(play, examples)
    finally:
        host.close()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_wandering_host_loses_nothing(engine: str, dialect: str, tmp_path: Path) -> None:
    wander(tmp_path, dialect, engine, {}, EXAMPLES)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_wandering_host_loses_nothing_where_results_are_pruned(dialect: str, tmp_path: Path) -> None:
    wander(tmp_path, dialect, "default", {"pruning": PRUNING}, EXAMPLES)


@pytest.mark.soak
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("engine", ENGINES)
def test_many_wandering_hosts_lose_nothing(engine: str, dialect: str, tmp_path: Path) -> None:
    for number, config in enumerate(({}, {"pruning": PRUNING})):
        wander(tmp_path / str(number), dialect, engine, config, MANY)


class Killed(Host):
    """A host whose sidecar is killed wherever another one is ended in order."""

    def restart(self, *, kill: bool = True) -> None:
        """Go on with a new process on the same state directory."""
        super().restart(kill=kill)


def wander_through_kills(folder: Path, dialect: str, engine: str, examples: int) -> None:
    """Play sessions with a process that is killed and started again in between."""
    with Killed(folder, message_format=dialect, engine=engine) as host:
        played(lambda plan: WanderingHost(host, Talk(dialect), plan).finish(), examples)


@pytest.mark.parametrize(("dialect", "engine"), [("openclaw", "lossless"), ("openai", "terse")])
def test_a_wandering_host_loses_nothing_by_kills(dialect: str, engine: str, tmp_path: Path) -> None:
    wander_through_kills(tmp_path, dialect, engine, EXAMPLES)


@pytest.mark.soak
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("engine", ENGINES)
def test_many_wandering_hosts_lose_nothing_by_kills(engine: str, dialect: str, tmp_path: Path) -> None:
    wander_through_kills(tmp_path, dialect, engine, MANY // 10)
