"""`context-sidecar engines check`: whether an engine keeps the rules."""

from __future__ import annotations

import asyncio

import click

from sidecar.cli.conformance.reporting import Reporting, reporting_options
from sidecar.cli.connecting import sidecar_command
from sidecar.cli.engines.known import engine_named, settings_of
from sidecar.cli.options import Common
from sidecar.conformance.engine import ENGINE_SUITE, check_engine, configured_engine


@click.command("check")
@reporting_options
@click.argument("name")
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Configuration file (default: the usual one).",
)
def check(reporting: Reporting, name: str, config_file: str | None) -> int:
    """Check the engine NAME in a sidecar of its own, with a store that is thrown away."""
    from pathlib import Path

    if reporting.list_only:
        return reporting.list_checks(ENGINE_SUITE)
    common = Common(Path(config_file) if config_file else None, None, reporting.json)
    engine_named(settings_of(common), name)
    subject = configured_engine(name, sidecar_command(common))
    report = asyncio.run(check_engine(subject, patterns=reporting.patterns, told=reporting.told))
    return reporting.finish(report)
