"""Checks that are known to fail, so that a suite can guard what already holds."""

from collections.abc import Collection

from sidecar.conformance.report import CheckResult


def read_expected(text: str) -> frozenset[str]:
    """The names of checks in a list: one a line, `#` begins a comment."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return frozenset(line for line in lines if line)


def judged(result: CheckResult, expected: Collection[str]) -> CheckResult:
    """The result in the light of what was expected: a known failure warns, a check that passes fails."""
    if result.name not in expected:
        return result
    if result.outcome == "failed":
        return _with(result, "warned", f"known to fail: {result.message}")
    if result.outcome == "passed":
        return _with(result, "failed", "it passes, and is listed as known to fail: remove the entry")
    return result


def _with(result: CheckResult, outcome: str, message: str) -> CheckResult:
    from msgspec.structs import replace

    return replace(result, outcome=outcome, message=message)
