"""`context-sidecar conformance engine`: checks the class of an engine."""

from __future__ import annotations

import asyncio
import sys

import click

from sidecar.cli.conformance.reporting import Reporting, reporting_options
from sidecar.cli.failures import CommandFailed
from sidecar.conformance.engine import ENGINE_SUITE, check_engine, engine_class
from sidecar.conformance.loading import SubjectNotFound

SERVE = (sys.executable, "-m", "sidecar.cli.main", "serve")


@click.command("engine")
@reporting_options
@click.argument("name", metavar="MODULE:CLASS")
def command(reporting: Reporting, name: str) -> int:
    """Check the engine MODULE:CLASS in a sidecar of its own, with a store that is thrown away."""
    if reporting.list_only:
        return reporting.list_checks(ENGINE_SUITE)
    try:
        subject = engine_class(name, SERVE)
    except SubjectNotFound as error:
        raise CommandFailed(str(error)) from None
    report = asyncio.run(check_engine(subject, patterns=reporting.patterns, told=reporting.told))
    return reporting.finish(report)
