"""`context-sidecar engines`: the engines that can be selected."""

from __future__ import annotations

import click

from sidecar.cli.connecting import client_for, with_client
from sidecar.cli.options import Common, common_options
from sidecar.cli.printing import print_json, print_table
from sidecar.client.sidecar_client import SidecarClient
from sidecar.protocol.engine import EngineListing, ListEngineResult


@click.group("engines")
def command() -> None:
    """The engines that can be selected."""


@command.command("list")
@common_options
def list_engines(common: Common) -> int:
    """List every engine that is installed, and whether it can be selected."""

    async def ask(client: SidecarClient) -> list[EngineListing]:
        return await client.engines()

    engines = with_client(client_for(common), ask)
    if common.json:
        print_json(ListEngineResult(engines=engines))
        return 0
    print_table(
        ("engine", "name", "version", "compaction", "state"),
        (
            (
                engine.id,
                engine.name,
                engine.version,
                "its own" if engine.owns_compaction else "the host's",
                _state(engine),
            )
            for engine in engines
        ),
    )
    return 0


def _state(engine: EngineListing) -> str:
    if not engine.available:
        return engine.reason or "not available"
    return "selected" if engine.active else "available"
