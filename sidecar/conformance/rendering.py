"""Reports as text for people, JSON for programs, JUnit XML for build servers."""

from collections.abc import Iterator
from itertools import groupby
from xml.etree import ElementTree

import msgspec

from sidecar.conformance.kit import CheckResult, Report

_MARKS = {"passed": "ok", "failed": "FAIL", "warned": "warn", "undeclared": "-", "error": "ERR"}


def as_text(report: Report, *, every_check: bool = True) -> str:
    """The report in lines; `every_check` also lists what passed, or was not run."""
    return "\n".join(_lines(report, every_check)) + "\n"


def as_json(report: Report) -> bytes:
    """The report as one JSON document."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def as_junit(report: Report) -> bytes:
    """The report as JUnit XML: an area is a class, a warning a passed case with a text."""
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
        parts.append(f"{counts.errors} errors of the suite")
    if counts.undeclared:
        parts.append(f"{counts.undeclared} about what is not declared")
    return f"{report.suite} conformance of {report.subject}: {', '.join(parts)}"


def result_lines(result: CheckResult) -> Iterator[str]:
    """One result, with what was found where its rule is broken."""
    yield f"  {_MARKS[result.outcome]:4}  {result.name}"
    if result.outcome == "undeclared":
        yield f"        {_undeclared(result)}"
    elif result.message is not None:
        yield f"        rule:  {result.rule}"
        yield f"        found: {result.message}"
        for line in (result.trace or "").splitlines():
            yield f"        {line}"


def _lines(report: Report, every_check: bool) -> Iterator[str]:
    for _, results in groupby(report.results, key=lambda result: result.area):
        for result in results:
            if every_check or result.message is not None:
                yield from result_lines(result)
    yield f"declared: {', '.join(report.declared) or 'nothing'}"
    yield summary(report)


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
    """The text without what XML cannot carry."""
    return "".join(
        letter if letter in "\t\n\r" or (letter >= " " and not "\ud800" <= letter <= "\udfff") else "\ufffd"
        for letter in text or ""
    )
