"""Starts the sidecar that a command talks to."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from sidecar.cli.options import Common
from sidecar.client.sidecar_client import DEFAULT_TIMEOUT, SidecarClient
from sidecar.import_path import absolute_path
from sidecar.protocol.base import MessageFormat

T = TypeVar("T")


def own_command(name: str) -> list[str]:
    """A command of this installation; `-P` keeps the working directory off the import path."""
    return [sys.executable, "-P", "-m", "sidecar.cli.main", name]


def sidecar_command(common: Common) -> list[str]:
    """The command that starts a sidecar of this installation."""
    command = own_command("serve")
    return command if common.config is None else [*command, "--config", str(common.config)]


def client_for(
    common: Common,
    *,
    engine: str | None = None,
    message_format: MessageFormat = "openai",
    namespace: str | None = None,
    config: Mapping[str, object] | None = None,
    timeout_s: float = DEFAULT_TIMEOUT,
) -> SidecarClient:
    """A client that starts its sidecar when it is entered; the end of its stderr is kept for errors."""
    return SidecarClient.start(
        sidecar_command(common),
        engine=engine,
        message_format=message_format,
        namespace=namespace,
        state_dir=common.state_dir,
        env=absolute_path(os.environ),
        config=config,
        timeout_s=timeout_s,
        on_stderr=_ignore,
    )


def with_client(client: SidecarClient, work: Callable[[SidecarClient], Awaitable[T]]) -> T:
    """Open the client, run `work` with it, and return the result."""

    async def inside() -> T:
        async with client:
            return await work(client)

    return asyncio.run(inside())


def with_fresh_sidecar(
    common: Common,
    work: Callable[[SidecarClient], Awaitable[T]],
    *,
    engine: str | None,
    message_format: MessageFormat,
    namespace: str | None = None,
    config: Mapping[str, object] | None = None,
) -> T:
    """Run `work` with a sidecar on a temporary state directory, unless `--state-dir` names one."""

    def run(placed: Common) -> T:
        client = client_for(
            placed, engine=engine, message_format=message_format, namespace=namespace, config=config
        )
        return with_client(client, work)

    if common.state_dir is not None:
        return run(common)
    with TemporaryDirectory(prefix="context-sidecar-") as folder:
        return run(common._replace(state_dir=Path(folder)))


def _ignore(line: str) -> None:
    """The client keeps the last lines itself."""
    del line
