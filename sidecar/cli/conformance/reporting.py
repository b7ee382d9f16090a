"""The options and output that the commands of all suites share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from sidecar.cli.failures import FAILURE, OK
from sidecar.cli.printing import print_json
from sidecar.conformance.checks import Suite
from sidecar.conformance.rendering import as_json, as_junit, result_lines, summary
from sidecar.conformance.report import CheckResult, Report

R = TypeVar("R")


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

    def told(self, result: CheckResult) -> None:
        """Print one result as it comes, for people."""
        if self.json or (self.quiet and result.message is None):
            return
        for line in result_lines(result):
            print(line, flush=True)

    def finish(self, report: Report) -> int:
        """Write the report; the exit code."""
        if self.junit is not None:
            self.junit.write_bytes(as_junit(report))
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
