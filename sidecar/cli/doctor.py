"""`context-sidecar doctor`: find problems and say how to fix them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import click

from sidecar.cli.config import wrong_settings
from sidecar.cli.failures import FAILURE, OK, CommandFailed
from sidecar.cli.options import Common, common_options, namespace_option
from sidecar.cli.output import console, print_json, shown_bytes
from sidecar.cli.own_sidecar import client_for, with_client
from sidecar.client.errors import (
    EngineUnavailable,
    RequestFailed,
    RequestTimedOut,
    SidecarUnavailable,
    StoreUnavailable,
)
from sidecar.client.sidecar_client import SidecarClient
from sidecar.protocol.engine import DoctorCheck, DoctorEngineResult, ShadowReport

if TYPE_CHECKING:
    from rich.table import Table

PROBE_BUDGET = 4000
LIMIT_S = 15.0
"""Time limit of every request, in seconds, so that the command does not take minutes."""
MOST_READ = 256 << 20
"""Maximum size of a store whose pages are checked here, in bytes."""
MEND = "correct it; `context-sidecar config validate` checks the configuration file"
SHADOW_S = 10.0
"""How long to wait for the shadow engine to catch up, in seconds."""


@click.command("doctor")
@click.option("--engine", metavar="ID", help="Check this engine instead of the configured one.")
@namespace_option
@common_options
def command(common: Common, engine: str | None, namespace: str) -> int:
    """Start a sidecar, look for problems, and say how to fix them."""
    wrong = [
        DoctorCheck(name="settings", ok=False, message=problem, fix=MEND)
        for problem in wrong_settings(common)
    ]
    result = DoctorEngineResult(ok=False, checks=wrong) if wrong else _examined(common, engine, namespace)
    if common.json:
        print_json(result)
    else:
        _print(result)
    return OK if result.ok else FAILURE


def _examined(common: Common, engine: str | None, namespace: str) -> DoctorEngineResult:
    """The checks of a running sidecar, and those of its store's folder and file."""
    from sidecar.store.sqlite.folder import complaint

    path = _store_file(common)
    before = None if path is None else complaint(path)
    began = time.perf_counter()
    client = client_for(common, engine=engine, namespace=namespace, timeout_s=LIMIT_S)

    async def examine(client: SidecarClient) -> DoctorEngineResult:
        milliseconds = (time.perf_counter() - began) * 1000
        started = DoctorCheck(
            name="start",
            ok=True,
            message=f"{client.server_info.name} {client.server_info.version or ''} speaks version "
            f"{client.capabilities.protocol_version} and was ready after {milliseconds:.0f} ms",
        )
        found = await client.doctor()
        turn = await probe(client, shadow=found.shadow is not None)
        if found.shadow is not None:
            found = await client.doctor()
        checks = [started, *found.checks, turn]
        return DoctorEngineResult(ok=found.ok and turn.ok, checks=checks, shadow=found.shadow)

    try:
        result = with_client(client, examine)
    except (RequestFailed, RequestTimedOut, SidecarUnavailable) as error:
        result = DoctorEngineResult(ok=False, checks=[_failed_start(error)])
    kept = list(_kept(path, before))
    return DoctorEngineResult(
        ok=result.ok and all(check.ok for check in kept), checks=[*result.checks, *kept], shadow=result.shadow
    )


def _store_file(common: Common) -> Path | None:
    """The file of the store; `None` if the store is not a file or the configuration is invalid."""
    from sidecar.cli.target import target_of

    try:
        return target_of(common).path
    except CommandFailed:
        return None


def _kept(path: Path | None, before: str | None) -> Iterator[DoctorCheck]:
    """Checks of the store's folder and file; a large file is left to `db check`.

    `before` is the problem with the folder before a sidecar opened the store, if any.
    """
    from sidecar.store.errors import StoreUnavailable
    from sidecar.store.sqlite.folder import complaint
    from sidecar.store.sqlite.upkeep.inspection import check
    from sidecar.store.sqlite.upkeep.replacement import remains

    if path is None or not path.exists():
        return
    if (problem := complaint(path)) is not None:
        fix = f"make sure that you own {path.parent} and that nobody else can write there"
        yield DoctorCheck(name="folder", ok=False, message=problem, fix=fix)
    elif before is not None:
        fixed = f"{before.replace(' is ', ' was ')}; it is closed to them now"
        yield DoctorCheck(name="folder", ok=True, message=fixed)
    else:
        yield DoctorCheck(
            name="folder", ok=True, message="only this user can access the folder and the store"
        )
    if parts := remains(path):
        yield DoctorCheck(
            name="folder",
            ok=False,
            message=f"{', '.join(part.name for part in parts)}: left over from an interrupted copy",
            fix="stop all sidecars and start one, which removes them",
        )
    if path.stat().st_size > MOST_READ:
        size = shown_bytes(path.stat().st_size)
        skipped = f"{size} were not read: `context-sidecar db check` reads every page"
        yield DoctorCheck(name="pages", ok=True, message=skipped)
        return
    try:
        findings = [finding for finding in check(path, _silently) if not finding.ok]
    except StoreUnavailable:
        return  # the check `start` reports it
    for finding in findings:
        yield DoctorCheck(name="pages", ok=False, message=finding.message, fix=finding.fix)
    if not findings:
        yield DoctorCheck(name="pages", ok=True, message="every page of the store is sound")


def _silently(what: str, done: int, of: int) -> None:
    del what, done, of


async def probe(client: SidecarClient, *, shadow: bool = False) -> DoctorCheck:
    """Send one turn through the engine and check the answer; the turn leaves nothing behind."""
    session, engine = f"doctor-{uuid4().hex}", client.engine.id
    turn = [{"role": "user", "content": text} for text in (f"Is anybody there? {session}", "And now?")]
    turn.insert(1, {"role": "assistant", "content": "I am."})
    try:
        await client.commit_turn(session, "probe", turn)
        answer = await client.assemble(session, PROBE_BUDGET, turn)
        if shadow:
            await shadowed(client)
    except StoreUnavailable as error:
        return DoctorCheck(name="store", ok=False, message=f"a turn was not stored: {error}", fix=error.hint)
    except RequestTimedOut:
        return _wrong_turn(f"{engine} did not answer a turn within {LIMIT_S:g} s", engine)
    except RequestFailed as error:
        return _wrong_turn(f"a turn through {engine} failed: {error}", engine)
    finally:
        with suppress(RequestFailed, RequestTimedOut, SidecarUnavailable):
            await client.delete(session)
    if answer.fallback_for is not None:
        return _wrong_turn(f"{engine} did not answer a turn: {answer.fallback_for.reason}", engine)
    if turn[-1] not in answer.decoded:
        return _wrong_turn(f"{engine} left out the newest message of a turn", engine)
    size = f"{len(answer.decoded)} messages, {answer.estimated_tokens} tokens"
    return DoctorCheck(name="turn", ok=True, message=f"{engine} answered a turn: {size}")


def _wrong_turn(what: str, engine: str) -> DoctorCheck:
    fix = f"run `context-sidecar engines check {engine}`, or select another one with `engines use`"
    return DoctorCheck(name="turn", ok=False, message=what, fix=fix)


def _failed_start(error: Exception) -> DoctorCheck:
    name = "start"
    if isinstance(error, EngineUnavailable):
        name = "settings" if error.hint and "correct that setting" in error.hint else "engine"
    elif isinstance(error, StoreUnavailable):
        name = "store"
    hint = error.hint if isinstance(error, RequestFailed) else None
    return DoctorCheck(name=name, ok=False, message=str(error), fix=hint)


async def shadowed(client: SidecarClient) -> None:
    """Wait until the shadow engine has no waiting requests, for at most `SHADOW_S` seconds."""
    deadline = time.monotonic() + SHADOW_S
    while time.monotonic() < deadline:
        report = (await client.doctor()).shadow
        if report is None or not report.waiting:
            return
        await asyncio.sleep(0.05)


def _compared(report: ShadowReport) -> Table:
    from rich.table import Table

    table = Table("compared", "primary", "shadow", title=f"{report.compared} requests, two engines")
    sides = (report.primary, report.shadow)
    table.add_row("engine", *(side.engine for side in sides))
    table.add_row("failures", *(str(side.failures) for side in sides))
    table.add_row("invalid answers", *(str(side.invalid) for side in sides))
    table.add_row("tokens, on average", *(str(side.mean_tokens) for side in sides))
    table.add_row("prefix kept", *(_share(side.prefix_kept) for side in sides))
    table.add_row("covers the primary's", "", _share(report.coverage))
    table.add_row("p50 / p95, ms", *(f"{side.p50_ms:.1f} / {side.p95_ms:.1f}" for side in sides))
    return table


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _print(result: DoctorEngineResult) -> None:
    from rich.text import Text

    out = console()
    if result.shadow is not None:
        out.print(_compared(result.shadow))
    for check in result.checks:
        mark = Text("ok   ", "green") if check.ok else Text("WRONG", "bold red")
        out.print(mark, Text(check.name.ljust(9)), Text(check.message), soft_wrap=True)
        if check.fix:
            style = "dim" if check.ok else "yellow"
            out.print(Text(f"      {'':9} {check.fix}", style), soft_wrap=True)
