"""`context-sidecar conformance client`: checks a client inside a driver."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from sidecar.cli.conformance.reporting import Reporting, reporting_options
from sidecar.cli.failures import CommandFailed
from sidecar.conformance.client.running import CLIENT_SUITE, check_client
from sidecar.conformance.client.subject import LIMIT_S
from sidecar.conformance.expected import read_expected
from sidecar.conformance.server.faults import Unusable


@click.command("client")
@reporting_options
@click.option(
    "--expected-failures",
    "expected",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Names of checks that are known to fail, one a line; one that passes is an error.",
)
@click.option("--limit", "limit_s", default=LIMIT_S, metavar="SECONDS", help="Longest wait for one step.")
@click.argument("driver", nargs=-1, type=click.UNPROCESSED)
def command(reporting: Reporting, expected: Path | None, limit_s: float, driver: tuple[str, ...]) -> int:
    """Check a client, in whatever language, inside a driver that DRIVER starts: a command behind `--`.

    A driver is a small program around the client. It reads lines of JSON that say what the client is to do,
    has the client start the command in the environment variable CEP_SIDECAR as its sidecar, and prints what
    comes of it; spec/checking-clients.md describes it. The suite plays the sidecar.
    """
    if reporting.list_only:
        return reporting.list_checks(CLIENT_SUITE)
    if not driver:
        raise click.UsageError("Name the command that starts the driver: conformance client -- COMMAND ...")
    known = read_expected(expected.read_text()) if expected is not None else frozenset[str]()
    try:
        report = asyncio.run(
            check_client(
                driver, patterns=reporting.patterns, expected=known, limit_s=limit_s, told=reporting.told
            )
        )
    except Unusable as error:
        raise CommandFailed(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return reporting.finish(report)
