"""What holds for the whole run: which files come first, and the table of tests that could not run here."""

from collections import Counter
from collections.abc import Mapping

import pytest

from tests.missing_programs import table

SECONDS = "context-sidecar/seconds"
"""Where pytest's cache keeps how long each file took the last time that it ran."""
USUAL_S = 0.3
"""What a test takes of which nothing is known yet."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the slowest files, so that no worker is left alone with one at the end."""
    known: Mapping[str, float] = config.cache.get(SECONDS, {}) if config.cache else {}
    tests = Counter(_file(item.nodeid) for item in items)
    cost = {file: known.get(file, count * USUAL_S) for file, count in tests.items()}
    items.sort(key=lambda item: (-cost[_file(item.nodeid)], _file(item.nodeid)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Keep how long files took, and tell which groups of tests did not run, and why."""
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    took: dict[str, float] = {}
    for report in reports:
        if isinstance(report, pytest.TestReport):
            took[_file(report.nodeid)] = took.get(_file(report.nodeid), 0.0) + report.duration
    if config.cache and not config.option.collectonly:
        config.cache.set(SECONDS, {**config.cache.get(SECONDS, {}), **took})
    rows = table([str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", [])])
    if rows:
        terminalreporter.section("not run")
        for row in rows:
            terminalreporter.write_line(row)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
