"""Runs checks, each on a fresh subject within a limit of time."""

import asyncio
import time
import traceback
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from sidecar import __version__
from sidecar.conformance.checks import Check, Suite
from sidecar.conformance.expected import judged
from sidecar.conformance.expecting import NotDeclared, SuiteFault, Violation
from sidecar.conformance.report import CheckResult, Outcome, Report, counted

S = TypeVar("S")
T = TypeVar("T")

Provide = Callable[[], AbstractAsyncContextManager[S]]
"""Makes a fresh subject for one check, and takes it away afterwards."""

_GRACE_S = 10.0
"""Seconds that a check which has come to its limit has for ending; then it is left alone."""
_FRAMES = 8
"""Frames of a traceback that are told, the innermost."""


async def run_suite(
    suite: Suite[S],
    provide: Provide[S],
    *,
    subject: str,
    declared: Collection[str] = (),
    patterns: Collection[str] = (),
    told: Callable[[CheckResult], object] | None = None,
) -> Report:
    """The report on one subject, which claims to offer what is `declared`.

    `patterns` choose among the checks by their names; `told` is called with each result as it comes.

    Raises:
        ValueError: a capability is unknown, or no check is chosen.
    """
    known = suite.known(declared)
    results = await run_checks(chosen(suite, patterns), provide, known, told=told)
    return report_of(suite.name, subject, known, results)


def chosen(suite: Suite[S], patterns: Collection[str], expected: Collection[str] = ()) -> Sequence[Check[S]]:
    """The checks that have one of the patterns in their names; `expected` names checks that may fail.

    Raises:
        ValueError: no check is chosen, or an expected one does not exist.
    """
    checks = suite.selected(patterns)
    if not checks:
        raise ValueError(f"no check has one of these in its name: {', '.join(patterns)}")
    unknown = sorted(set(expected) - {check.name for check in suite})
    if unknown:
        raise ValueError(f"there are no checks of these names: {', '.join(unknown)}")
    return checks


async def run_checks(
    checks: Sequence[Check[S]],
    provide: Provide[S],
    declared: Collection[str],
    *,
    expected: Collection[str] = (),
    told: Callable[[CheckResult], object] | None = None,
) -> list[CheckResult]:
    """The results, in order; checks that need more than what is `declared` are not run."""
    results: list[CheckResult] = []
    for check in checks:
        result = await run_check(check, provide) if check.needs <= set(declared) else undeclared(check)
        results.append(judged(result, expected))
        if told is not None:
            told(results[-1])
    return results


async def run_check(check: Check[S], provide: Provide[S]) -> CheckResult:
    """The result of one check. Making and removing the subject counts as a part of it."""
    began = time.perf_counter()
    message = trace = None
    outcome: Outcome = "failed" if check.level == "must" else "warned"
    try:
        await _within(check.limit_s, _carried_out(check, provide))
        outcome = "passed"
    except Violation as broken:
        message = str(broken)
    except NotDeclared as reason:
        outcome, message = "undeclared", str(reason)
    except SuiteFault as error:
        outcome, message, trace = "error", str(error), _trace(error.__cause__ or error)
    except TimeoutError as error:
        message, trace = f"it did not end within {check.limit_s:g} s", _trace(error)
    except Exception as error:
        message, trace = f"{type(error).__name__}: {error}", _trace(error)
    return CheckResult(
        name=check.name,
        rule=check.rule,
        level=check.level,
        outcome=outcome,
        seconds=round(time.perf_counter() - began, 4),
        message=message,
        trace=trace,
        needs=tuple(sorted(check.needs)),
    )


def run(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns. Unlike `asyncio.run` it does not wait for what a subject has left behind."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


def undeclared(check: Check[S]) -> CheckResult:
    """The result of a check that says nothing about the subject."""
    return CheckResult(
        name=check.name,
        rule=check.rule,
        level=check.level,
        outcome="undeclared",
        needs=tuple(sorted(check.needs)),
    )


def report_of(suite: str, subject: str, declared: Collection[str], results: Sequence[CheckResult]) -> Report:
    """The report that these results make."""
    kept = tuple(results)
    return Report(
        suite=suite,
        subject=subject,
        version=__version__,
        declared=tuple(sorted(declared)),
        counts=counted(kept),
        results=kept,
    )


async def _carried_out(check: Check[S], provide: Provide[S]) -> None:
    async with provide() as subject:
        await check.run(subject)


async def _within(limit_s: float, work: Coroutine[Any, Any, None]) -> None:
    """Wait for the work, but no longer, whatever it makes of being cancelled.

    Raises:
        TimeoutError: it has not ended in time.
    """
    task = asyncio.ensure_future(work)
    await asyncio.wait([task], timeout=limit_s)
    if not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_GRACE_S)
        raise TimeoutError
    task.result()


def _trace(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return "".join(traceback.format_list(frames)).rstrip()
