"""What came of running a suite."""

from typing import Literal

from msgspec import Struct

from sidecar.conformance.checks import Level

Outcome = Literal["passed", "failed", "warned", "undeclared", "error"]
"""`warned` is a broken `should`; `undeclared` says nothing, for the subject does not claim what it needs;
`error` is a fault of the suite itself."""


class CheckResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How one check ended."""

    name: str
    rule: str
    level: Level
    outcome: Outcome
    seconds: float = 0.0
    message: str | None = None
    """What was found, where the rule is broken."""
    trace: str | None = None
    """Where in the subject it broke, if something else than a check raised."""
    needs: tuple[str, ...] = ()

    @property
    def area(self) -> str:
        """The part of the name in front of the slash."""
        return self.name.partition("/")[0]


class Counts(Struct, frozen=True, kw_only=True):
    """How many checks ended in which way."""

    passed: int
    failed: int
    warned: int
    undeclared: int
    errors: int = 0


class Report(Struct, frozen=True, kw_only=True, rename="camel"):
    """The results of a suite for one subject, in the order of the checks."""

    suite: str
    subject: str
    version: str
    """Version of the package that the suite came with."""
    declared: tuple[str, ...]
    """Capabilities that the subject claims."""
    counts: Counts
    results: tuple[CheckResult, ...]

    @property
    def ok(self) -> bool:
        """Whether no `must` is broken, the suite did not fail, and anything was checked at all."""
        return not self.counts.failed and not self.counts.errors and bool(self.counts.passed)


def counted(results: tuple[CheckResult, ...]) -> Counts:
    """The counts of these results."""
    outcomes = [result.outcome for result in results]
    return Counts(
        passed=outcomes.count("passed"),
        failed=outcomes.count("failed"),
        warned=outcomes.count("warned"),
        undeclared=outcomes.count("undeclared"),
        errors=outcomes.count("error"),
    )
