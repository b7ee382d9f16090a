"""`context-sidecar conformance server`: checks a server behind a command."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from sidecar.cli.conformance.reporting import Reporting, reporting_options
from sidecar.cli.failures import CommandFailed
from sidecar.conformance.expected import read_expected
from sidecar.conformance.server.faults import Unusable
from sidecar.conformance.server.running import SERVER_SUITE, check_server


@click.command("server")
@reporting_options
@click.option(
    "--expected-failures",
    "expected",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Names of checks that are known to fail, one a line; one that passes is an error.",
)
@click.option("--limit", "limit_s", default=20.0, metavar="SECONDS", help="Longest wait for one answer.")
@click.argument("server", nargs=-1, type=click.UNPROCESSED)
def command(reporting: Reporting, expected: Path | None, limit_s: float, server: tuple[str, ...]) -> int:
    """Check a server, in whatever language, that SERVER starts: a command behind `--`.

    It is started many times, spoken to over its standard streams, and told to keep its state in a folder
    that is removed afterwards. Only what it declares is checked.
    """
    if reporting.list_only:
        return reporting.list_checks(SERVER_SUITE)
    if not server:
        raise click.UsageError("Name the command that starts the server: conformance server -- COMMAND ...")
    known = read_expected(expected.read_text()) if expected is not None else frozenset[str]()
    try:
        report = asyncio.run(
            check_server(
                server, patterns=reporting.patterns, expected=known, limit_s=limit_s, told=reporting.told
            )
        )
    except Unusable as error:
        raise CommandFailed(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return reporting.finish(report)
