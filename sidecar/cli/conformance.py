"""`context-sidecar conformance`: checks whether an implementation of somebody else keeps the rules."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from sidecar.cli.failures import FAILURE, OK, CommandFailed
from sidecar.cli.options import InOrder
from sidecar.cli.output import print_json
from sidecar.conformance.client import CLIENT_SUITE, LIMIT_S, check_client
from sidecar.conformance.engine import ENGINE_SUITE, check_engine, engine_class
from sidecar.conformance.kit import SubjectNotFound, Suite, Unusable, load, run, run_suite
from sidecar.conformance.report import CheckResult, Report, as_json, as_junit, result_lines, summary
from sidecar.conformance.server import SERVER_SUITE, check_server
from sidecar.conformance.store import CAPABILITIES, SUITE, declared_by, providing
from sidecar.private_files import write

R = TypeVar("R")

_CAPABILITIES = "\n".join(f"  {name:8} {meaning}" for name, meaning in CAPABILITIES.items())


@click.group("conformance", cls=InOrder)
def command() -> None:
    """Check that an implementation of your own keeps the rules that ours keep."""


class Reporting(NamedTuple):
    """How a suite is run and told."""

    patterns: tuple[str, ...]
    """Parts of the names of the checks to run; empty for all."""
    json: bool
    junit: Path | None
    quiet: bool
    """Print what went wrong alone."""
    list_only: bool
    """Print the checks, and run none."""

    def print_result(self, result: CheckResult) -> None:
        """Print one result as it comes, for people."""
        if self.json or (self.quiet and result.message is None):
            return
        for line in result_lines(result):
            print(line, flush=True)

    def finish(self, report: Report) -> int:
        """Write the report; the exit code."""
        if self.junit is not None:
            write(self.junit, as_junit(report))
        if self.json:
            sys.stdout.buffer.write(as_json(report))
            sys.stdout.flush()
        else:
            print(summary(report))
        return OK if report.ok else FAILURE

    def list_checks(self, suite: Suite[Any]) -> int:
        """Print the checks with their rules; the exit code."""
        checks = suite.selected(self.patterns)
        if self.json:
            print_json(
                [
                    {"name": each.name, "rule": each.rule, "level": each.level, "needs": sorted(each.needs)}
                    for each in checks
                ]
            )
            return OK
        for check in checks:
            needs = f" (needs {', '.join(sorted(check.needs))})" if check.needs else ""
            print(f"{check.name}{needs}\n    {check.level}: {check.rule}")
        return OK


def reporting_options(command: Callable[..., R]) -> Callable[..., R]:
    """Gives a command the options of a suite, as its first argument."""

    @click.option(
        "--only", multiple=True, metavar="TEXT", help="Run the checks with this in their names; repeatable."
    )
    @click.option("--json", "as_json", is_flag=True, help="Write the report as one JSON document.")
    @click.option(
        "--junit",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write the report as JUnit XML too.",
    )
    @click.option("--quiet", is_flag=True, help="Print what went wrong alone.")
    @click.option("--list", "list_only", is_flag=True, help="List the checks with their rules, and run none.")
    @wraps(command)
    def with_reporting(
        only: tuple[str, ...], as_json: bool, junit: Path | None, quiet: bool, list_only: bool, **rest: object
    ) -> R:
        return command(Reporting(only, as_json, junit, quiet, list_only), **rest)

    return with_reporting


def expected_option(command: Callable[..., R]) -> Callable[..., R]:
    """Gives a command `--expected-failures`, as the names in that file."""
    return click.option(
        "--expected-failures",
        "expected",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        callback=_names,
        metavar="FILE",
        help="Names of checks that are known to fail, one a line; one that passes is an error.",
    )(command)


def _names(context: click.Context, parameter: click.Parameter, file: Path | None) -> frozenset[str]:
    del context, parameter
    lines = [] if file is None else file.read_text().splitlines()
    return frozenset(filter(None, (line.partition("#")[0].strip() for line in lines)))


def _report(check: Coroutine[Any, Any, Report]) -> Report:
    """What the checks of a peer come to.

    Raises:
        CommandFailed: its command cannot be used.
        UsageError: no such check.
    """
    try:
        return asyncio.run(check)
    except Unusable as error:
        raise CommandFailed(str(error)) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error


@command.command("server", short_help="Check a server that a command starts.")
@reporting_options
@expected_option
@click.option("--limit", "limit_s", default=20.0, metavar="SECONDS", help="Longest wait for one answer.")
@click.option(
    "--own-home",
    is_flag=True,
    help="Start the server with your own home and configuration, instead of empty ones.",
)
@click.argument("server", nargs=-1, type=click.UNPROCESSED)
def server(
    reporting: Reporting, expected: frozenset[str], limit_s: float, own_home: bool, server: tuple[str, ...]
) -> int:
    """Check a server, in whatever language, that SERVER starts: a command behind `--`.

    It is started many times, with an empty home, spoken to over its standard streams, and told to keep its
    state in a folder that is removed afterwards. Only what it declares is checked.
    """
    if reporting.list_only:
        return reporting.list_checks(SERVER_SUITE)
    if not server:
        raise click.UsageError("Name the command that starts the server: conformance server -- COMMAND ...")
    checking = check_server(
        server,
        patterns=reporting.patterns,
        expected=expected,
        limit_s=limit_s,
        on_result=reporting.print_result,
        own_home=own_home,
    )
    return reporting.finish(_report(checking))


@command.command("client", short_help="Check a client inside a driver that a command starts.")
@reporting_options
@expected_option
@click.option("--limit", "limit_s", default=LIMIT_S, metavar="SECONDS", help="Longest wait for one step.")
@click.option("--guide", is_flag=True, help="Print how a driver is written, and what it is told.")
@click.argument("driver", nargs=-1, type=click.UNPROCESSED)
def client(
    reporting: Reporting, expected: frozenset[str], limit_s: float, guide: bool, driver: tuple[str, ...]
) -> int:
    """Check a client, in whatever language, inside a driver that DRIVER starts: a command behind `--`.

    A driver is a small program around the client. It reads lines of JSON that say what the client is to do,
    has the client start the command in the environment variable CEP_SIDECAR as its sidecar, and prints what
    comes of it; `--guide` prints how it is written. The suite plays the sidecar.
    """
    if guide:
        page = Path(__file__).parents[1] / "conformance/client/guide.md"
        click.echo(page.read_text(encoding="utf-8"), nl=False)
        return 0
    if reporting.list_only:
        return reporting.list_checks(CLIENT_SUITE)
    if not driver:
        raise click.UsageError("Name the command that starts the driver: conformance client -- COMMAND ...")
    checking = check_client(
        driver,
        patterns=reporting.patterns,
        expected=expected,
        limit_s=limit_s,
        on_result=reporting.print_result,
    )
    return reporting.finish(_report(checking))


@command.command("engine", short_help="Check a context engine.")
@reporting_options
@click.argument("name", metavar="MODULE:CLASS")
def engine(reporting: Reporting, name: str) -> int:
    """Check the engine MODULE:CLASS in a sidecar of its own, with a store that is thrown away."""
    if reporting.list_only:
        return reporting.list_checks(ENGINE_SUITE)
    try:
        subject = engine_class(name)
    except SubjectNotFound as error:
        raise CommandFailed(str(error)) from None
    report = asyncio.run(check_engine(subject, patterns=reporting.patterns, on_result=reporting.print_result))
    return reporting.finish(report)


@command.command(
    "store",
    short_help="Check a session store.",
    help="Check a session store, each time on a fresh place that FACTORY makes.\n\n"
    "A place has two methods: store(extract) makes a store on its data, remove() erases the data. "
    "sidecar.conformance.store.places has those of our own stores, such as "
    "sidecar.conformance.store.places:SQLitePlace.\n\n"
    f"A store declares what it offers, in the attribute `capabilities` of FACTORY or by --declare:\n\n\b\n"
    f"{_CAPABILITIES}",
)
@click.argument("factory", metavar="MODULE:FACTORY", required=False)
@click.option(
    "--declare",
    multiple=True,
    metavar="CAPABILITY",
    help="What the store offers, in place of what FACTORY declares; repeatable.",
)
@reporting_options
def store(reporting: Reporting, factory: str | None, declare: tuple[str, ...]) -> int:
    """Check a session store."""
    if reporting.list_only:
        return reporting.list_checks(SUITE)
    if factory is None:
        raise click.UsageError("Missing argument 'MODULE:FACTORY'.")
    try:
        make_place = load(factory)
        declared = declare or declared_by(make_place)
        report = run(
            run_suite(
                SUITE,
                providing(make_place),
                subject=factory,
                declared=declared,
                patterns=reporting.patterns,
                on_result=reporting.print_result,
            )
        )
    except (SubjectNotFound, ValueError) as error:
        raise CommandFailed(str(error)) from error
    return reporting.finish(report)
