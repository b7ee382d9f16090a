"""Hosts that are ended with their test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.sidecar_host import Host

StartHost = Callable[..., Host]


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
        host.kill()


@pytest.fixture
def host(start_host: StartHost) -> Host:
    """A host that speaks chat completions."""
    return start_host()
