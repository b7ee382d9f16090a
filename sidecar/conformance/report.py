"""Check results and reports: text for people, JSON for programs, JUnit XML for build servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Literal
from xml.etree import ElementTree

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sidecar import __version__

Level = Literal["must", "should"]
"""A broken `must` fails the suite, a broken `should` is a warning."""
Outcome = Literal["passed", "failed", "warned", "undeclared", "error"]
"""`warned` is a broken `should`; `undeclared` means that the check does not apply, because the subject does
not declare the feature; `error` is a fault of the suite itself."""


class CheckResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How one check ended."""

    name: str
    rule: str
    level: Level
    outcome: Outcome
    seconds: float = 0.0
    message: str | None = None
    """The finding, if the rule is broken."""
    trace: str | None = None
    """The innermost traceback frames, if anything but a failed expectation ended the check."""
    needs: tuple[str, ...] = ()

    @property
    def area(self) -> str:
        """The part of the name in front of the slash."""
        return self.name.partition("/")[0]

    def judged(self, known_to_fail: bool) -> CheckResult:
        """This result, adjusted: a known failure only warns, and a known failure that passes fails."""
        if known_to_fail and self.outcome == "failed":
            return replace(self, outcome="warned", message=f"known to fail: {self.message}")
        if known_to_fail and self.outcome == "passed":
            found = "it passes although it is listed as known to fail: remove the entry"
            return replace(self, outcome="failed", message=found)
        return self


class Counts(Struct, frozen=True, kw_only=True):
    """The number of checks for each outcome."""

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
    """Version of the package that contains the suite."""
    declared: tuple[str, ...]
    """Capabilities that the subject declares."""
    counts: Counts
    results: tuple[CheckResult, ...]

    @classmethod
    def of(
        cls, suite: str, subject: str, declared: Collection[str], results: Sequence[CheckResult]
    ) -> Report:
        """Build the report from its results."""
        outcomes = Counter(result.outcome for result in results)
        return cls(
            suite=suite,
            subject=subject,
            version=__version__,
            declared=tuple(sorted(declared)),
            counts=Counts(
                passed=outcomes["passed"],
                failed=outcomes["failed"],
                warned=outcomes["warned"],
                undeclared=outcomes["undeclared"],
                errors=outcomes["error"],
            ),
            results=tuple(results),
        )

    @property
    def ok(self) -> bool:
        """Whether at least one check passed, no `must` is broken, and the suite itself did not fail."""
        return not self.counts.failed and not self.counts.errors and bool(self.counts.passed)


_MARKS = {"passed": "ok", "failed": "FAIL", "warned": "warn", "undeclared": "-", "error": "ERR"}


def as_text(report: Report, *, every_check: bool = True) -> str:
    """The report as text; `every_check` includes checks that passed or did not run."""
    shown = [result for result in report.results if every_check or result.message is not None]
    lines = [line for result in shown for line in result_lines(result)]
    declared = f"declared: {', '.join(report.declared) or 'nothing'}"
    return "\n".join([*lines, declared, summary(report)]) + "\n"


def as_json(report: Report) -> bytes:
    """The report as one JSON document."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def as_junit(report: Report) -> bytes:
    """The report as JUnit XML: an area is a class, a warning a passed case with output."""
    counts = report.counts
    root = ElementTree.Element(
        "testsuite",
        name=f"{report.suite} conformance: {report.subject}",
        tests=str(len(report.results)),
        failures=str(counts.failed),
        errors=str(counts.errors),
        skipped=str(counts.undeclared),
        time=f"{sum(result.seconds for result in report.results):.3f}",
    )
    for result in report.results:
        case = ElementTree.SubElement(
            root,
            "testcase",
            classname=f"{report.suite}.{result.area}",
            name=result.name,
            time=f"{result.seconds:.3f}",
        )
        _explain(case, result)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def summary(report: Report) -> str:
    """The report in one line."""
    counts = report.counts
    parts = [f"{counts.passed} passed", f"{counts.failed} failed"]
    if counts.warned:
        parts.append(f"{counts.warned} warned")
    if counts.errors:
        parts.append(f"{counts.errors} suite errors")
    if counts.undeclared:
        parts.append(f"{counts.undeclared} not declared")
    return f"{report.suite} conformance of {report.subject}: {', '.join(parts)}"


def result_lines(result: CheckResult) -> Iterator[str]:
    """The lines for one result, with rule and finding if the rule is broken."""
    yield f"  {_MARKS[result.outcome]:4}  {result.name}"
    if result.outcome == "undeclared":
        yield f"        {_undeclared(result)}"
    elif result.message is not None:
        yield f"        rule:  {result.rule}"
        yield f"        found: {result.message}"
        for line in (result.trace or "").splitlines():
            yield f"        {line}"


def _explain(case: ElementTree.Element, result: CheckResult) -> None:
    if result.outcome == "undeclared":
        ElementTree.SubElement(case, "skipped", message=_undeclared(result))
    elif result.outcome in ("failed", "error"):
        kind = "failure" if result.outcome == "failed" else "error"
        broken = ElementTree.SubElement(case, kind, message=_legal(result.message))
        broken.text = _legal(f"{result.rule}\n{result.trace or ''}".strip())
    elif result.outcome == "warned":
        ElementTree.SubElement(case, "system-out").text = _legal(f"{result.rule}\n{result.message}")


def _undeclared(result: CheckResult) -> str:
    return result.message or f"needs {', '.join(result.needs)}"


def _legal(text: str | None) -> str:
    """The text with U+FFFD in place of characters that XML does not allow."""
    return "".join(
        letter if letter in "\t\n\r" or (letter >= " " and not "\ud800" <= letter <= "\udfff") else "\ufffd"
        for letter in text or ""
    )
