"""Hosts that are ended with their test, and one a dialect that serves many tests."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway_process import LIMIT_S, Running, Start
from tests.e2e.sidecar_host import Host
from tests.e2e.talk import DIALECTS, Talk
from tests.model_api import ModelApis

StartHost = Callable[..., Host]
_numbers = count(1)


@pytest.fixture
def start_host(tmp_path: Path) -> Iterator[StartHost]:
    """Starts hosts on one state directory."""
    running: list[Host] = []

    def start(**options: Any) -> Host:
        host = Host(tmp_path / "state", **options)
        running.append(host)
        return host

    yield start
    for host in running:
        host.close()


@pytest.fixture(scope="session")
def serving_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Host]]:
    """One host a dialect, started when first asked for; all of them on one state directory."""
    running: dict[str, Host] = {}
    folder = tmp_path_factory.mktemp("serving")

    def serving(dialect: str) -> Host:
        if dialect not in running:
            running[dialect] = Host(folder / "state", message_format=dialect)
        return running[dialect]

    yield serving
    for host in running.values():
        host.close()


@pytest.fixture(scope="session")
def hosts_of_both_framings(
    tmp_path_factory: pytest.TempPathFactory, serving_hosts: Callable[[str], Host]
) -> Iterator[Callable[[bool], Host]]:
    """A host that sends headers, or one that sends lines."""
    lines = Host(tmp_path_factory.mktemp("lines") / "state", lines=True)
    yield lambda by_lines: lines if by_lines else serving_hosts("openai")
    lines.close()


@pytest.fixture
def host(serving_hosts: Callable[[str], Host]) -> Host:
    """A host that speaks chat completions and serves other tests too."""
    return serving_hosts("openai")


@pytest.fixture(params=DIALECTS)
def talk(request: pytest.FixtureRequest) -> Talk:
    """Every dialect in turn."""
    return Talk(request.param)


@pytest.fixture
def speaker(talk: Talk, serving_hosts: Callable[[str], Host]) -> Host:
    """A host that speaks the dialect of `talk`."""
    return serving_hosts(talk.dialect)


@pytest.fixture
def session() -> str:
    """A session id that no other test uses."""
    return f"session-{next(_numbers)}"


@pytest.fixture
def upstream() -> Iterator[ModelApis]:
    """The APIs of model providers."""
    with ModelApis() as apis:
        yield apis


@pytest.fixture
def gateway(tmp_path: Path, upstream: ModelApis) -> Iterator[Start]:
    """Starts gateways in front of `upstream`, on one state directory."""
    running: list[Running] = []

    def begin(*options: str) -> Running:
        running.append(Running(tmp_path / "state", upstream.url, *options))
        return running[-1]

    yield begin
    for each in running:
        assert each.process.stderr is not None
        each.process.kill()
        each.process.wait(LIMIT_S)
        each.process.stderr.close()
