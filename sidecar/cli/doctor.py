"""`context-sidecar doctor`: what is wrong, and what to do about it."""

from __future__ import annotations

import time

import click

from sidecar.cli.connecting import client_for, with_client
from sidecar.cli.failures import FAILURE, OK
from sidecar.cli.options import Common, common_options, namespace_option
from sidecar.cli.printing import console, print_json
from sidecar.client.errors import (
    EngineUnavailable,
    RequestFailed,
    RequestTimedOut,
    SidecarUnavailable,
    StoreUnavailable,
)
from sidecar.client.sidecar_client import SidecarClient
from sidecar.protocol.engine import DoctorCheck, DoctorEngineResult


@click.command("doctor")
@click.option("--engine", metavar="ID", help="Look at this engine instead of the configured one.")
@namespace_option
@common_options
def command(common: Common, engine: str | None, namespace: str) -> int:
    """Start a sidecar, look for what is wrong, and tell what to do about it."""
    began = time.perf_counter()
    client = client_for(common, engine=engine, namespace=namespace)

    async def examine(client: SidecarClient) -> DoctorEngineResult:
        milliseconds = (time.perf_counter() - began) * 1000
        started = DoctorCheck(
            name="start",
            ok=True,
            message=f"{client.server_info.name} {client.server_info.version or ''} speaks version "
            f"{client.capabilities.protocol_version} and was ready after {milliseconds:.0f} ms",
        )
        found = await client.doctor()
        return DoctorEngineResult(ok=found.ok, checks=[started, *found.checks])

    try:
        result = with_client(client, examine)
    except (RequestFailed, RequestTimedOut, SidecarUnavailable) as error:
        result = DoctorEngineResult(ok=False, checks=[_failed_start(error)])
    if common.json:
        print_json(result)
    else:
        _print(result)
    return OK if result.ok else FAILURE


def _failed_start(error: Exception) -> DoctorCheck:
    name = "start"
    if isinstance(error, EngineUnavailable):
        name = "engine"
    elif isinstance(error, StoreUnavailable):
        name = "store"
    hint = error.hint if isinstance(error, RequestFailed) else None
    return DoctorCheck(name=name, ok=False, message=str(error), fix=hint)


def _print(result: DoctorEngineResult) -> None:
    from rich.text import Text

    out = console()
    for check in result.checks:
        mark = Text("ok   ", "green") if check.ok else Text("WRONG", "bold red")
        out.print(mark, Text(check.name.ljust(9)), Text(check.message), soft_wrap=True)
        if check.fix:
            style = "dim" if check.ok else "yellow"
            out.print(Text(f"      {'':9} {check.fix}", style), soft_wrap=True)
